"""LSTM + CNN + stacked attention (Yang et al. 2016), as in Greco et al. and CLEVR.

A question's last state attends twice to the cells of a feature map, and each attention adds its result to it. The
encoder's vector is the hidden layer of the following classifier, the penultimate layer of the whole network.

The tiny one learns in a minute what the paper's learns in a day. Its features come from a small network that was
trained before (`sight.py`), and its attentions are `apart`: one attention module is applied several times, each time
for other words, first those at the beginning of the question, then those at its end. The question then weighs the
results and their product, which shows whether two things are alike. It does not know the positions of cells: it finds
things by their properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Encoder, Model
from holdfast.models.resnet import Normalise, check_images
from holdfast.models.sight import STRIDE, Sight, sight_hash, trained_sight
from holdfast.types import Between, Inputs, Wants

PATCH = 4
"""The side in pixels of the adjacent patches that the trunk's first convolution takes: the cheapest reduction."""
CONVOLUTIONS = 4
SLOPE = 6.0
"""How strongly, with `apart`, the first attention initially prefers the first words, and the last the last ones."""


class QuestionEncoder(nn.Module):
    """Maps each text to one vector: the state of an LSTM at the text's last word piece."""

    def __init__(self, vocabulary: int, embedding: int, width: int, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, embedding)
        self.recurrent = nn.LSTM(embedding, width, depth, batch_first=True)

    def forward(self, text: Tensor, length: Tensor) -> Tensor:
        """Map texts (rows, positions) of the given lengths to (rows, width)."""
        return self.last(self.states(self.words(text.long())), length)

    def states(self, words: Tensor) -> Tensor:
        """The state at each word (rows, positions, width)."""
        # An LSTM only looks back, so running it over padding changes nothing before it, and no length is needed on the
        # host, as packing would.
        states: Tensor = self.recurrent(words)[0]
        return states

    def last(self, states: Tensor, length: Tensor) -> Tensor:
        """The state at the last piece that is not padding."""
        last = (length.long() - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        out: Tensor = states.gather(1, last).squeeze(1)
        return out


class WordAttention(nn.Module):
    """The query of one attention: a mean of word vectors, weighted by the LSTM's states and by their positions."""

    def __init__(self, width: int, slope: float) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)
        self.slope = nn.Parameter(torch.tensor(slope))

    def forward(self, words: Tensor, states: Tensor, length: Tensor) -> Tensor:
        """Map words (rows, positions, width), of which `length` are not padding, to (rows, width)."""
        length = length.clamp(min=1).unsqueeze(1)
        places = torch.arange(words.shape[1], device=words.device)
        scores = self.score(states).squeeze(-1) + self.slope * (places / length).to(states.dtype)
        weights = scores.masked_fill(places >= length, -torch.inf).softmax(-1)
        out: Tensor = (weights.unsqueeze(1) @ words).squeeze(1)
        return out


class Trunk(nn.Module):
    """Convolutions from pixels to a feature map, trained from scratch. Groups are normalised within each image, so that
    neither the batch nor the ranks matter.
    """

    def __init__(self, height: int, width: int, channels: int, cells: int) -> None:
        super().__init__()
        self.normalise = Normalise()
        self.convolutions = nn.ModuleList([nn.Conv2d(3, channels, PATCH, PATCH, bias=False)])
        height, width = height // PATCH, width // PATCH
        for _ in range(CONVOLUTIONS - 1):
            stride = 2 if max(height, width) > cells else 1
            self.convolutions.append(nn.Conv2d(channels, channels, 3, stride, 1, bias=False))
            height, width = -(-height // stride), -(-width // stride)
        self.norms = nn.ModuleList(nn.GroupNorm(4 if channels % 4 == 0 else 1, channels) for _ in self.convolutions)
        self.shape = (channels, height, width)
        # The position of a cell: a deep network learns it from its padding, a shallow one hardly.
        self.position = nn.Parameter(0.1 * torch.randn(1, *self.shape))

    def forward(self, images: Tensor) -> Tensor:
        """Images (rows, 3, height, width) to (rows, *shape)."""
        x: Tensor = self.normalise(images)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(x)).relu()
        return x + self.position


