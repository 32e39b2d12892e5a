"""Any encoder in Hugging Face's format, with its own tokenizer and its processor's size and normalisation.

| reads                    | such as                     | the vector                                                 |
|--------------------------|-----------------------------|------------------------------------------------------------|
| text                     | BERT, RoBERTa, T5's encoder | its pooled output, or the mean over words                  |
| images                   | ViT, DINOv2, ConvNeXt       | its pooled output, or the class token, or the mean         |
| both, each on its own    | CLIP, SigLIP                | the image's features and the text's, side by side          |
| both, in one sequence    | ViLT                        | its pooled output, or the first position                   |

A pooled output is used only if the folder has the pooler's weights, and a folder in Sentence Transformers' format says
itself whether the mean over words or the first position is the vector. `transformers` is imported when such a model is
built, and reads only the folder: nothing is downloaded, and no code that comes with weights is executed.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import UserError
from holdfast.models import generative, library, places, weights
from holdfast.models.base import Encoder, Model, Network
from holdfast.models.heads import HiddenLayerClassifier
from holdfast.models.module import WrappedEncoder
from holdfast.models.pixels import PreparedPixels, side_of
from holdfast.models.transformer import lengths_to_present
from holdfast.models.vilt import Vilt, tiled
from holdfast.types import Head, Inputs, Wants

logger = logging.getLogger("holdfast")

POOLING = "1_Pooling/config.json"
"""The file that states how a folder in Sentence Transformers' format pools a sentence to one vector."""
READ = (
    weights.TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    weights.PROCESSOR,
    "processor_config.json",
    POOLING,
)
"""The files of a folder that are read beside the configuration and the weights."""
OTHER_TOKENIZERS = ("vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
"""Files of tokenizers that only `transformers` reads."""
OFFSET = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}
"""By model type: how many positions precede that of the first word."""
TOGETHER = 64
"""How many texts of similar length are read at once when nothing is learned."""
VACUOUS = "This is an image."
"""The text for images if a model reads text and the benchmark has none: CLiMB's."""


@dataclass(frozen=True)
class HuggingFace(Model):
    """An encoder in Hugging Face's format, from a folder or by name from the local cache: hf:FOLDER or hf:NAME."""

    version: ClassVar[int] = 2  # 2: Sentence Transformers' folders say how they pool
    places: ClassVar[frozenset[str]] = frozenset({"weights"})

    weights: str = ""
    """The folder, or a name in the local cache."""
    template: str = ""
    """How a prompt is written for a model that writes text, with {} for its text and <image> for its image; empty: by
    the chat template of the folder, or the text alone on a line."""
    checkpointing: bool = False
    """Whether a model that writes text computes activations again in the backward pass, to save memory."""

    def build(self, inputs: Inputs, heads: Mapping[str, Head]) -> Network:
        """The encoder with its heads; with its own output layer, if text is to be written."""
        if not any(asked.kind == "generate" for asked in heads.values()):
            return super().build(inputs, heads)
        with torch.random.fork_rng(devices=[]):
            encoder = generative.decoder(self._folder(), inputs, self.checkpointing)
        return Network(encoder, {name: encoder.head(asked) for name, asked in heads.items()})

    def encoder(self, inputs: Inputs) -> Encoder:
        """The model, with the weights of the folder."""
        folder = self._folder()
        config = weights.read_json(folder / "config.json")
        if config.get("model_type") == "vilt" and inputs.image and inputs.text:
            Vilt(weights=str(folder)).encoder(
                inputs
            )  # draws as many random numbers as our own ViLT, so that heads start the same
        with torch.random.fork_rng(devices=[]):
            return WrappedEncoder(pretrained(folder, inputs), inputs)

    def bare(self) -> nn.Module:
        """A model of its configuration, without the weights of the folder."""
        transformers = library.found()
        with library.quiet():
            config = transformers.AutoConfig.from_pretrained(self._folder(), **library.SAFELY)
            kind = generative.kind_of(weights.read_json(self._folder() / "config.json"))
            if kind is not None:  # with its output layer
                written: nn.Module = getattr(transformers, generative.CLASSES[kind]).from_config(config)
                return written
            found: nn.Module = _encoder_of(transformers.AutoModel.from_config(config, trust_remote_code=False))
            return found

    def wants(self) -> Wants:
        """The side of its images, its tokenizer, and how long a text it reads."""
        folder = self._folder()
        config = weights.read_json(folder / "config.json")
        tokenizer = _tokenizer(folder)
        if tokenizer is None and (other := [name for name in OTHER_TOKENIZERS if (folder / name).is_file()]):
            raise UserError(
                f"{folder} has its tokenizer as {other[0]}: save it as {weights.TOKENIZER}, as "
                "transformers.AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) does"
            )
        writes = generative.kind_of(config) is not None
        return Wants(
            side=side_of(folder, config),
            vocabulary=tokenizer,
            length=_length(folder, config),
            speaks=folder if writes else None,
            template=self.template,
            image_text=generative.image_text(folder, config) if writes else "",
        )

    def source(self) -> str:
        """A hash of every file of the folder that is read."""
        return weights.digest(self._folder(), *READ)

    def _folder(self) -> Path:
        return library.folder(self.weights)


