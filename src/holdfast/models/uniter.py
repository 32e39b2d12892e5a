"""UNITER: word pieces and regions in one stream through a post-norm transformer.

Paper: Chen et al. 2020, "UNITER: UNiversal Image-TExt Representation Learning"; CLiMB's second encoder.
Equation: a region is LN(LN(W f) + LN(V g) + type), with f the detector's feature of its box and g the box: two corners,
two sides and the area, as shares of the image's. A word is BERT's: LN(word + position + type). The words come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.base import Encoder, Model
from holdfast.models.bert import SIZES, TextEmbedding, check_heads, check_text, check_vocabulary, first_place
from holdfast.models.heads import HiddenLayerClassifier
from holdfast.models.transformer import TransformerBlock, aligned, initialise, key_mask, lengths_to_present
from holdfast.types import Between, Head, Inputs, Wants

KINDS = 3
"""Words, the regions of the first image, those of a second one; the published weights have the first two."""
_KINDS = "embeddings.token_type_embeddings.weight"

NAMES = weights.Names(
    "uniter.",
    {
        "text.words": ("embeddings.word_embeddings",),
        "text.positions": ("embeddings.position_embeddings",),
        "text.segments": ("embeddings.token_type_embeddings",),
        "text.norm": ("embeddings.LayerNorm",),
        "image.feature": ("img_embeddings.img_linear",),
        "image.feature_norm": ("img_embeddings.img_layer_norm",),
        "image.geometry": ("img_embeddings.pos_linear",),
        "image.geometry_norm": ("img_embeddings.pos_layer_norm",),
        "image.norm": ("img_embeddings.LayerNorm",),
        "image.hidden": ("img_embeddings.mask_embedding",),  # for masked regions, which only pre-training has
        "stack.{}.attention.projection": tuple(
            f"encoder.layer.{{}}.attention.self.{part}" for part in ("query", "key", "value")
        ),
        "stack.{}.attention.output": ("encoder.layer.{}.attention.output.dense",),
        "stack.{}.attention_norm": ("encoder.layer.{}.attention.output.LayerNorm",),
        "stack.{}.feed_forward.inner": ("encoder.layer.{}.intermediate.dense",),
        "stack.{}.feed_forward.output": ("encoder.layer.{}.output.dense",),
        "stack.{}.feed_forward_norm": ("encoder.layer.{}.output.LayerNorm",),
        "pooler": ("pooler.dense",),
    },
    optional=("image.hidden",),
)
"""The names of our weights in the published checkpoint."""


class RegionEmbedding(nn.Module):
    """A box's feature, its position and its type, normalised."""

    def __init__(self, features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.feature = nn.Linear(features, width)
        self.feature_norm = nn.LayerNorm(width, eps=1e-12)
        self.geometry = nn.Linear(7, width)
        self.geometry_norm = nn.LayerNorm(width, eps=1e-12)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, regions: Tensor, boxes: Tensor, kind: Tensor) -> Tensor:
        """Map features (..., boxes, features) and corners (..., boxes, 4) to vectors (..., boxes, width)."""
        weight = self.feature.weight
        seen = self.feature_norm(self.feature(regions.to(weight.dtype)))
        where = self.geometry_norm(self.geometry(geometry(boxes.to(weight.dtype))))
        out: Tensor = self.dropout(self.norm(seen + where + kind))
        return out


def geometry(boxes: Tensor) -> Tensor:
    """Two corners, two sides and the area, from corners as shares of the image's sides.

    >>> geometry(torch.tensor([0.0, 0.5, 0.5, 0.75])).tolist()
    [0.0, 0.5, 0.5, 0.75, 0.5, 0.25, 0.125]
    """
    sides = boxes[..., 2:] - boxes[..., :2]
    return torch.cat([boxes, sides, sides[..., :1] * sides[..., 1:]], dim=-1)


def side_by_side(words: Tensor, seen: Tensor) -> Tensor:
    """Join words (rows, [choices,] length, width) and boxes (rows, [images,] boxes, width) in one sequence.

    If a row has several of one of them, each is joined with the single other one.

    >>> side_by_side(torch.zeros(5, 4, 7, 2), torch.ones(5, 3, 2)).shape
    torch.Size([5, 4, 10, 2])
    """
    if words.ndim < seen.ndim:
        words = words.unsqueeze(1).expand(-1, seen.shape[1], -1, -1)
    if seen.ndim < words.ndim:
        seen = seen.unsqueeze(1).expand(-1, words.shape[1], -1, -1)
    return torch.cat([words, seen], dim=-2)


