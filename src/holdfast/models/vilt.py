"""ViLT: one transformer over word pieces and patches of the image.

Paper: Kim et al. 2021; in CLiMB (Srinivasan et al. 2022) the encoder of all tasks. Twelve pre-norm blocks of width 768,
patches of 32 pixels, 40 positions for text. A modality embedding distinguishes text (0), image (1) and second image
(2).

Every patch keeps its position in the sequence and padding is masked, while the published model draws patches in random
order: attention does not depend on the order, so the outputs are the same, and no shape depends on the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.base import Encoder, Model
from holdfast.models.bert import TextEmbedding, check_heads, check_text, check_vocabulary, first_place
from holdfast.models.heads import HiddenLayerClassifier
from holdfast.models.transformer import TransformerBlock, aligned, deviation, initialise, key_mask, lengths_to_present
from holdfast.types import Between, Head, Inputs, Wants

NAMES = weights.Names(
    "vilt.",
    {
        "text.words": ("embeddings.text_embeddings.word_embeddings",),
        "text.positions": ("embeddings.text_embeddings.position_embeddings",),
        "text.segments": ("embeddings.text_embeddings.token_type_embeddings",),
        "text.norm": ("embeddings.text_embeddings.LayerNorm",),
        "image.patches": ("embeddings.patch_embeddings.projection",),
        "image.first": ("embeddings.cls_token",),
        "image.positions": ("embeddings.position_embeddings",),
        "modality": ("embeddings.token_type_embeddings",),
        "stack.{}.attention.projection": tuple(
            f"encoder.layer.{{}}.attention.attention.{part}" for part in ("query", "key", "value")
        ),
        "stack.{}.attention.output": ("encoder.layer.{}.attention.output.dense",),
        "stack.{}.attention_norm": ("encoder.layer.{}.layernorm_before",),
        "stack.{}.feed_forward.inner": ("encoder.layer.{}.intermediate.dense",),
        "stack.{}.feed_forward.output": ("encoder.layer.{}.output.dense",),
        "stack.{}.feed_forward_norm": ("encoder.layer.{}.layernorm_after",),
        "norm": ("layernorm",),
        "pooler": ("pooler.dense",),
    },
)
"""The names of our weights in `transformers`' ViltModel."""

SIZES = {
    "width": ("hidden_size", 768),
    "depth": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12),
    "hidden": ("intermediate_size", 3072),
    "patch": ("patch_size", 32),
    "side": ("image_size", 384),
    "positions": ("max_position_embeddings", 40),
}
"""The names of our settings in its configuration, and the values if they are missing there."""