def _tokenizer(folder: Path) -> Path | None:
    """The file of a folder's tokenizer or word pieces, if there is one."""
    return next((folder / name for name in (weights.TOKENIZER, weights.VOCABULARY) if (folder / name).is_file()), None)


def _length(folder: Path, config: Mapping[str, Any]) -> int | None:
    """The number of word pieces for which a model has positions; None for any number."""
    if config.get("model_type") == "vilt":
        return None  # its positions are repeated
    own = config.get("text_config") or config
    positions = own.get("max_position_embeddings")
    path = folder / "tokenizer_config.json"
    most = weights.read_json(path).get("model_max_length") if path.is_file() else None
    known = [] if positions is None else [positions - OFFSET.get(own.get("model_type", ""), 0)]
    known += [int(most)] if isinstance(most, int | float) and most < 1e6 else []  # 1e30 means that no number was given
    return min(known, default=None)


def _stated_pooling(folder: Path) -> str:
    """`mean` or `first`, as a folder in Sentence Transformers' format says; empty if it does not."""
    path = folder / POOLING
    stated = weights.read_json(path) if path.is_file() else {}
    modes = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
    found = [kind for name, kind in modes.items() if stated.get(name) is True]
    return found[0] if len(found) == 1 else ""


def pretrained(folder: Path, inputs: Inputs) -> Pretrained:
    """The model in a folder, as a module that takes our columns."""
    model, pools = loaded(folder)
    model = _encoder_of(model)
    reads = inspect.signature(model.forward).parameters
    has_text, has_image = inputs.text > 0, inputs.image is not None
    kind: type[Pretrained]
    if hasattr(model, "get_image_features") and hasattr(model, "get_text_features"):
        kind, lacks = DualModule, "" if has_text or has_image else "images or text"
    elif "pixel_values" in reads:
        kind, lacks = JointModule if "input_ids" in reads else ImageModule, "" if has_image else "images"
    elif "input_ids" in reads:
        kind, lacks = TextModule, "" if has_text else "text"
    else:
        raise UserError(f"{folder} holds a {type(model).__name__}, which reads neither text nor images")
    if lacks:
        raise UserError(f"{folder} holds a {type(model).__name__}, which needs {lacks}, but this benchmark has none")
    return kind(model, folder, inputs, pools)


def loaded(folder: Path) -> tuple[Any, bool]:
    """The library's model of a folder, and whether the folder has the weights of its pooler."""
    model, missing = library.loaded(folder, "AutoModel", optional="pooler")
    return model, not missing


def _encoder_of(model: Any) -> Any:
    """The model, or only its encoder if it also has a decoder."""
    return model.get_encoder() if model.config.is_encoder_decoder else model


