"""LSTM + CNN + stacked attention (Yang et al. 2016), as Greco et al. and CLEVR's authors have it.

A question's last state looks twice at the cells of a feature map, and each look adds to it what was seen. The encoder's
vector is the hidden layer of the classifier that follows, the penultimate layer of the whole network.

The tiny one learns in a minute what the paper's learns in a day, with two changes: it sees through a small network that
was trained before (`sight.py`), and its looks are `apart`: each reads words of its own, and the classifier is given the
question, what each look saw, and their product, by which two things are easily found alike. With one look after the
other in one sum, yes/no-questions stay at chance for thousands of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Encoder, Recipe
from holdfast.models.resnet import Normalise, check_images
from holdfast.models.sight import STRIDE, Sight, sight_hash, trained_sight
from holdfast.types import Between, Inputs, Wants

PATCH = 4
"""The trunk's first convolution takes patches of so many pixels a side, side by side: the cheapest way down."""
CONVOLUTIONS = 4


class Question(nn.Module):
    """Word pieces to one vector a text: the state of an LSTM at the text's last piece."""

    def __init__(self, vocabulary: int, embedding: int, width: int, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, embedding)
        self.recurrent = nn.LSTM(embedding, width, depth, batch_first=True)

    def forward(self, text: Tensor, length: Tensor) -> Tensor:
        """Texts (rows, places) of so many pieces to (rows, width)."""
        return self.last(self.states(text), length)

    def states(self, text: Tensor) -> Tensor:
        """The state at each piece (rows, places, width)."""
        # An LSTM looks only back, so running on over padding changes nothing before it, and no length is needed on the
        # host, as packing would.
        states: Tensor = self.recurrent(self.words(text.long()))[0]
        return states

    def last(self, states: Tensor, length: Tensor) -> Tensor:
        """The state at the last piece that is not padding."""
        last = (length.long() - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        out: Tensor = states.gather(1, last).squeeze(1)
        return out


class Read(nn.Module):
    """The words that one look is about: a mean of the question's states, weighted by what they say."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, states: Tensor, length: Tensor) -> Tensor:
        """States (rows, places, width), of which so many are not padding, to (rows, width)."""
        padding = torch.arange(states.shape[1], device=states.device) >= length.clamp(min=1).unsqueeze(1)
        weights = self.score(states).squeeze(-1).masked_fill(padding, -torch.inf).softmax(-1)
        out: Tensor = (weights.unsqueeze(1) @ states).squeeze(1)
        return out


class Trunk(nn.Module):
    """Pixels to a feature map: convolutions, trained from scratch. Groups are normalised within each image, so that
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
        # Where a cell lies: a deep network learns it from its padding, a shallow one hardly.
        self.position = nn.Parameter(0.1 * torch.randn(1, *self.shape))

    def forward(self, images: Tensor) -> Tensor:
        """Images (rows, 3, height, width) to (rows, *shape)."""
        x: Tensor = self.normalise(images)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(x)).relu()
        return x + self.position


class Frozen(nn.Module):
    """Pixels to what a small trained network says of each cell; only where a cell lies is learned."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.sight = trained_sight()
        self.shape = (Sight.channels, -(-height // STRIDE), -(-width // STRIDE))
        self.position = nn.Parameter(torch.zeros(1, *self.shape))

    def forward(self, images: Tensor) -> Tensor:
        """Images (rows, 3, height, width) to (rows, *shape)."""
        out: Tensor = self.sight(images) + self.position
        return out


class Look(nn.Module):
    """One attention over cells."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.cells = nn.Linear(width, hidden)
        self.query = nn.Linear(width, hidden, bias=False)  # one bias in the sum is enough
        self.score = nn.Linear(hidden, 1, bias=False)  # and softmax knows none

    def forward(self, query: Tensor, cells: Tensor) -> Tensor:
        """What queries (..., width) see in cells (..., cells, width): their mean, weighted by how they fit."""
        hidden = torch.tanh(self.cells(cells) + self.query(query).unsqueeze(-2))
        weights = self.score(hidden).softmax(-2)
        seen: Tensor = (weights.transpose(-2, -1) @ cells).squeeze(-2)
        return seen


