"""A perceptron of several layers over pixels: the smallest model that can forget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Encoder, Model
from holdfast.types import Between, Inputs


class PerceptronEncoder(Encoder):
    """Fully connected layers with ReLU over pixels in [0, 255]."""

    recordable = True

    def __init__(self, pixels: int, width: int, depth: int) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Linear(pixels, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def stem(self) -> Sequence[nn.Module]:
        """The projection of the pixels."""
        return [self.embedding]

    def layers(self) -> Sequence[nn.Module]:
        """The hidden layers."""
        return list(self.hidden)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Map images (batch, channels, height, width) to features (batch, width)."""
        pixels = inputs["image"].flatten(1).to(self.embedding.weight.dtype)
        x: Tensor = self.embedding(pixels.mul(1 / 127.5).sub(1)).relu()
        for layer in self.hidden:
            x = layer(x).relu()
        return x


@dataclass(frozen=True)
class Perceptron(Model):
    """Fully connected layers over pixels."""

    version: ClassVar[int] = 1

    width: Annotated[int, Between(1)] = 128
    """The width of each hidden layer."""
    depth: Annotated[int, Between(0)] = 2
    """The number of hidden layers after the first projection."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A perceptron for images of this size.

        >>> from holdfast.types import Head
        >>> model = Perceptron(width=8, depth=1).build(Inputs((1, 4, 4)), {"colours": Head("classify", 3)})
        >>> model.heads["colours"].classifier.out_features
        3
        """
        if inputs.image is None:
            raise UserError("a perceptron needs images, but this benchmark has none: choose another model")
        channels, height, width = inputs.image
        return PerceptronEncoder(channels * height * width, self.width, self.depth)