class Pretrained(nn.Module, ABC):
    """A model of the library that takes our columns."""

    def __init__(self, model: Any, folder: Path, inputs: Inputs, pools: bool) -> None:
        super().__init__()
        self.stated = _stated_pooling(folder)
        """Whether the folder asks for the `mean` or the `first` of the states; empty: it does not say."""
        self.model, self.pools, self.config = model, pools and not self.stated, model.config
        raw = weights.read_json(folder / "config.json")
        self.pad = next((each for each in (self._of_text("pad_token_id"),) if each is not None), 0)
        masked = "pixel_mask" in inspect.signature(model.forward).parameters  # images keep their size then
        self.seen = PreparedPixels(folder, None if masked else side_of(folder, raw))
        pieces = self._of_text("vocab_size")
        if inputs.text and pieces is not None and not isinstance(self, ImageModule):
            if inputs.vocabulary > pieces:
                raise UserError(
                    f"{folder} knows {pieces} word pieces, but the texts have {inputs.vocabulary}: add its "
                    f"{weights.TOKENIZER}"
                )
            if _tokenizer(folder) is None:
                logger.warning(
                    "%s has no %s: texts are split into the benchmark's own word pieces, which mean nothing to trained "
                    "weights",
                    folder,
                    weights.TOKENIZER,
                )

    def _of_text(self, name: str) -> Any:
        """An entry of the text model's configuration."""
        return getattr(getattr(self.config, "text_config", self.config), name, None)

    def read(self, text: Tensor, text_length: Tensor, token_type_ids: Tensor | None = None) -> dict[str, Tensor]:
        """Word pieces as the model takes them, the mask of padding, and the segments if it knows them."""
        present = lengths_to_present(text_length, text.shape[1])
        text = text.where(present, self.pad)
        if "siglip" in self.config.model_type:  # it was trained on texts of full length, without masks
            return {
                "input_ids": functional.pad(
                    text, (0, self._of_text("max_position_embeddings") - text.shape[1]), value=self.pad
                )
            }
        found = {"input_ids": text, "attention_mask": present.long()}
        if token_type_ids is not None and (self._of_text("type_vocab_size") or 0) > 1:
            found["token_type_ids"] = token_type_ids
        return found

    def pooled(self, output: Any, mask: Tensor | None, first: bool) -> Tensor:
        """One vector for each row: the model's pooled output, or the first or the mean of its last states."""
        if isinstance(output, Tensor):
            return output
        pooled: Tensor | None = output.get("pooler_output") if self.pools else None
        states: Tensor = output["last_hidden_state"] if pooled is None else pooled
        if states.ndim == 4:
            return states.mean((2, 3))
        if states.ndim == 2:
            return states
        if first:
            return states[:, 0]
        present = torch.ones_like(states[..., :1]) if mask is None else mask.unsqueeze(-1).to(states)
        return (states * present).sum(1) / present.sum(1)

    def in_places(self, sees: Any, image: Tensor) -> Tensor:
        """The last states of the image model as a map (rows, width, down, across), without tokens that are not patches.

        A class token, a distillation token and registers come before the patches.
        """
        pixels = self.seen(image)
        states: Tensor = sees(pixel_values=pixels)["last_hidden_state"]
        if states.ndim == 4:
            return states
        patch = getattr(sees.config, "patch_size", None)
        down, across = (side // patch for side in pixels.shape[-2:]) if isinstance(patch, int) else (0, 0)
        if not 0 < down * across <= states.shape[1]:  # windows are merged in higher layers
            down = across = round(states.shape[1] ** 0.5)
        if down * across > states.shape[1]:
            raise UserError(
                f"the {states.shape[1]} states of {type(sees).__name__} do not form a grid: choose another model"
            )
        return states[:, -down * across :].transpose(1, 2).reshape(len(states), -1, down, across)

    def layers(self) -> Sequence[nn.Module]:
        """The repeated blocks."""
        return places.repeated(self.model)

    def word_embedding(self) -> nn.Module:
        """The table of word pieces."""
        found: nn.Module = self.model.get_input_embeddings()
        return found


class ImageModule(Pretrained):
    """A model of images."""

    def forward(self, image: Tensor) -> Tensor:
        """One vector for each image."""
        first = any(name.endswith(("cls_token", "class_embedding")) for name, _ in self.model.named_parameters())
        return self.pooled(self.model(pixel_values=self.seen(image)), None, first)

    def grid(self, image: Tensor) -> Tensor:
        """Its last states at their positions."""
        return self.in_places(self.model, image)


class TextModule(Pretrained):
    """A model of text."""

    def forward(self, text: Tensor, text_length: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """One vector for each text. If nothing is learned or drawn, texts of similar length are batched and trimmed."""
        if self.training or torch.is_grad_enabled() or len(text) <= TOGETHER:
            return self._vectors(text, text_length, token_type_ids)
        found, order = [], text_length.argsort(stable=True)
        for rows in torch.split(order, TOGETHER):
            longest = int(text_length[rows].max())
            kinds = None if token_type_ids is None else token_type_ids[rows, :longest]
            found.append(self._vectors(text[rows, :longest], text_length[rows], kinds))
        return torch.cat(found)[order.argsort()]

    def _vectors(self, text: Tensor, text_length: Tensor, token_type_ids: Tensor | None) -> Tensor:
        given = self.read(text, text_length, token_type_ids)
        return self.pooled(self.model(**given), given.get("attention_mask"), first=self.stated == "first")

    def words(self, text: Tensor, text_length: Tensor) -> Tensor:
        """One vector for each word piece."""
        states: Tensor = self.model(**self.read(text, text_length))["last_hidden_state"]
        return states


class DualModule(Pretrained):
    """A model of images and text with an encoder for each."""

    def forward(
        self, image: Tensor | None = None, text: Tensor | None = None, text_length: Tensor | None = None
    ) -> Tensor:
        """The concatenated features of image and text, or those of the one that the benchmark has."""
        found = []
        if image is not None:
            found.append(self.pooled(self.model.get_image_features(pixel_values=self.seen(image)), None, first=True))
        if text is not None and text_length is not None:
            found.append(self.pooled(self.model.get_text_features(**self.read(text, text_length)), None, first=True))
        return torch.cat(found, -1)

    def grid(self, image: Tensor) -> Tensor:
        """The last states of the image model, at their positions."""
        return self.in_places(self.model.vision_model, image)

    def layers(self) -> Sequence[nn.Module]:
        """The layers of both, alternating from the bottom up."""
        towers = [places.repeated(getattr(self.model, name)) for name in ("text_model", "vision_model")]
        return [layer for layer in chain.from_iterable(zip_longest(*towers)) if layer is not None]


class JointModule(Pretrained):
    """A model of images and text in one sequence. Without text in a benchmark, it reads `VACUOUS`."""

    vacuous: Tensor

    def __init__(self, model: Any, folder: Path, inputs: Inputs, pools: bool) -> None:
        super().__init__(model, folder, inputs, pools)
        self.register_buffer("vacuous", torch.tensor([[0] if inputs.text else _vacuous(folder)]), persistent=False)
        self.takes = inspect.signature(model.forward).parameters.keys()
        drops = any(isinstance(each, nn.Dropout) and each.p for each in model.modules())
        self.shuffles = self.config.model_type == "vilt" and not drops
        """Whether only the order of its patches is random, which affects nothing but rounding."""
        if self.config.model_type == "vilt":
            _as_ours(model, inputs)

    def forward(
        self,
        image: Tensor,
        pixel_mask: Tensor,
        text: Tensor | None = None,
        text_length: Tensor | None = None,
        image_number: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """One vector for each pair of image and text."""
        given = self._given(image, pixel_mask, text, text_length, token_type_ids)
        if image_number is None or "image_token_type_idx" not in self.takes:
            return self.pooled(self._pass(given), None, first=True)
        out: Tensor | None = None
        for number in range(int(image_number.max()) + 1):
            rows = (image_number == number).nonzero().squeeze(1)
            own = {name: column[rows] for name, column in given.items()}
            found = self.pooled(self._pass(own, image_token_type_idx=1 + number), None, first=True)
            out = found.new_empty(len(image), found.shape[-1]) if out is None else out
            out = out.index_copy(0, rows, found)
        assert out is not None, "there are images"
        return out

    def words(self, image: Tensor, pixel_mask: Tensor, text: Tensor, text_length: Tensor) -> Tensor:
        """One vector for each word piece."""
        states: Tensor = self._pass(self._given(image, pixel_mask, text, text_length))["last_hidden_state"]
        return states[:, : text.shape[1]]

    def classifier(self, width: int, asked: Head) -> nn.Module | None:
        """CLiMB's classifier on ViLT."""
        if self.config.model_type != "vilt":
            return None
        return HiddenLayerClassifier(width, asked.outputs, 2 * self.config.hidden_size, asked.growing)

    def _pass(self, given: Mapping[str, Tensor], **more: int) -> Any:
        """One pass, with the same order of patches each time."""
        if not self.shuffles:
            return self.model(**given, **more)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            return self.model(**given, **more)

    def _given(
        self,
        image: Tensor,
        pixel_mask: Tensor,
        text: Tensor | None,
        text_length: Tensor | None,
        token_type_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        if text is None or text_length is None:
            text = self.vacuous.expand(len(image), -1)
            text_length = text.new_full((len(text),), text.shape[1])
        given = {
            "pixel_values": self.seen(image),
            "pixel_mask": pixel_mask,
            **self.read(text, text_length, token_type_ids),
        }
        return {name: column for name, column in given.items() if name in self.takes}


@lru_cache(maxsize=4)
def _vacuous(folder: Path) -> list[int]:
    """The word pieces of `VACUOUS`; a single one if the folder has no tokenizer."""
    if _tokenizer(folder) is None:
        return [0]
    found = library.found().AutoTokenizer
    with library.quiet():
        try:
            pieces: list[int] = found.from_pretrained(folder, **library.SAFELY)(VACUOUS)["input_ids"]
        except Exception:  # no suitable one: the library fails in many ways
            return [0]
    return pieces


def _as_ours(model: Any, inputs: Inputs) -> None:
    """Add to ViLT a type for a second image, initialised as the first one's, and positions for longer texts."""
    kinds, text = model.embeddings.token_type_embeddings, model.embeddings.text_embeddings
    if kinds.num_embeddings == 2:
        with torch.no_grad():
            kinds.weight = nn.Parameter(torch.cat([kinds.weight, kinds.weight[1:]]))
        kinds.num_embeddings = 3
    table = text.position_embeddings
    if inputs.text > table.num_embeddings:
        table.weight = nn.Parameter(tiled(table.weight.detach(), inputs.text))
        table.num_embeddings = inputs.text
        text.position_ids = torch.arange(inputs.text).expand(1, -1)
        text.token_type_ids = torch.zeros_like(text.position_ids)
