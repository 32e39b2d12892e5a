"""VL-BERT: each word and each box carries language and vision at once, in one stream through a post-norm transformer.

Paper: Su et al. 2020, "VL-BERT: Pre-training of Generic Visual-Linguistic Representations"; VisCOLL trains it from
scratch, with 6 layers of width 384, to fill in masked phrases.
Equation: an element is LN(token + LN(W f) + segment + position). A word's f is the whole image's feature; a box's token
is [IMG] and its f is the detector's feature. The words come first, then the boxes, then [END].

VisCOLL's paper leaves these points open. We follow its public code, and with that our model has the number of
parameters stated in the paper, 23,564,040 with 30,600 word pieces:

- The whole image's feature is that of the first region, whatever its box. A set whose first box is not the whole image
  may use the mean of the regions instead (`whole="mean"`).
- Boxes have no positions of their own: all have the one after the text, and [END] the next; their order does not
  matter.
- Words are in segment 0, boxes and [END] in segment 2; segment 1, a second sentence, is not used.
- One layer projects the features of all regions; words and boxes normalise its output with separate norms, which
  start at 0 (`visual_scale`): the model starts blind, and learns how much to look.
- Boxes carry no position in the image. VL-BERT itself adds to f the sines and cosines of the box's corners; `geometry`
  does so.
- No pooling layer is used; an example's vector is its first word's.

We differ in one point: there, [IMG] starts with values fifty times as large as other tokens; here it starts like them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Encoder, Model
from holdfast.models.bert import check_heads, check_text
from holdfast.models.transformer import TransformerBlock, aligned, initialise, key_mask, lengths_to_present
from holdfast.models.uniter import words_and_regions
from holdfast.types import Between, Head, Inputs, Wants

SEGMENTS = 3
WAVES = 64
"""The number of wavelengths that encode a corner's position."""


def waves(boxes: Tensor) -> Tensor:
    """Corners (..., 4), as shares of the image's sides, as sines and cosines (..., 8 x WAVES).

    >>> found = waves(torch.tensor([0.0, 0.0, 0.5, 1.0]))
    >>> found.shape, found[:WAVES].sum().item(), found[WAVES : 2 * WAVES].sum().item()
    (torch.Size([512]), 0.0, 64.0)
    """
    lengths = 1000 ** (torch.arange(WAVES, dtype=boxes.dtype, device=boxes.device) / WAVES)
    angles = 100 * boxes.unsqueeze(-1) / lengths
    return torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class Embedding(nn.Module):
    """Words, boxes and [END], each as token + vision + segment + position."""

    def __init__(self, recipe: VLBert, vocabulary: int, features: int) -> None:
        super().__init__()
        width = recipe.width
        self.whole = recipe.whole
        self.words = nn.Embedding(vocabulary, width)
        self.image = nn.Embedding(1, width)
        self.end = nn.Embedding(1, width)
        self.positions = nn.Embedding(recipe.positions, width)
        self.segments = nn.Embedding(SEGMENTS, width)
        self.feature = nn.Linear(features, width)
        self.geometry = nn.Linear(8 * WAVES, width, bias=False) if recipe.geometry else None
        self.word_feature_norm = nn.LayerNorm(width, eps=1e-12)
        self.box_feature_norm = nn.LayerNorm(width, eps=1e-12)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(recipe.dropout)

    def forward(self, inputs: Mapping[str, Tensor], boxed: Tensor) -> Tensor:
        """Vectors (rows, words + boxes + 1, width); `boxed` (rows, boxes) says which boxes are not padding."""
        text, ends = inputs["text"], inputs["text_length"].long()
        kind = self.feature.weight.dtype
        seen = self.feature(inputs["regions"].to(kind))
        if self.geometry is not None:
            seen = seen + self.geometry(waves(inputs["boxes"].to(kind)))
        # Terms that are the same in all rows are summed first: (length, width), not (rows, length, width).
        place = self.positions.weight[: text.shape[1]] + self.segments.weight[0]
        words = self.words(text) + self.word_feature_norm(self._whole(seen, boxed)) + place
        last = self.positions(torch.stack([ends, ends + 1], dim=1)) + self.segments.weight[2]
        boxes = self.box_feature_norm(seen) + (last[:, :1] + self.image.weight)
        end = last[:, 1:] + self.end.weight
        out: Tensor = self.dropout(self.norm(torch.cat([words, boxes, end], dim=1)))
        return out

    def _whole(self, seen: Tensor, boxed: Tensor) -> Tensor:
        """The whole image, from its projected regions (rows, boxes, width): (rows, 1, width)."""
        there = boxed.unsqueeze(-1).to(seen.dtype)
        if self.whole == "first":
            return seen[:, :1] * there[:, :1]
        return (seen * there).sum(1, keepdim=True) / there.sum(1, keepdim=True).clamp(min=1)