def stretch(count: Tensor | int, places: int, known: int, like: Tensor) -> Tensor:
    """The weight of each of `known` positions at each of `places`, if `count` places span all of them.

    Linear interpolation with aligned ends. `count` may differ by row: (rows,) returns (rows, places, known).

    >>> stretch(3, 3, 2, torch.zeros(1)).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    steps = max(count - 1, 1) if isinstance(count, int) else count.sub(1).clamp(min=1).unsqueeze(-1)
    at = torch.arange(places, device=like.device, dtype=like.dtype) * (known - 1) / steps
    return (1 - (at.unsqueeze(-1) - torch.arange(known, device=like.device, dtype=like.dtype)).abs()).clamp(min=0)


class ImageEmbedding(nn.Module):
    """Projects the patches of an image, with positions interpolated to the image's own grid of patches."""

    def __init__(self, patch: int, side: int, width: int, dropout: float) -> None:
        super().__init__()
        self.patch, self.grid = patch, side // patch
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, 1 + self.grid**2, width))
        self.dropout = nn.Dropout(dropout)
        for weight in (self.patches.weight, self.first, self.positions):
            nn.init.normal_(weight, std=deviation(width))
        assert self.patches.bias is not None
        nn.init.zeros_(self.patches.bias)

    def forward(self, image: Tensor, size: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Embed images (rows, 3, height, width), optionally with their sizes without padding (rows, 2).

        Returns the vector of the first position (1, 1, width), the patches (rows, patches, width) and which of them are
        not padding (rows, patches), or None for all.
        """
        patches = self._projected(image)
        high, wide = image.shape[-2] // self.patch, image.shape[-1] // self.patch
        positions, present = self.positions[0, 1:], None
        if size is not None:
            # A patch counts if its corner is not padding, as in the published model's pixel mask.
            rows = torch.arange(high, device=image.device) * image.shape[-2] // high < size[:, :1]
            columns = torch.arange(wide, device=image.device) * image.shape[-1] // wide < size[:, 1:]
            present = (rows.unsqueeze(2) & columns.unsqueeze(1)).flatten(1)
            positions = self._stretched(rows.sum(1), columns.sum(1), high, wide)
        elif (high, wide) != (self.grid, self.grid):
            positions = self._stretched(high, wide, high, wide)
        first: Tensor = self.dropout(self.first + self.positions[:, :1])
        return first, self.dropout(patches + positions), present

    def _projected(self, image: Tensor) -> Tensor:
        """The convolution as one matrix product: patches are cut from the bytes, which is cheap, and then scaled."""
        rows, p = len(image), self.patch
        high, wide = image.shape[-2] // p, image.shape[-1] // p
        cut = image[:, :, : high * p, : wide * p].reshape(rows, 3, high, p, wide, p)
        weight = self.patches.weight
        pixels = cut.permute(0, 2, 4, 1, 3, 5).reshape(rows, high * wide, 3 * p * p).to(weight.dtype)
        return functional.linear(pixels.mul(1 / 127.5).sub_(1), weight.flatten(1), self.patches.bias)

    def _stretched(self, rows: Tensor | int, columns: Tensor | int, high: int, wide: int) -> Tensor:
        """The positions on a grid of `high` by `wide`, one product for all images: ([images,] high x wide, width)."""
        by_row = stretch(rows, high, self.grid, self.positions)
        by_column = stretch(columns, wide, self.grid, self.positions)
        both = by_row[..., :, None, :, None] * by_column[..., None, :, None, :]
        return both.flatten(-2).flatten(-3, -2) @ self.positions[0, 1:]


class ViltEncoder(Encoder):
    """Encodes text and image in one sequence; the vector is the pooled first word, through a layer and tanh."""

    recordable = True
    masks_text = True

    def __init__(self, recipe: Vilt, vocabulary: int, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.recipe, self.epsilon, self.width = recipe, epsilon, recipe.width
        places = recipe.text_positions or recipe.positions
        self.text = TextEmbedding(vocabulary, places, recipe.width, recipe.dropout, epsilon)
        self.image = ImageEmbedding(recipe.patch, recipe.side, recipe.width, recipe.dropout)
        self.modality = nn.Embedding(3, recipe.width)
        self.stack = nn.ModuleList(
            TransformerBlock(
                recipe.width,
                recipe.heads,
                recipe.hidden,
                dropout=recipe.dropout,
                attention_dropout=recipe.dropout,
                epsilon=epsilon,
            )
            for _ in range(recipe.depth)
        )
        self.norm = nn.LayerNorm(recipe.width, eps=epsilon)
        self.pooler = nn.Linear(recipe.width, recipe.width)
        initialise(self, self.width)

    def stem(self) -> Sequence[nn.Module]:
        """The embeddings."""
        return [self.text, self.image, self.modality]

    def layers(self) -> Sequence[TransformerBlock]:
        """The blocks."""
        return list(self.stack)  # type: ignore[arg-type]

    def word_embedding(self) -> nn.Embedding:
        """The embedding of word pieces."""
        assert self.text.words is not None
        return self.text.words

    def classifier(self, width: int, asked: Head) -> nn.Module:
        """CLiMB's: a hidden layer of twice the width."""
        return HiddenLayerClassifier(width, asked.outputs, 2 * self.width, asked.growing)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width), or (rows, images or choices, width)."""
        return self.pooled(inputs, inputs["text"])

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The last hidden states of the text: (rows, length, width)."""
        x, mask = self._embedded(inputs, inputs["text"])
        for block in self.stack:
            x = block(x, mask)
        out: Tensor = self.norm(x[:, : inputs["text"].shape[-1]])
        return out

    def pooled(self, inputs: Mapping[str, Tensor], text: Tensor) -> Tensor:
        """The result of `forward`, for word pieces or, without a word embedding, for vectors."""
        x, mask = self._embedded(inputs, text)
        for block in self.stack[:-1]:
            x = block(x, mask)
        pooled = torch.tanh(self.pooler(self.norm(first_place(self.layers()[-1], x, mask))))
        rows, several = len(inputs["text"]), inputs["text"].ndim == 3 or inputs["image"].ndim == 5
        return pooled.view(rows, -1, self.width) if several else pooled

    def _embedded(self, inputs: Mapping[str, Tensor], text: Tensor) -> tuple[Tensor, Tensor | None]:
        """One sequence for each text and image, (sequences, length, width), and the mask of padding.

        With several choices the image is embedded once, with two images the text; the shared part is expanded.
        """
        image, size = inputs["image"], inputs.get("image_size")
        rows, length = len(inputs["text"]), inputs["text"].shape[-1]
        size = None if size is None else size.reshape(-1, 2)
        first, patches, seen = self.image(image.flatten(0, 1) if image.ndim == 5 else image, size)
        patches = patches.view(rows, -1, *patches.shape[1:])
        embedded = self.text(text, inputs.get("text_second")) + self.modality.weight[0]
        embedded = embedded.view(rows, -1, length, self.width)
        images, choices = patches.shape[1], embedded.shape[1]
        assert images == 1 or choices == 1, "several images with several choices"
        count, kind = max(images, choices), self.modality.weight[1 : 1 + images, None]
        parts = [embedded, first + kind, patches + kind]
        x = torch.cat([part.expand(rows, count, -1, -1) for part in parts], dim=2).flatten(0, 1)
        return aligned(x, self._mask(inputs, seen, count, length, patches.shape[2]))

    def _mask(
        self, inputs: Mapping[str, Tensor], seen: Tensor | None, count: int, length: int, patches: int
    ) -> Tensor | None:
        lengths = inputs.get("text_length")
        if lengths is None and seen is None:
            return None
        rows, everything = len(inputs["text"]), torch.ones(1, 1, 1, dtype=torch.bool, device=inputs["text"].device)
        read = everything if lengths is None else lengths_to_present(lengths.reshape(rows, -1), length)
        seen = everything if seen is None else seen.view(rows, -1, patches)
        shown = seen.any(-1, keepdim=True)  # an image that is all padding has no first position either
        sizes = [(read, length), (shown, 1), (seen, patches)]
        present = torch.cat([part.expand(rows, count, size) for part, size in sizes], dim=2)
        return key_mask(present.flatten(0, 1))

    def config(self) -> dict[str, Any]:
        """The content of config.json, as `transformers` would write it."""
        config: dict[str, Any] = {key: getattr(self.recipe, ours) for ours, (key, _) in SIZES.items()}
        dropout = self.recipe.dropout
        return config | {
            "model_type": "vilt",
            "architectures": ["ViltModel"],
            "vocab_size": self.word_embedding().num_embeddings,
            "max_position_embeddings": self.text.positions.num_embeddings,
            "modality_type_vocab_size": 3,
            "layer_norm_eps": self.epsilon,
            "hidden_dropout_prob": dropout,
            "attention_probs_dropout_prob": dropout,
        }

    def save(self, folder: Path, vocabulary: Path | None = None) -> None:
        """Write the weights as `transformers`' ViltModel reads them."""
        weights.save(folder, self, NAMES, self.config(), vocabulary)


