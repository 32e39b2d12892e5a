"""One right answer of several: a class, or one of the texts that come with an example."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from holdfast.metrics import accuracy
from holdfast.tasks.base import OfHead
from holdfast.tasks.distillation import softmax_divergence
from holdfast.types import Array, Head, Part


class OneRight(OfHead):
    """One right answer among `outputs`, scored by accuracy; a target is its index."""

    @property
    @abstractmethod
    def reads(self) -> Head:
        """The kind of head that it needs."""

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Cross-entropy."""
        return functional.cross_entropy(output, part.targets, reduction="none")

    def loss(self, output: Tensor, part: Part) -> Tensor:
        """The mean cross-entropy, in one kernel."""
        return functional.cross_entropy(output, part.targets)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The most likely answer."""
        return output.argmax(-1)

    def score(self, predictions: Array, targets: Array) -> float:
        """The share of right answers."""
        return accuracy(predictions, targets)


@dataclass(frozen=True)
class Classify(OneRight):
    """One of `outputs` classes.

    >>> Classify("colours", head="colours", outputs=4, chance=0.25).score([1, 2, 3], [1, 2, 0])
    0.6666666666666666
    """

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    chance: float
    images: int = 1
    growing: bool = False
    """Whether the head knows only the classes that have appeared in some stage."""

    @property
    def reads(self) -> Head:
        """A classifier."""
        return Head("classify", self.outputs, self.images, self.growing)

    def units(self, targets: Tensor) -> Tensor:
        """The classes among these targets."""
        return targets

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence between both softmaxes, over these classes alone.

        >>> import torch
        >>> task = Classify("colours", head="colours", outputs=3, chance=1 / 3)
        >>> taught, output = torch.tensor([[5.0, 0.0, 9.0]]), torch.tensor([[5.0, 0.0, 0.0]])
        >>> task.divergence(taught, output, Part("colours", {}, torch.zeros(1)), 2.0, torch.tensor([0, 1]))
        tensor([0.])
        """
        if len(units) < output.shape[-1]:
            taught, output = taught.index_select(-1, units), output.index_select(-1, units)
        return softmax_divergence(taught, output, temperature)


@dataclass(frozen=True)
class Choose(OneRight):
    """Multiple choice: one of several texts is right. `outputs` is their number."""

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    chance: float

    @property
    def reads(self) -> Head:
        """A head with one number for each text."""
        return Head("choose", self.outputs)

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence between both softmaxes, over the texts."""
        return softmax_divergence(taught, output, temperature)
