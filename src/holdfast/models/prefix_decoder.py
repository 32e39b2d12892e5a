"""A causal language model as a decoder, which reads an image as a prefix of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.adapters import Attachable
from holdfast.models.base import Encoder
from holdfast.models.causal import Causal
from holdfast.models.decoder import Cache, Decoder
from holdfast.types import Inputs


class PrefixDecoder(Decoder):
    """A causal language model, with an image tower and a projector before it if there are images."""

    def __init__(
        self,
        language: Causal,
        end: int,
        tower: Encoder | None = None,
        cells: int = 0,
        places: Sequence[Attachable] | None = None,
    ) -> None:
        super().__init__()
        self.language, self.tower, self.end = language, tower, end
        self.cells = cells
        """The maximum number of positions of a prefix."""
        self.width = language.width
        self.projector: nn.Module | None = None
        if tower is not None:
            self.projector = nn.Sequential(
                nn.Linear(tower.width, self.width), nn.GELU(), nn.Linear(self.width, self.width)
            )
        self.places = None if places is None else nn.ModuleList(places)

    def stem(self) -> Sequence[nn.Module]:
        """The modules that turn tokens and images into vectors."""
        image = [] if self.tower is None else [self.tower]
        return [*image, *([] if self.projector is None else [self.projector]), *self.language.stem()]

    def layers(self) -> Sequence[nn.Module]:
        """The layers of the language model."""
        return self.language.layers()

    def towers(self) -> Sequence[nn.Module]:
        """The image tower."""
        return [] if self.tower is None else [self.tower]

    def blocks(self) -> Sequence[Attachable]:
        """The places in the language model."""
        found = self.language.layers() if self.places is None else self.places
        return [each for each in found if isinstance(each, Attachable)]

    def grid(self, images: Tensor) -> Tensor:
        """The feature map of the image tower."""
        return super().grid(images) if self.tower is None else self.tower.grid(images)

    def word_embedding(self) -> nn.Embedding:
        """The table of tokens."""
        return self.language.embedding()

    def cache(self, rows: int, length: int) -> Cache:
        """A cache with space for the prefix."""
        return self.language.cache(rows, self.cells + length)

    def states(self, tokens: Tensor, present: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """The last states of the prompt, without those of the prefix."""
        x = self._vectors(tokens, inputs)
        return self.language.states(x, _after(present, x.shape[1] - tokens.shape[1]))

    def continued(
        self, tokens: Tensor, present: Tensor, keep: int, cache: Cache | None, inputs: Mapping[str, Tensor] | None
    ) -> Tensor:
        """The logits of the language model."""
        x = self._vectors(tokens, inputs)
        before = x.shape[1] - tokens.shape[1]
        if cache is not None:
            cache.before += before
            before = cache.before
        return self.language.read(x, _after(present, before), keep, cache)

    def _vectors(self, tokens: Tensor, inputs: Mapping[str, Tensor] | None) -> Tensor:
        x: Tensor = self.language.embedding()(tokens)
        if inputs is None or self.tower is None or self.projector is None:
            return x
        images = inputs["image"]
        cells = self.tower.grid(images.flatten(0, -4)).flatten(2).transpose(1, 2)
        prefix = self.projector(cells.reshape(len(images), -1, cells.shape[-1]))
        return torch.cat([prefix.to(x.dtype), x], 1)


def _after(present: Tensor, before: int) -> Tensor:
    """Which positions are not padding, after a prefix that has none."""
    return torch.cat([present.new_ones(len(present), before), present], 1) if before else present


def check_context(context: int | None, cells: int, inputs: Inputs, advice: str) -> None:
    """Raise a UserError if prompt and answer do not fit into a model's context."""
    cells *= inputs.images
    needed = cells + inputs.text + inputs.answer
    if context is not None and needed > context:
        parts = (
            f"{cells} of the image, " * bool(cells) + f"{inputs.text} of the prompt and {inputs.answer} of the answer"
        )
        raise UserError(
            f"the model reads {context} tokens, but a sequence needs {needed}: {parts}. Set a shorter "
            f"benchmark.length or benchmark.longest, or {advice}"
        )