def tiled(table: Tensor, places: int) -> Tensor:
    """A table of positions, repeated until it is long enough: CLiMB's way to read long texts.

    >>> tiled(torch.tensor([[1.0], [2.0]]), 5).flatten().tolist()
    [1.0, 2.0, 1.0, 2.0, 1.0]
    """
    return table.repeat(-(-places // len(table)), 1)[:places]


@dataclass(frozen=True)
class Vilt(Model):
    """ViLT at the paper's size, from a published checkpoint or from scratch."""

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
    patch: Annotated[int, Between(1)] = 32
    """The side of an image patch in pixels."""
    side: Annotated[int, Between(1)] = 384
    """The image side for which positions of patches are stored; for other sizes they are interpolated."""
    positions: Annotated[int, Between(1)] = 40
    """The number of pre-trained text positions."""
    text_positions: Annotated[int, Between(1)] | None = None
    """The number of word pieces that it reads, repeating pre-trained positions; none: as many as the benchmark has."""
    dropout: Annotated[float, Between(0, 1)] = 0.0
    """The probability with which activations are dropped in training."""
    weights: str = ""
    """A folder with a ViLT in the published format, or its name on the hub, such as dandelin/vilt-b32-mlm; empty:
    random weights."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A ViLT for these images and texts.

        >>> encoder = TinyVilt(weights="").encoder(Inputs((3, 64, 64), text=12, vocabulary=30))
        >>> image, text = torch.zeros(2, 3, 64, 64, dtype=torch.uint8), torch.ones(2, 12, dtype=torch.int32)
        >>> encoder({"image": image, "text": text}).shape
        torch.Size([2, 64])
        """
        return self.image_side(inputs, reads_words=True)

    def image_side(self, inputs: Inputs, reads_words: bool) -> ViltEncoder:
        """The encoder with or without a word embedding."""
        folder = weights.locate(self.weights, "weights") if self.weights else None
        config = weights.read_config(folder, "vilt") if folder else {}
        recipe = weights.agreed(self, config, SIZES, folder) if folder else self
        recipe._check(inputs)
        vocabulary = inputs.vocabulary if reads_words else 0
        if folder and reads_words:
            vocabulary = config.get("vocab_size", 30522)
            check_vocabulary(inputs.vocabulary, vocabulary, folder)
        places = self.text_positions or max(recipe.positions, inputs.text)
        check_text(inputs.text, places, "ViLT")
        recipe = dataclasses.replace(recipe, text_positions=places)
        encoder = ViltEncoder(recipe, vocabulary, config.get("layer_norm_eps", 1e-12))
        if folder:
            self._load(encoder, folder, places)
        return encoder

    def _check(self, inputs: Inputs) -> None:
        if inputs.image is None:
            raise UserError("ViLT sees images, but this benchmark has none: choose another model, such as bert")
        if not inputs.text:
            raise UserError("ViLT reads text with its images, but this benchmark has none: choose another model")
        channels, high, wide = inputs.image
        if channels != 3:
            raise UserError(
                f"ViLT sees images of 3 channels, but this benchmark's have {channels}: choose another model"
            )
        if min(high, wide) < self.patch or self.side < self.patch:
            small = f"{high} x {wide}" if min(high, wide) < self.patch else f"{self.side} x {self.side} (side)"
            raise UserError(
                f"an image of {small} is too small for one patch of {self.patch} x {self.patch}: reduce model.patch"
            )
        if inputs.images > 2:
            raise UserError(
                f"ViLT takes at most 2 images, but this benchmark has {inputs.images}: choose another model"
            )
        assert inputs.vocabulary, "text without a vocabulary"
        check_heads(self.width, self.heads)

    def _load(self, encoder: ViltEncoder, folder: Path, places: int) -> None:
        if weights.measured():
            return
        state = weights.encoder_state(weights.read_state(folder), NAMES)
        (kinds,), (table,) = NAMES.theirs("modality.weight"), NAMES.theirs("text.positions.weight")
        if kinds in state and len(state[kinds]) == 2:  # a second image starts like the first
            state[kinds] = torch.cat([state[kinds], state[kinds][1:]])
        if table in state and len(state[table]):
            state[table] = tiled(state[table], places)
        if encoder.text.words is None:
            state.pop(NAMES.theirs("text.words.weight")[0], None)
        weights.load(encoder, state, NAMES, folder)

    def wants(self) -> Wants:
        """Images of its side, and the word pieces of its weights."""
        if not self.weights:
            return Wants(side=self.side)
        folder = weights.locate(self.weights, "weights")
        recipe = weights.agreed(self, weights.read_config(folder, "vilt"), SIZES, folder)
        return Wants(side=recipe.side, vocabulary=weights.vocabulary_file(folder))

    def source(self) -> str:
        """A hash of the weights that it starts from."""
        return weights.source(self.weights, "weights")


@dataclass(frozen=True)
class TinyVilt(Vilt):
    """ViLT for two CPU cores: three layers of width 64, 16 patches; pre-trained on synthetic data, or from scratch."""

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 3
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 256
    patch: Annotated[int, Between(1)] = 16
    side: Annotated[int, Between(1)] = 64
    weights: str = "holdfast/vilt-tiny"
