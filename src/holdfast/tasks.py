"""The kinds of task: each says how a model's output becomes a loss, a prediction and a score."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from holdfast.metrics import accuracy
from holdfast.types import Array, Part, Task


@dataclass(frozen=True)
class Classify(Task):
    """One right answer among `outputs`, scored by accuracy.

    >>> Classify("colours", head="colours", outputs=4, chance=0.25).score([1, 2, 3], [1, 2, 0])
    0.6666666666666666
    """

    name: str
    head: str
    outputs: int
    chance: float

    def forward(self, model: nn.Module, part: Part) -> Tensor:
        """The logits of the task's head."""
        output: Tensor = model(part.inputs, self.head)
        return output

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Cross-entropy."""
        return functional.cross_entropy(output, part.targets, reduction="none")

    def loss(self, output: Tensor, part: Part) -> Tensor:
        """The mean cross-entropy, in one kernel."""
        return functional.cross_entropy(output, part.targets)

    def predictions(self, output: Tensor) -> Tensor:
        """The most likely answer."""
        return output.argmax(-1)

    def score(self, predictions: Array, targets: Array) -> float:
        """The share of right answers."""
        return accuracy(predictions, targets)