class SanEncoder(Encoder):
    """Questions about images, or about maps of their features, to vectors."""

    def __init__(self, recipe: San, inputs: Inputs) -> None:
        super().__init__()
        self.width = recipe.hidden
        self.question = Question(inputs.vocabulary, recipe.embedding, recipe.recurrent, recipe.recurrent_layers)
        self.trunk: Trunk | Frozen | None = None
        if inputs.grid is None:
            height, width = check_images("a SAN", inputs, PATCH)
            learned = recipe.trunk == "learned"
            self.trunk = Trunk(height, width, recipe.channels, recipe.cells) if learned else Frozen(height, width)
        channels = (inputs.grid or self.trunk.shape)[0]  # type: ignore[union-attr]
        self.projection = nn.Conv2d(channels, recipe.recurrent, 1)
        self.looks = nn.ModuleList(Look(recipe.recurrent, recipe.attention) for _ in range(recipe.looks))
        # Each look's own reading, where they are apart; the classifier then sees question, sights and their product.
        self.reads = nn.ModuleList(Read(recipe.recurrent) for _ in range(recipe.looks if recipe.apart else 0))
        self.hidden = nn.Linear(recipe.recurrent * (recipe.looks + 2 if recipe.apart else 1), recipe.hidden)

    def stem(self) -> Sequence[nn.Module]:
        """The words, and the trunk where there is one."""
        return [self.question.words, *([] if self.trunk is None else [self.trunk])]

    def layers(self) -> Sequence[nn.Module]:
        """The LSTM, the map's projection, each reading and each look, and the hidden layer."""
        return [self.question.recurrent, self.projection, *self.reads, *self.looks, self.hidden]

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width); (rows, choices, width) or (rows, images, width) where there are several of either."""
        text, length = inputs["text"], inputs["text_length"]
        several_texts = text.ndim == 3
        states = self.question.states(text.flatten(0, -2))
        query = self.question.last(states, length.flatten())
        # What each look asks for, after the question itself: (rows, [choices,] 1 + reads, width).
        asked = torch.stack([query, *(read(states, length.flatten()) for read in self.reads)], 1)
        asked = asked.view(*text.shape[:-1], *asked.shape[1:])
        seen = inputs["grid"] if self.trunk is None else inputs["image"]
        several_images = seen.ndim == 5
        seen = seen.flatten(0, -4)
        grid = seen.to(query.dtype) if self.trunk is None else self.trunk(seen)
        cells = self.projection(grid).flatten(2).transpose(1, 2)
        if several_images:
            assert not several_texts, "several images, or several texts"
            cells, asked = cells.view(len(asked), -1, *cells.shape[1:]), asked.unsqueeze(1)
        elif several_texts:
            cells = cells.unsqueeze(1)
        query, *own = asked.unbind(-2)
        if own:
            sights = [look(words, cells) for look, words in zip(self.looks, own, strict=True)]
            query = torch.cat([query.expand_as(sights[0]), *sights, torch.stack(sights).prod(0)], -1)
        else:
            for look in self.looks:
                query = query + look(query, cells)
        out: Tensor = self.hidden(query).relu()
        return out


@dataclass(frozen=True)
class San(Recipe):
    """LSTM + CNN + stacked attention over a feature map, or over pixels where the benchmark gives no map."""

    embedding: Annotated[int, Between(1)] = 300
    recurrent: Annotated[int, Between(1)] = 1024
    recurrent_layers: Annotated[int, Between(1)] = 2
    attention: Annotated[int, Between(1)] = 512
    looks: Annotated[int, Between(1)] = 2
    hidden: Annotated[int, Between(1)] = 1024
    channels: Annotated[int, Between(1)] = 256
    """Of the trunk that sees pixels."""
    cells: Annotated[int, Between(1)] = 14
    """The trunk halves its map until it has at most so many cells a side."""
    trunk: Literal["learned", "world"] = "learned"
    """learned: convolutions that learn from the pixels. world: a small frozen network that knows the world's blocks."""
    apart: bool = False
    """Whether each look reads words of its own, and is seen on its own by the classifier."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A network for these questions and images.

        >>> TinySan().encoder(Inputs((3, 64, 64), text=12, vocabulary=30)).trunk.shape
        (16, 8, 8)
        """
        if not inputs.text:
            raise UserError("a SAN needs questions, and this benchmark has no text: choose another model")
        return SanEncoder(self, inputs)

    def wants(self) -> Wants:
        """A feature map, where there is one."""
        return Wants(sees="grid")

    def source(self) -> str:
        """A hash of the frozen network's weights, where it is one."""
        return sight_hash() if self.trunk == "world" else ""


@dataclass(frozen=True)
class TinySan(San):
    """A small SAN that learns in a minute, for a CPU."""

    embedding: Annotated[int, Between(1)] = 32
    recurrent: Annotated[int, Between(1)] = 64
    recurrent_layers: Annotated[int, Between(1)] = 1
    attention: Annotated[int, Between(1)] = 64
    hidden: Annotated[int, Between(1)] = 128
    channels: Annotated[int, Between(1)] = 32
    cells: Annotated[int, Between(1)] = 8
    trunk: Literal["learned", "world"] = "world"
    apart: bool = True

    def wants(self) -> Wants:
        """Pixels, few of them."""
        return Wants(sees="image", side=64)
