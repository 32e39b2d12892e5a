"""What every model is: an encoder with its layers in order, and one head for each name that a task reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class Inputs:
    """What a benchmark's examples look like to a model."""

    image: tuple[int, int, int]


class Encoder(nn.Module, ABC):
    """Inputs to one vector of `width` numbers an example."""

    width: int

    @abstractmethod
    def stem(self) -> Sequence[nn.Module]:
        """What comes before the first layer: embeddings."""

    @abstractmethod
    def layers(self) -> Sequence[nn.Module]:
        """The layers from the bottom up."""


class Model(nn.Module):
    """An encoder and its heads. `model(inputs, head)` gives the outputs of one head."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(dict(heads))

    def forward(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of one head."""
        output: Tensor = self.heads[head](self.encoder(inputs))
        return output


class Recipe(ABC):
    """A model's sizes, as settings; `build` makes the model for given inputs and heads."""

    @abstractmethod
    def build(self, inputs: Inputs, heads: Mapping[str, int]) -> Model:
        """A freshly initialised model."""
