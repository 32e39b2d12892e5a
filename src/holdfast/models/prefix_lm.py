"""A causal language model that reads an image as a prefix: a projector turns the image's features into vectors.

Without images, it is a plain language model. The language model and the image tower are ours, trained from scratch, or
come from folders in Hugging Face's format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.adapters import Attachable
from holdfast.models.base import Encoder, Model
from holdfast.models.causal import Causal, CausalBlocks
from holdfast.models.decoder import Cache, Decoder
from holdfast.models.vit import Vit
from holdfast.types import Between, Inputs, Wants


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
        self.language, self.tower, self.cells, self.end = language, tower, cells, end
        self.width = language.width
        self.projector: nn.Module | None = None
        if tower is not None:
            self.projector = nn.Sequential(
                nn.Linear(tower.width, self.width), nn.GELU(), nn.Linear(self.width, self.width)
            )
        self.places = None if places is None else nn.ModuleList(places)

    def stem(self) -> Sequence[nn.Module]:
        """What turns tokens and images into vectors."""
        image = [] if self.tower is None else [self.tower]
        return [*image, *([] if self.projector is None else [self.projector]), *self.language.stem()]

    def layers(self) -> Sequence[nn.Module]:
        """Those of the language model."""
        return self.language.layers()

    def towers(self) -> Sequence[nn.Module]:
        """The image tower."""
        return [] if self.tower is None else [self.tower]

    def blocks(self) -> Sequence[Attachable]:
        """The places in the language model."""
        found = self.language.layers() if self.places is None else self.places
        return [each for each in found if isinstance(each, Attachable)]

    def grid(self, images: Tensor) -> Tensor:
        """The image tower's."""
        return super().grid(images) if self.tower is None else self.tower.grid(images)

    def word_embedding(self) -> nn.Embedding:
        """The table of tokens."""
        return self.language.embedding()

    def cache(self, rows: int, length: int) -> Cache:
        """One with room for the prefix."""
        return self.language.cache(rows, self.cells + length)

    def states(self, tokens: Tensor, present: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """The last states of the prompt, after those of the prefix."""
        return self.language.states(self._vectors(tokens, inputs), self._seen(present))

    def continued(
        self, tokens: Tensor, present: Tensor, keep: int, cache: Cache | None, inputs: Mapping[str, Tensor] | None
    ) -> Tensor:
        """The logits of the language model."""
        return self.language.read(self._vectors(tokens, inputs), self._seen(present), keep, cache)

    def _vectors(self, tokens: Tensor, inputs: Mapping[str, Tensor] | None) -> Tensor:
        x: Tensor = self.language.embedding()(tokens)
        if inputs is None or self.tower is None or self.projector is None:
            return x
        prefix = self.projector(self.tower.grid(inputs["image"]).flatten(2).transpose(1, 2))
        return torch.cat([prefix.to(x.dtype), x], 1)

    def _seen(self, present: Tensor) -> Tensor:
        if not self.cells:
            return present
        return torch.cat([present.new_ones(len(present), self.cells), present], 1)


@dataclass(frozen=True)
class PrefixLm(Model):
    """A causal language model, 12 x 768, after a prefix of image features if there are images."""

    version: ClassVar[int] = 1

    width: Annotated[int, Between(1)] = 768
    """The width of the hidden states."""
    depth: Annotated[int, Between(1)] = 12
    """The number of transformer blocks."""
    heads: Annotated[int, Between(1)] = 12
    """The number of attention heads in each block."""
    hidden: Annotated[int, Between(1)] = 3072
    """The width of the hidden layer in each feed-forward network."""
    context: Annotated[int, Between(1)] = 1024
    """The most positions: those of the image, of the prompt and of the answer together."""
    patch: Annotated[int, Between(1)] = 16
    """The side of an image patch in pixels."""
    tower_depth: Annotated[int, Between(1)] = 6
    """The number of blocks of the image tower, a ViT of the same width."""
    dropout: Annotated[float, Between(0, 1)] = 0.1
    """The dropout in every part."""
    checkpointing: bool = False
    """Whether the activations within each block are computed again in the backward pass, to save memory."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A language model for these texts.

        >>> TinyPrefixLm().encoder(Inputs(text=8, vocabulary=50, answer=4)).width
        64
        """
        if not inputs.text:
            raise UserError("a language model needs text, and this benchmark has none: choose another model")
        if self.width % self.heads:
            raise UserError(f"model.width is {self.width}, which is not a multiple of model.heads, {self.heads}")
        tower, cells = self._tower(inputs)
        check_context(self.context, cells, inputs, "set model.context higher")
        sizes = (self.context, self.width, self.depth, self.heads, self.hidden, self.dropout, self.checkpointing)
        return PrefixDecoder(CausalBlocks(inputs.vocabulary, *sizes), inputs.end, tower, cells)

    def _tower(self, inputs: Inputs) -> tuple[Encoder | None, int]:
        """The image tower, and the length of its prefix."""
        if inputs.image is None:
            return None, 0
        head = self.width // self.heads
        sizes = (self.patch, self.width, self.tower_depth, self.heads, head, self.hidden, self.dropout)
        tower = Vit(*sizes).encoder(inputs)
        _, height, width = inputs.image
        return tower, (height // self.patch) * (width // self.patch)

    def wants(self) -> Wants:
        """Images of 14x14 patches."""
        return Wants(side=14 * self.patch)


def check_context(context: int | None, cells: int, inputs: Inputs, advice: str) -> None:
    """Raise a UserError if prompt and answer do not fit into a model's context."""
    needed = cells + inputs.text + inputs.answer
    if context is not None and needed > context:
        parts = (
            f"{cells} of the image, " * bool(cells) + f"{inputs.text} of the prompt and {inputs.answer} of the answer"
        )
        raise UserError(
            f"the model reads {context} tokens, and a sequence needs {needed}: {parts}. Set a shorter "
            f"benchmark.length or benchmark.longest, or {advice}"
        )


@dataclass(frozen=True)
class TinyPrefixLm(PrefixLm):
    """A causal language model, 3 x 64, for two CPU cores."""

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 3
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 128
    context: Annotated[int, Between(1)] = 256
    patch: Annotated[int, Between(1)] = 8
    tower_depth: Annotated[int, Between(1)] = 2
    dropout: Annotated[float, Between(0, 1)] = 0.0

    def wants(self) -> Wants:
        """Images of 4x4 patches."""
        return Wants(side=4 * self.patch)
