"""LXMERT: an encoder for words and one for regions, then layers in which each attends to the other.

Paper: Tan and Bansal 2019, "LXMERT: Learning Cross-Modality Encoder Representations from Transformers"; VisCOLL trains
it from scratch, with 9 language, 5 object-relationship and 5 cross-modality layers of width 384.
Equation: a region is (LN(W f) + LN(V b)) / 2, with f the detector's feature of its box and b the box's corners as
shares of the image's sides. In a cross-modality layer, words attend to regions and regions to words with the same
attention weights, both from the output of the layer below; then each has its own post-norm block.

Two differences from the public code are deliberate. VisCOLL's lets words attend to the padding of regions; here it
is masked. There, position 0 and type 0 count as padding and never learn; here they learn like the others.
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
from holdfast.models.bert import TextEmbedding, check_heads, check_text
from holdfast.models.transformer import Attention, TransformerBlock, aligned, initialise, key_mask, lengths_to_present
from holdfast.models.uniter import words_and_regions
from holdfast.types import Between, Head, Inputs, Wants


class BoxEmbedding(nn.Module):
    """The mean of a box's feature and its position, each normalised."""

    def __init__(self, features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.feature = nn.Linear(features, width)
        self.feature_norm = nn.LayerNorm(width, eps=1e-12)
        self.place = nn.Linear(4, width)
        self.place_norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, regions: Tensor, boxes: Tensor) -> Tensor:
        """Map features (rows, boxes, features) and corners (rows, boxes, 4) to vectors (rows, boxes, width)."""
        kind = self.feature.weight.dtype
        seen = self.feature_norm(self.feature(regions.to(kind)))
        where = self.place_norm(self.place(boxes.to(kind)))
        out: Tensor = self.dropout((seen + where) / 2)
        return out


class Crossing(nn.Module):
    """A cross-modality layer: one attention for both directions, then a block for words and a block for regions."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, width, dropout)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)
        self.language = _block(width, heads, hidden, dropout)
        self.vision = _block(width, heads, hidden, dropout)

    def forward(
        self, words: Tensor, seen: Tensor, spoken: Tensor | None, boxed: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Words (rows, length, width) and regions (rows, boxes, width), after attending to each other."""
        regions: Tensor = self.vision(self._look(seen, words, spoken), boxed)
        return self.words(words, seen, spoken, boxed), regions

    def words(self, words: Tensor, seen: Tensor, spoken: Tensor | None, boxed: Tensor | None) -> Tensor:
        """The words alone: the last layer's regions are not used."""
        out: Tensor = self.language(self._look(words, seen, boxed), spoken)
        return out

    def _look(self, x: Tensor, source: Tensor, mask: Tensor | None) -> Tensor:
        out: Tensor = self.norm(x + self.dropout(self.attention(x, mask, source)))
        return out


def _block(width: int, heads: int, hidden: int, dropout: float) -> TransformerBlock:
    return TransformerBlock(width, heads, hidden, norm="post", dropout=dropout, attention_dropout=dropout)