class CellAttention(nn.Module):
    """One attention over cells."""

    def __init__(self, query: int, cells: int, hidden: int) -> None:
        super().__init__()
        self.cells = nn.Linear(cells, hidden)
        self.query = nn.Linear(query, hidden, bias=False)  # one bias in the sum suffices
        self.score = nn.Linear(hidden, 1, bias=False)  # a bias would not change the softmax

    def forward(self, query: Tensor, cells: Tensor) -> Tensor:
        """The mean of cells (..., cells, width), weighted by how well they match queries (..., width)."""
        hidden = torch.tanh(self.cells(cells) + self.query(query).unsqueeze(-2))
        weights = self.score(hidden).softmax(-2)
        seen: Tensor = (weights.transpose(-2, -1) @ cells).squeeze(-2)
        return seen


class SanEncoder(Encoder):
    """Maps questions about images or feature maps to vectors: each attention adds its result to the query."""

    masks_text = True

    def __init__(self, recipe: San, inputs: Inputs) -> None:
        super().__init__()
        self.width, width = recipe.hidden, recipe.recurrent
        self.question = QuestionEncoder(inputs.vocabulary, recipe.embedding, width, recipe.recurrent_layers)
        self.trunk, (channels, _, _) = _trunk(recipe, inputs)
        self.projection = nn.Conv2d(channels, width, 1)
        self.looks = nn.ModuleList(CellAttention(width, width, recipe.attention) for _ in range(recipe.looks))
        self.hidden = nn.Linear(width, recipe.hidden)

    def stem(self) -> Sequence[nn.Module]:
        """The words, and the trunk if there is one."""
        return [self.question.words, *([] if self.trunk is None else [self.trunk])]

    def layers(self) -> Sequence[nn.Module]:
        """The LSTM, the map's projection, each attention, and the hidden layer."""
        return [self.question.recurrent, self.projection, *self.looks, self.hidden]

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width), or (rows, choices, width) or (rows, images, width) if there are several of either."""
        text, length = inputs["text"], inputs["text_length"]
        query = self.question(text.flatten(0, -2), length.flatten())
        cells = self.projection(_grid(self.trunk, inputs, query.dtype)).flatten(2).transpose(1, 2)
        query, cells = _facing(query, cells, text, inputs)
        for look in self.looks:
            query = query + look(query, cells)
        out: Tensor = self.hidden(query).relu()
        return out


class ApartEncoder(Encoder):
    """Maps questions about images or feature maps to vectors: each attention is for other words."""

    masks_text = True

    def __init__(self, recipe: San, inputs: Inputs) -> None:
        super().__init__()
        self.width, width = recipe.hidden, recipe.recurrent
        self.question = QuestionEncoder(inputs.vocabulary, recipe.embedding, width, recipe.recurrent_layers)
        self.trunk, (channels, _, _) = _trunk(recipe, inputs)
        slopes = torch.linspace(-SLOPE, SLOPE, recipe.looks, device="cpu").tolist()
        self.reads = nn.ModuleList(WordAttention(width, slope) for slope in slopes)
        self.look = CellAttention(recipe.embedding, channels, recipe.attention)
        self.sights = nn.Linear(channels * (recipe.looks + 1), recipe.hidden)
        self.choice = nn.Linear(width, recipe.hidden)
        self.asked = nn.Linear(width, recipe.hidden)

    def stem(self) -> Sequence[nn.Module]:
        """The words, and the trunk if there is one."""
        return [self.question.words, *([] if self.trunk is None else [self.trunk])]

    def layers(self) -> Sequence[nn.Module]:
        """The LSTM, each query, the attention, and the layers before the hidden one."""
        return [self.question.recurrent, *self.reads, self.look, self.sights, self.choice, self.asked]

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width), or (rows, choices, width) or (rows, images, width) if there are several of either."""
        text, length = inputs["text"], inputs["text_length"].flatten()
        words = self.question.words(text.flatten(0, -2).long())
        states = self.question.states(words)
        cells = _grid(self.trunk, inputs, states.dtype).flatten(2).transpose(1, 2)
        asked = [self.question.last(states, length), *(read(words, states, length) for read in self.reads)]
        (last, *own), (facing, *_) = zip(*(_facing(each, cells, text, inputs) for each in asked), strict=True)
        seen = [self.look(each, facing) for each in own]
        together = self.sights(torch.cat([*seen, torch.stack(seen).prod(0)], -1))
        out: Tensor = (self.choice(last) * together + self.asked(last)).relu()
        return out


