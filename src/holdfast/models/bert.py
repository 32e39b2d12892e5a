"""BERT: words to vectors. An encoder for text alone, and the frozen text encoder of VAuLT.

Paper: Devlin et al. 2019. Twelve post-norm blocks of width 768 over the sum of word, place and segment embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.base import Encoder, Model
from holdfast.models.transformer import TransformerBlock, aligned, initialise, key_mask, lengths_to_present
from holdfast.types import Between, Inputs, Wants

NAMES = weights.Names(
    "bert.",
    {
        "text.words": ("embeddings.word_embeddings",),
        "text.positions": ("embeddings.position_embeddings",),
        "text.segments": ("embeddings.token_type_embeddings",),
        "text.norm": ("embeddings.LayerNorm",),
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
    optional=("pooler",),  # a BERT that was only trained on masked words has none
)
"""The names of our weights in `transformers`' BertModel."""

SIZES = {
    "width": ("hidden_size", 768),
    "depth": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12),
    "hidden": ("intermediate_size", 3072),
    "positions": ("max_position_embeddings", 512),
}
"""The names of our settings in its configuration, and the values to use if they are missing."""


class TextEmbedding(nn.Module):
    """Words, their positions and their segment, summed and normalised.

    Without a vocabulary there is no word embedding, and vectors are passed instead.
    """

    def __init__(self, vocabulary: int, positions: int, width: int, dropout: float, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width) if vocabulary else None
        self.positions = nn.Embedding(positions, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.dropout = nn.Dropout(dropout)

    def forward(self, text: Tensor, second: Tensor | None = None) -> Tensor:
        """Map word pieces (..., length), or vectors (..., length, width), to vectors.

        `second` (...) is where the second segment of each text begins; without it, all are in the first segment.
        """
        if self.words is not None:
            text = self.words(text)
        positions = self.positions.weight[: text.shape[-2]]
        if second is None:  # places and segment are the same for every row: summed once, and broadcast
            segments = self.segments.weight[0]
        else:
            at = torch.arange(text.shape[-2], device=text.device)
            segments = self.segments((at >= second.unsqueeze(-1)).long())
        out: Tensor = self.dropout(self.norm(text + (positions + segments)))
        return out


def first_place(block: TransformerBlock, x: Tensor, mask: Tensor | None) -> Tensor:
    """A block's output at the first position, (rows, width), which is all that a pooler reads from the last block.

    The other positions are only attended to, so their queries and feed-forward network are not computed. Modules
    added to a block may not support this, so then the block computes everything.
    """
    if len(block.added):
        return block(x, mask)[:, 0]  # type: ignore[no-any-return]
    source = block.attention_norm(x) if block.norm == "pre" else x
    return block(x[:, :1], mask, source)[:, 0]  # type: ignore[no-any-return]


class BertEncoder(Encoder):
    """Encodes text alone; its vector is the pooled first position, through a layer and tanh."""

    recordable = True
    masks_text = True

    def __init__(self, recipe: Bert, vocabulary: int, epsilon: float = 1e-12, pooled: bool = True) -> None:
        super().__init__()
        self.recipe, self.epsilon, self.width = recipe, epsilon, recipe.width
        self.text = TextEmbedding(vocabulary, recipe.positions, recipe.width, recipe.dropout, epsilon)
        self.stack = nn.ModuleList(
            TransformerBlock(
                recipe.width,
                recipe.heads,
                recipe.hidden,
                norm="post",
                dropout=recipe.dropout,
                attention_dropout=recipe.dropout,
                epsilon=epsilon,
            )
            for _ in range(recipe.depth)
        )
        self.pooler = nn.Linear(recipe.width, recipe.width) if pooled else None
        initialise(self, self.width)

    def stem(self) -> Sequence[nn.Module]:
        """The embeddings."""
        return [self.text]

    def layers(self) -> Sequence[TransformerBlock]:
        """The blocks."""
        return list(self.stack)  # type: ignore[arg-type]

    def word_embedding(self) -> nn.Embedding:
        """The embedding of word pieces."""
        assert self.text.words is not None
        return self.text.words

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Map text (rows, length) to (rows, width), or (rows, choices, length) to (rows, choices, width)."""
        assert self.pooler is not None, "built without a pooler"
        text = inputs["text"]
        x, mask = self._embedded(inputs)
        for block in self.stack[:-1]:
            x = block(x, mask)
        pooled = torch.tanh(self.pooler(first_place(self.layers()[-1], x, mask)))
        return pooled.view(*text.shape[:-1], self.width)

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The last hidden states: (rows, [choices,] length, width)."""
        x, mask = self._embedded(inputs)
        for block in self.stack:
            x = block(x, mask)
        text = inputs["text"]
        return x[:, : text.shape[-1]].reshape(*text.shape, self.width)

    def _embedded(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        text, second = inputs["text"].flatten(0, -2), inputs.get("text_second")
        embedded = self.text(text, None if second is None else second.flatten())
        if "text_length" not in inputs:
            return embedded, None
        present = lengths_to_present(inputs["text_length"].flatten(), text.shape[-1])
        return aligned(embedded, key_mask(present))

    def config(self) -> dict[str, Any]:
        """The content of config.json, as `transformers` would write it."""
        config: dict[str, Any] = {key: getattr(self.recipe, ours) for ours, (key, _) in SIZES.items()}
        dropout = self.recipe.dropout
        return config | {
            "model_type": "bert",
            "architectures": ["BertModel"],
            "vocab_size": self.word_embedding().num_embeddings,
            "layer_norm_eps": self.epsilon,
            "hidden_dropout_prob": dropout,
            "attention_probs_dropout_prob": dropout,
        }

    def save(self, folder: Path, vocabulary: Path | None = None) -> None:
        """Write the weights as `transformers`' BertModel reads them."""
        weights.save(folder, self, NAMES, self.config(), vocabulary)


@dataclass(frozen=True)
class Bert(Model):
    """BERT on text alone, at the size of bert-base."""

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
    """A folder with a BERT in the published format, or its name on the hub; empty: random weights."""

    def encoder(self, inputs: Inputs) -> BertEncoder:
        """A BERT for texts of this length.

        >>> encoder = TinyBert(width=8, heads=2, hidden=16).encoder(Inputs(text=6, vocabulary=30))
        >>> encoder({"text": torch.tensor([[2, 7, 3]])}).shape
        torch.Size([1, 8])
        """
        if not inputs.text:
            raise UserError("BERT reads text, but this benchmark has none: choose another model")
        return self.text_side(inputs, pooled=True)

    def text_side(self, inputs: Inputs, pooled: bool) -> BertEncoder:
        """The encoder with or without the pooler, which only a stand-alone BERT needs."""
        assert inputs.vocabulary, "text without a vocabulary"
        if not self.weights:
            check_heads(self.width, self.heads)
            check_text(inputs.text, self.positions, "BERT")
            return BertEncoder(self, inputs.vocabulary, pooled=pooled)
        folder = weights.locate(self.weights, "weights")
        config = weights.read_config(folder, "bert")
        recipe = weights.agreed(self, config, SIZES, folder)
        check_text(inputs.text, recipe.positions, "BERT")
        vocabulary = config.get("vocab_size", 30522)
        check_vocabulary(inputs.vocabulary, vocabulary, folder)
        encoder = BertEncoder(recipe, vocabulary, config.get("layer_norm_eps", 1e-12), pooled)
        weights.load(encoder, weights.encoder_state(weights.read_state(folder), NAMES), NAMES, folder)
        return encoder

    def wants(self) -> Wants:
        """The word pieces of its weights."""
        return Wants(
            vocabulary=weights.vocabulary_file(weights.locate(self.weights, "weights")) if self.weights else None
        )

    def source(self) -> str:
        """A hash of the weights that it starts from."""
        return weights.source(self.weights, "weights")


@dataclass(frozen=True)
class TinyBert(Bert):
    """BERT for two CPU cores."""

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 3
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 256
    positions: Annotated[int, Between(1)] = 160


def check_heads(width: int, heads: int) -> None:
    """Raise a UserError unless the width is a multiple of the heads."""
    if width % heads:
        raise UserError(f"width is {width} and heads is {heads}: the width must be a multiple of the heads")


def check_text(length: int, positions: int, model: str) -> None:
    """Raise a UserError if a text has more word pieces than there are positions."""
    if length > positions:
        raise UserError(
            f"a text of this benchmark has {length} word pieces, and {model} has {positions} positions: "
            f"shorten the text, or choose a model with more positions"
        )


def check_vocabulary(given: int, known: int, folder: Path) -> None:
    """Raise a UserError for a vocabulary other than that of the weights: its ids would mean other words."""
    if given != known:
        raise UserError(
            f"this benchmark's vocabulary has {given} word pieces, and that of {folder} has {known}: "
            f"put its {weights.VOCABULARY} into that folder, so that the text is tokenised with it"
        )
