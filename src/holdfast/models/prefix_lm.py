"""A causal language model that reads an image as a prefix: a projector turns the image's features into vectors.

Without images, it is a plain language model. The language model and the image tower are ours, trained from scratch, or
come from folders in Hugging Face's format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch

from holdfast.errors import UserError
from holdfast.models import generative, library
from holdfast.models.base import Encoder, Model
from holdfast.models.causal import CausalBlocks
from holdfast.models.huggingface import HuggingFace
from holdfast.models.prefix_decoder import PrefixDecoder, check_context
from holdfast.models.vit import Vit
from holdfast.types import Between, Inputs, Wants


@dataclass(frozen=True)
class PrefixLm(Model):
    """A causal language model, 12 x 768, after a prefix of image features if there are images."""

    version: ClassVar[int] = 1
    places: ClassVar[frozenset[str]] = frozenset({"language", "tower"})
    _cells: ClassVar[int] = 14

    width: Annotated[int, Between(1)] = 768
    """The width of the hidden states."""
    depth: Annotated[int, Between(1)] = 12
    """The number of transformer blocks."""
    heads: Annotated[int, Between(1)] = 12
    """The number of attention heads in each block."""
    hidden: Annotated[int, Between(1)] = 3072
    """The width of the hidden layer in each feed-forward network."""
    context: Annotated[int, Between(1)] = 1024
    """The maximum number of positions, of the image, the prompt and the answer together."""
    patch: Annotated[int, Between(1)] = 16
    """The side of an image patch in pixels."""
    tower_depth: Annotated[int, Between(1)] = 6
    """The number of blocks of the image tower, a ViT of the same width."""
    dropout: Annotated[float, Between(0, 1)] = 0.1
    """The dropout in every part."""
    checkpointing: bool = False
    """Whether the activations within each block are computed again in the backward pass, to save memory."""
    language: str = ""
    """The folder of a causal language model in Hugging Face's format, in place of ours, or its name in the local
    cache."""
    template: str = ""
    """How a prompt is written for such a model, with {} for its text; empty: by its chat template, or the text alone
    on a line."""
    tower: str = ""
    """The folder of an image encoder in Hugging Face's format, in place of ours, or its name in the local cache."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A language model for these texts.

        >>> TinyPrefixLm().encoder(Inputs(text=8, vocabulary=50, answer=4)).width
        64
        """
        if not inputs.text:
            raise UserError("a language model needs text, but this benchmark has none: choose another model")
        if self.width % self.heads:
            raise UserError(f"model.width is {self.width}, which is not a multiple of model.heads, {self.heads}")
        tower, cells = self._tower(inputs)
        if self.language:
            with torch.random.fork_rng(devices=[]):
                language, blocks = generative.causal(library.folder(self.language), inputs, self.checkpointing)
            check_context(language.context, cells, inputs, "choose a language model that reads more")
            return PrefixDecoder(language, inputs.end, tower, cells * inputs.images, blocks)
        check_context(self.context, cells, inputs, "set model.context higher")
        sizes = (self.context, self.width, self.depth, self.heads, self.hidden, self.dropout, self.checkpointing)
        return PrefixDecoder(CausalBlocks(inputs.vocabulary, *sizes), inputs.end, tower, cells * inputs.images)

    def _tower(self, inputs: Inputs) -> tuple[Encoder | None, int]:
        """The image tower, and the length of its prefix."""
        if inputs.image is None:
            return None, 0
        if self.tower:
            found = HuggingFace(self.tower).encoder(Inputs(inputs.image))
            with torch.no_grad():
                return found, found.grid(torch.zeros(1, *inputs.image)).flatten(2).shape[-1]
        head = self.width // self.heads
        sizes = (self.patch, self.width, self.tower_depth, self.heads, head, self.hidden, self.dropout)
        tower = Vit(*sizes).encoder(inputs)
        _, height, width = inputs.image
        return tower, (height // self.patch) * (width // self.patch)

    def wants(self) -> Wants:
        """Images of 14x14 patches, or of the image encoder's size, and the language model's tokens."""
        side = HuggingFace(self.tower).wants().side if self.tower else None
        spoken = Wants(side=side or self._cells * self.patch)
        if not self.language:
            return spoken
        own = HuggingFace(self.language, template=self.template).wants()
        return replace(spoken, length=own.length, speaks=own.speaks, template=own.template)

    def source(self) -> str:
        """A hash of the weights that it starts from."""
        return " ".join(HuggingFace(each).source() for each in (self.language, self.tower) if each)


@dataclass(frozen=True)
class TinyPrefixLm(PrefixLm):
    """A causal language model, 3 x 64, for two CPU cores; images have 4x4 patches."""

    _cells: ClassVar[int] = 4

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 3
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 128
    context: Annotated[int, Between(1)] = 256
    patch: Annotated[int, Between(1)] = 8
    tower_depth: Annotated[int, Between(1)] = 2
    dropout: Annotated[float, Between(0, 1)] = 0.0
