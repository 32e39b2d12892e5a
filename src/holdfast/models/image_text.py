"""Models of Hugging Face that read images among the tokens of a prompt, such as LLaVA and SmolVLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models import library
from holdfast.models.adapters import Attachable
from holdfast.models.causal import context_of, given, library_cache, taken
from holdfast.models.decoder import Cache, Decoder
from holdfast.models.pixels import PreparedPixels

IMAGE = "<image>"
AROUND, WHOLE = "<fake_token_around_image>", "<global-img>"
"""The texts that SmolVLM's prompts have around an image, and before one that is shown whole."""
BESIDE = ("vision_tower", "vision_model", "multi_modal_projector", "connector")
"""The parts of such models that turn an image into vectors."""

WITH_CLASS = ("clip_vision_model", "vit", "deit")
"""The image towers that also have a vector for the whole image."""


def image_tokens(config: Any, folder: Path) -> int:
    """The number of tokens that stand for an image, one for each of its vectors."""
    sees = config.vision_config
    kind, cells = config.model_type, (sees.image_size // sees.patch_size) ** 2
    if kind == "llava":
        return int(cells + (sees.model_type in WITH_CLASS and config.vision_feature_select_strategy == "full"))
    if kind in ("idefics3", "smolvlm"):
        return int(cells // config.scale_factor**2)
    raise UserError(
        f"{folder} is a model of type {kind!r}, whose prompts this library does not write: choose one of type llava, "
        "idefics3 or smolvlm, or prefix-lm with a language model"
    )


def image_text(folder: Path) -> str:
    """The text that stands for an image in a prompt of a folder's model."""
    with library.quiet():
        config = library.found().AutoConfig.from_pretrained(folder, **library.SAFELY)
    tokens = IMAGE * image_tokens(config, folder)
    return tokens if config.model_type == "llava" else f"{AROUND}{WHOLE}{tokens}{AROUND}"


class ImageTextDecoder(Decoder):
    """A model of images and text of `transformers`; each prompt has one image."""

    def __init__(self, model: Any, layers: Sequence[nn.Module], pixels: PreparedPixels, end: int) -> None:
        super().__init__()
        self.model, self.pixels, self.end, self.takes = model, pixels, end, taken(model)
        self.several = model.config.model_type != "llava"
        """Whether the model takes several images for each prompt, in a dimension of their own."""
        self.width = model.get_input_embeddings().weight.shape[1]
        self.context = context_of(model.config)
        vars(self)["_layers"] = tuple(layers)  # already registered in the model
        self.places = nn.ModuleList()

    def stem(self) -> Sequence[nn.Module]:
        """The image tower, the projector and the table of tokens."""
        return [*self._beside(), self.model.get_input_embeddings()]

    def layers(self) -> Sequence[nn.Module]:
        """The layers of the language model."""
        return list(vars(self)["_layers"])

    def towers(self) -> Sequence[nn.Module]:
        """The image tower."""
        return self._beside()[:1]

    def blocks(self) -> Sequence[Attachable]:
        """The places in the language model."""
        return [each for each in self.places if isinstance(each, Attachable)]

    def word_embedding(self) -> nn.Embedding:
        """The table of tokens."""
        found: nn.Embedding = self.model.get_input_embeddings()
        return found

    def cache(self, rows: int, length: int) -> Cache:
        """The library's own cache, which grows."""
        return library_cache(self.model)

    def states(self, tokens: Tensor, present: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """The last states below the output layer."""
        base, beside = self.model.base_model, self._shown(inputs)
        found: Tensor = base(input_ids=tokens, **beside, **given(taken(base), present, tokens.shape[1], None, None))[
            "last_hidden_state"
        ]
        return found

    def continued(
        self, tokens: Tensor, present: Tensor, keep: int, cache: Cache | None, inputs: Mapping[str, Tensor] | None
    ) -> Tensor:
        """The logits of the model itself."""
        own = given(self.takes, present, tokens.shape[1], keep, cache)
        logits: Tensor = self.model(input_ids=tokens, **self._shown(inputs), **own)["logits"]
        return logits[:, -keep:]

    def _shown(self, inputs: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        if inputs is None or "image" not in inputs:
            return {}
        image = inputs["image"].to(self.model.get_input_embeddings().weight.dtype).div(255)
        pixels = self.pixels(image)
        return {"pixel_values": pixels.unsqueeze(1) if self.several else pixels}

    def _beside(self) -> list[nn.Module]:
        base = self.model.base_model
        return [getattr(base, name) for name in BESIDE if hasattr(base, name)]