class LxmertEncoder(Encoder):
    """Two encoders with cross-attention; an example's vector is its first word's, through a tanh layer."""

    recordable = True
    masks_text = True

    def __init__(self, recipe: Lxmert, vocabulary: int, features: int) -> None:
        super().__init__()
        self.width = recipe.width
        sizes = recipe.width, recipe.heads, recipe.hidden, recipe.dropout
        self.text = TextEmbedding(vocabulary, recipe.positions, recipe.width, recipe.dropout)
        self.image = BoxEmbedding(features, recipe.width, recipe.dropout)
        self.language = nn.ModuleList(_block(*sizes) for _ in range(recipe.language))
        self.vision = nn.ModuleList(_block(*sizes) for _ in range(recipe.vision))
        self.crossing = nn.ModuleList(Crossing(*sizes) for _ in range(recipe.crossing))
        self.pooler = nn.Linear(recipe.width, recipe.width)
        initialise(self, self.width)

    def stem(self) -> Sequence[nn.Module]:
        """The embeddings of words and regions."""
        return [self.text, self.image]

    def layers(self) -> Sequence[nn.Module]:
        """The two encoders' blocks by relative height, so that the lowest come from both, then the cross-modality
        layers.
        """
        towers = [self.language, self.vision]
        heights = [((level + 1) / len(tower), block) for tower in towers for level, block in enumerate(tower)]
        return [*(block for _, block in sorted(heights, key=lambda pair: pair[0])), *self.crossing]

    def blocks(self) -> Sequence[Attachable]:
        """All blocks but the last one for regions, which no head reads: additions there would never learn."""
        last = self.crossing[-1]
        assert isinstance(last, Crossing)
        return [block for block in super().blocks() if block is not last.vision]

    def word_embedding(self) -> nn.Embedding:
        """The embedding of word pieces."""
        assert self.text.words is not None
        return self.text.words

    def head(self, asked: Head) -> nn.Module:
        """A head over words, or over examples of one image and one text."""
        if asked.kind == "choose" or asked.images > 1:
            raise UserError("LXMERT reads one image and one text per example: choose ViLT or UNITER for this task")
        return super().head(asked)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each example (rows, width)."""
        return torch.tanh(self.pooler(self.words(inputs)[:, 0]))

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each word piece (rows, length, width)."""
        words, seen, spoken, boxed = self._below(inputs)
        last = self.crossing[-1]
        assert isinstance(last, Crossing)
        return last.words(words, seen, spoken, boxed)[:, : inputs["text"].shape[1]]

    def words_and_boxes(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """A vector for each word piece and one for each region, after the last layer."""
        words, seen, spoken, boxed = self._below(inputs)
        words, seen = self.crossing[-1](words, seen, spoken, boxed)
        return words[:, : inputs["text"].shape[1]], seen[:, : inputs["regions"].shape[1]]

    def _below(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """The inputs of the last layer, words and regions, and the masks of both."""
        text, regions = inputs["text"], inputs["regions"]
        read = key_mask(lengths_to_present(inputs["text_length"], text.shape[1]))
        there = key_mask(lengths_to_present(inputs["region_count"], regions.shape[1]))
        words, spoken = aligned(self.text(text), read)
        seen, boxed = aligned(self.image(regions, inputs["boxes"]), there)
        for block in self.language:
            words = block(words, spoken)
        for block in self.vision:
            seen = block(seen, boxed)
        for crossing in self.crossing[:-1]:
            words, seen = crossing(words, seen, spoken, boxed)
        return words, seen, spoken, boxed


@dataclass(frozen=True)
class Lxmert(Model):
    """LXMERT as VisCOLL trains it, over region features."""

    version: ClassVar[int] = 1

    width: Annotated[int, Between(1)] = 384
    """The width of the hidden states."""
    language: Annotated[int, Between(1)] = 9
    """The number of layers that read words alone."""
    vision: Annotated[int, Between(1)] = 5
    """The number of layers that read regions alone."""
    crossing: Annotated[int, Between(1)] = 5
    """The number of cross-modality layers."""
    heads: Annotated[int, Between(1)] = 6
    """The number of attention heads in each block; they share the width."""
    hidden: Annotated[int, Between(1)] = 1536
    """The width of the hidden layer in each feed-forward network."""
    positions: Annotated[int, Between(1)] = 512
    """The longest text in word pieces."""
    dropout: Annotated[float, Between(0, 1)] = 0.1
    """The probability with which activations are dropped in training."""

    def encoder(self, inputs: Inputs) -> LxmertEncoder:
        """An LXMERT for these words and regions.

        >>> inputs = Inputs(text=20, vocabulary=100, regions=(36, 2048))
        >>> len(TinyLxmert().encoder(inputs).layers())
        6
        """
        features = words_and_regions("LXMERT", inputs)
        check_heads(self.width, self.heads)
        check_text(inputs.text, self.positions, "LXMERT")
        return LxmertEncoder(self, inputs.vocabulary, features)

    def wants(self) -> Wants:
        """Region features."""
        return Wants(sees="regions")


@dataclass(frozen=True)
class TinyLxmert(Lxmert):
    """An LXMERT for two CPU cores."""

    width: Annotated[int, Between(1)] = 64
    language: Annotated[int, Between(1)] = 2
    vision: Annotated[int, Between(1)] = 2
    crossing: Annotated[int, Between(1)] = 2
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 256
    positions: Annotated[int, Between(1)] = 64
    dropout: Annotated[float, Between(0, 1)] = 0.0