class VLBertEncoder(Encoder):
    """A transformer over words and boxes; an example's vector is its first word's."""

    recordable = True
    masks_text = True

    def __init__(self, recipe: VLBert, vocabulary: int, features: int) -> None:
        super().__init__()
        self.width = width = recipe.width
        dropout = recipe.dropout
        self.embedding = Embedding(recipe, vocabulary, features)
        self.stack = nn.ModuleList(
            TransformerBlock(
                width, recipe.heads, recipe.hidden, norm="post", dropout=dropout, attention_dropout=dropout
            )
            for _ in range(recipe.depth)
        )
        initialise(self, self.width)
        for norm in (self.embedding.word_feature_norm, self.embedding.box_feature_norm):
            nn.init.constant_(norm.weight, recipe.visual_scale)

    def stem(self) -> Sequence[nn.Module]:
        """The embedding."""
        return [self.embedding]

    def layers(self) -> Sequence[TransformerBlock]:
        """The blocks."""
        return list(self.stack)  # type: ignore[arg-type]

    def word_embedding(self) -> nn.Embedding:
        """The embedding of word pieces."""
        return self.embedding.words

    def head(self, asked: Head) -> nn.Module:
        """A head over words, or over examples of one image and one text."""
        if asked.kind == "choose" or asked.images > 1:
            raise UserError("VL-BERT reads one image and one text per example: choose ViLT or UNITER for this task")
        return super().head(asked)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each example (rows, width)."""
        return self.words(inputs)[:, 0]

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each word piece (rows, length, width)."""
        length = inputs["text"].shape[1]
        spoken = lengths_to_present(inputs["text_length"], length)
        boxed = lengths_to_present(inputs["region_count"], inputs["regions"].shape[1])
        mask: Tensor | None = key_mask(torch.cat([spoken, boxed, torch.ones_like(spoken[:, :1])], dim=1))
        x, mask = aligned(self.embedding(inputs, boxed), mask)
        for block in self.stack[:-1]:
            x = block(x, mask)
        last = self.layers()[-1]
        if len(last.added):  # modules added to a block do not support a source
            return last(x, mask)[:, :length]  # type: ignore[no-any-return]
        return last(x[:, :length], mask, x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class VLBert(Model):
    """VL-BERT as VisCOLL trains it, over region features."""

    version: ClassVar[int] = 1

    width: Annotated[int, Between(1)] = 384
    """The width of the hidden states."""
    depth: Annotated[int, Between(1)] = 6
    """The number of transformer blocks."""
    heads: Annotated[int, Between(1)] = 6
    """The number of attention heads in each block; they share the width."""
    hidden: Annotated[int, Between(1)] = 1536
    """The width of the hidden layer in each feed-forward network."""
    positions: Annotated[int, Between(3)] = 512
    """The longest text in word pieces, plus two positions for boxes and [END]."""
    dropout: Annotated[float, Between(0, 1)] = 0.1
    """The probability with which activations are dropped in training."""
    whole: Literal["first", "mean"] = "first"
    """The feature of the whole image: that of the first region, or the mean of all regions."""
    visual_scale: Annotated[float, Between(0)] = 0.0
    """The initial weight of visual features; 0: the model starts blind."""
    geometry: bool = False
    """Whether the model gets the positions of boxes."""

    def encoder(self, inputs: Inputs) -> VLBertEncoder:
        """A VL-BERT for these words and regions.

        >>> inputs = Inputs(text=20, vocabulary=100, regions=(36, 2048))
        >>> TinyVLBert().encoder(inputs).word_embedding().num_embeddings
        100
        """
        features = words_and_regions("VL-BERT", inputs)
        check_heads(self.width, self.heads)
        check_text(inputs.text, self.positions - 2, "VL-BERT")
        return VLBertEncoder(self, inputs.vocabulary, features)

    def wants(self) -> Wants:
        """Region features."""
        return Wants(sees="regions")


@dataclass(frozen=True)
class TinyVLBert(VLBert):
    """A VL-BERT for two CPU cores."""

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 2
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 256
    positions: Annotated[int, Between(3)] = 66
    dropout: Annotated[float, Between(0, 1)] = 0.0