def _trunk(recipe: San, inputs: Inputs) -> tuple[nn.Module | None, tuple[int, int, int]]:
    """The module that computes a feature map from pixels, or None if the map is given; and the map's shape."""
    if inputs.grid is not None:
        return None, inputs.grid
    height, width = check_images("a SAN", inputs, PATCH)
    if recipe.trunk == "world":
        return trained_sight(), (Sight.channels, -(-height // STRIDE), -(-width // STRIDE))
    trunk = Trunk(height, width, recipe.channels, recipe.cells)
    return trunk, trunk.shape


def _grid(trunk: nn.Module | None, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> Tensor:
    """The feature map of each image (rows, or rows * images, channels, height, width)."""
    seen = inputs["grid" if trunk is None else "image"].flatten(0, -4)
    grid: Tensor = seen.to(dtype) if trunk is None else trunk(seen)
    return grid


def _facing(query: Tensor, cells: Tensor, text: Tensor, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Queries and cells, matched to each other if a row has several texts or several images."""
    query = query.view(*text.shape[:-1], -1)
    if len(cells) > len(query):
        assert text.ndim == 2, "several images, or several texts"
        return query.unsqueeze(1), cells.view(len(query), -1, *cells.shape[1:])
    if text.ndim == 3:
        return query, cells.unsqueeze(1)
    return query, cells


@dataclass(frozen=True)
class San(Model):
    """LSTM + CNN + stacked attention over a feature map, or over pixels if the benchmark has no map."""

    version: ClassVar[int] = 1

    embedding: Annotated[int, Between(1)] = 300
    """The width of word embeddings."""
    recurrent: Annotated[int, Between(1)] = 1024
    """The width of the LSTM and of the attentions' inputs."""
    recurrent_layers: Annotated[int, Between(1)] = 2
    """The number of LSTM layers."""
    attention: Annotated[int, Between(1)] = 512
    """The width inside each attention."""
    looks: Annotated[int, Between(1)] = 2
    """The number of stacked attentions, which is how often the model looks at the picture."""
    hidden: Annotated[int, Between(1)] = 1024
    """The width of the hidden layer before the answer."""
    channels: Annotated[int, Between(1)] = 256
    """With trunk=learned: the number of channels of each convolution."""
    cells: Annotated[int, Between(1)] = 14
    """With trunk=learned: halve the feature map until it has at most N cells a side."""
    trunk: Literal["learned", "world"] = "learned"
    """What processes pixels. learned: convolutions that learn with the rest. world: a small frozen network for the
    blocks of the synthetic world."""
    apart: bool = False
    """Whether each attention is for other words, and their results are compared."""

    def __post_init__(self) -> None:
        """Raise a UserError for sizes of a learned trunk beside another trunk: they would have no effect."""
        for name in ("channels", "cells"):
            if self.trunk == "world" and (value := getattr(self, name)) != getattr(type(self), name):
                raise UserError(
                    f"model.{name} is {value}, which applies to a learned trunk, and model.trunk is world: set "
                    f"model.trunk=learned, or leave out model.{name}"
                )

    def encoder(self, inputs: Inputs) -> Encoder:
        """A network for these questions and images.

        >>> San(channels=32).encoder(Inputs((3, 64, 64), text=12, vocabulary=30)).trunk.shape
        (32, 8, 8)
        """
        if not inputs.text:
            raise UserError("a SAN needs questions, but this benchmark has no text: choose another model")
        return ApartEncoder(self, inputs) if self.apart else SanEncoder(self, inputs)

    def wants(self) -> Wants:
        """A feature map, if there is one."""
        return Wants(sees="grid")

    def front(self) -> nn.Module | None:
        """The frozen network that processes images, if there is one."""
        return trained_sight() if self.trunk == "world" else None

    def source(self) -> str:
        """A hash of the frozen network's weights, if there is one."""
        return sight_hash() if self.trunk == "world" else ""


@dataclass(frozen=True)
class TinySan(San):
    """A small SAN that learns in a minute, for a CPU."""

    embedding: Annotated[int, Between(1)] = 64
    recurrent: Annotated[int, Between(1)] = 64
    recurrent_layers: Annotated[int, Between(1)] = 1
    attention: Annotated[int, Between(1)] = 64
    hidden: Annotated[int, Between(1)] = 128
    channels: Annotated[int, Between(1)] = 32
    cells: Annotated[int, Between(1)] = 8
    trunk: Literal["learned", "world"] = "world"
    apart: bool = True

    def wants(self) -> Wants:
        """Small images."""
        return Wants(sees="image", side=64)