class UniterEncoder(Encoder):
    """One transformer over words and regions; an example's vector is its first word's, through a tanh layer."""

    recordable = True
    masks_text = True

    def __init__(self, recipe: Uniter, vocabulary: int, features: int) -> None:
        super().__init__()
        self.width = width = recipe.width
        dropout = recipe.dropout
        self.text = TextEmbedding(vocabulary, recipe.positions, width, dropout)
        self.text.segments = nn.Embedding(KINDS, width)
        self.image = RegionEmbedding(features, width, dropout)
        self.stack = nn.ModuleList(
            TransformerBlock(
                width, recipe.heads, recipe.hidden, norm="post", dropout=dropout, attention_dropout=dropout
            )
            for _ in range(recipe.depth)
        )
        self.pooler = nn.Linear(width, width)
        initialise(self, self.width)
        with torch.no_grad():  # both images of a pair start with the same type
            self.text.segments.weight[2] = self.text.segments.weight[1]

    def stem(self) -> Sequence[nn.Module]:
        """The embeddings of words and regions."""
        return [self.text, self.image]

    def layers(self) -> Sequence[TransformerBlock]:
        """The blocks."""
        return list(self.stack)  # type: ignore[arg-type]

    def word_embedding(self) -> nn.Embedding:
        """The embedding of word pieces."""
        assert self.text.words is not None
        return self.text.words

    def classifier(self, width: int, asked: Head) -> nn.Module:
        """CLiMB's classifier, whose hidden layer is twice the encoder's width."""
        return HiddenLayerClassifier(width, asked.outputs, 2 * self.width, asked.growing)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each example (rows, width), or for each of its images or choices (rows, several, width)."""
        x, present = self._embedded(inputs)
        several = x.shape[:-2]
        x, mask = aligned(x.flatten(0, -3), key_mask(present.flatten(0, -2)))
        for block in self.stack[:-1]:
            x = block(x, mask)
        pooled = torch.tanh(self.pooler(first_place(self.layers()[-1], x, mask)))
        return pooled.view(*several, self.width)

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each word piece of examples that have one text and one image (rows, length, width)."""
        x, present = self._embedded(inputs)
        x, mask = aligned(x, key_mask(present))
        for block in self.stack:
            x = block(x, mask)
        return x[:, : inputs["text"].shape[1]]

    def _embedded(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Words and regions (rows, [several,] positions, width), and which are not padding (rows, [several,]
        positions).
        """
        text, regions = inputs["text"], inputs["regions"]
        kinds = self.text.segments.weight
        kind = kinds[1:, None] if regions.ndim == 4 else kinds[1]
        x = side_by_side(self.text(text), self.image(regions, inputs["boxes"], kind))
        spoken = lengths_to_present(inputs["text_length"], text.shape[-1])
        boxed = lengths_to_present(inputs["region_count"], regions.shape[-2])
        return x, side_by_side(spoken.unsqueeze(-1), boxed.unsqueeze(-1)).squeeze(-1)

    def load_published(self, state: Mapping[str, Tensor], where: object = "the checkpoint") -> None:
        """Load the weights of a published UNITER by its own names; the heads of its pre-training are ignored."""
        found = weights.encoder_state(state, NAMES)
        kinds = found.get(_KINDS)
        if kinds is not None and len(kinds) == KINDS - 1:  # a second image starts with the first one's type
            found[_KINDS] = torch.cat([kinds, kinds[-1:]])
        weights.load(self, found, NAMES, where)


def words_and_regions(model: str, inputs: Inputs) -> int:
    """The width of a region's features; raises a UserError for a benchmark without regions or text."""
    if inputs.regions is None:
        raise UserError(
            f"{model} needs region features, but this benchmark has none: give them, or choose another model"
        )
    if not inputs.text:
        raise UserError(f"{model} needs text, but this benchmark has none: choose another model")
    assert inputs.vocabulary, "text without a vocabulary"
    return inputs.regions[1]


@dataclass(frozen=True)
class Uniter(Model):
    """UNITER-base, over region features."""

    version: ClassVar[int] = 1
    places: ClassVar[frozenset[str]] = frozenset({"weights"})

    width: Annotated[int, Between(1)] = 768
    """The width of the hidden states."""
    depth: Annotated[int, Between(1)] = 12
    """The number of transformer blocks."""
    heads: Annotated[int, Between(1)] = 12
    """The number of attention heads in each block; they share the width."""
    hidden: Annotated[int, Between(1)] = 3072
    """The width of the hidden layer in each feed-forward network."""
    positions: Annotated[int, Between(1)] = 512
    """The longest text in word pieces."""
    dropout: Annotated[float, Between(0, 1)] = 0.1
    """The probability with which activations are dropped in training."""
    weights: str = ""
    """A folder with a published UNITER: weights in pytorch_model.bin, configuration in config.json; empty: random
    weights."""

    def encoder(self, inputs: Inputs) -> UniterEncoder:
        """A UNITER for these words and regions.

        >>> inputs = Inputs(text=20, vocabulary=100, regions=(36, 2048))
        >>> len(TinyUniter(depth=3).encoder(inputs).layers())
        3
        """
        features, recipe = words_and_regions("UNITER", inputs), self
        if self.weights:
            folder = weights.locate(self.weights, "weights")
            config = weights.read_config(folder, "uniter")
            recipe = weights.agreed(self, config, SIZES, folder)
            check_vocabulary(inputs.vocabulary, config.get("vocab_size", 28996), folder)
        check_heads(recipe.width, recipe.heads)
        check_text(inputs.text, recipe.positions, "UNITER")
        encoder = UniterEncoder(recipe, inputs.vocabulary, features)
        if self.weights:
            encoder.load_published(weights.read_state(folder), folder)
        return encoder

    def wants(self) -> Wants:
        """Region features, and the word pieces of its weights."""
        folder = weights.locate(self.weights, "weights") if self.weights else None
        return Wants(sees="regions", vocabulary=None if folder is None else weights.vocabulary_file(folder))

    def source(self) -> str:
        """A hash of the weights that it starts from."""
        return weights.source(self.weights, "weights")


@dataclass(frozen=True)
class TinyUniter(Uniter):
    """A UNITER for two CPU cores."""

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 2
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 256
    positions: Annotated[int, Between(1)] = 64
    dropout: Annotated[float, Between(0, 1)] = 0.0
