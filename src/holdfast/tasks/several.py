"""Several right answers: each to a degree, or any number of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor
from torch.nn import functional

from holdfast.metrics import micro_f1
from holdfast.tasks.base import OfHead
from holdfast.tasks.distillation import sigmoid_divergence
from holdfast.types import Array, Part


@dataclass(frozen=True)
class SoftLabel(OfHead):
    """Several answers that are each right to a degree, as determined by ten annotators: VQA.

    A target is a pair of rows: the indices of the answers (padded with -1) and the score of each.

    >>> answers = np.array([[[4, 2, -1], [1.0, 0.3, 0.0]]])
    >>> SoftLabel("vqa", head="vqa", outputs=5, chance=0.1).score(np.array([2]), answers)
    0.3
    """

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    chance: float
    prior: float = 0.0
    """Subtracted from every logit. A new head gives each answer even odds; if all but a few are wrong, the first steps
    learn only that, and disturb an encoder that has little time to recover: log(outputs) spares it."""

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The outputs of the task's head, minus the prior."""
        return super().forward(model, part) - self.prior

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Binary cross-entropy, summed over the answers: its mean times their number, as in CLiMB."""
        answers, scores = part.targets.unbind(1)
        dense = output.new_zeros(len(output), self.outputs + 1)  # the last column absorbs the padding
        places = answers.long() % (self.outputs + 1)
        dense = dense.scatter_(1, places, scores.to(output.dtype))[:, :-1]
        return functional.binary_cross_entropy_with_logits(output, dense, reduction="none").sum(-1)

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence of each answer's sigmoid, summed over the answers like the loss."""
        return sigmoid_divergence(taught, output, temperature).sum(-1)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The most likely answer."""
        return output.argmax(-1)

    def score(self, predictions: Array, targets: Array) -> float:
        """The mean score of the chosen answers."""
        answers, scores = targets[:, 0], targets[:, 1]
        return float(np.where(answers == predictions[:, None], scores, 0).sum(1).mean())


@dataclass(frozen=True)
class MultiLabel(OfHead):
    """Any number of classes at once, scored by micro-averaged F1; a target is a row of zeros and ones."""

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    chance: float

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Binary cross-entropy, the mean over the classes."""
        targets = part.targets.to(output.dtype)
        return functional.binary_cross_entropy_with_logits(output, targets, reduction="none").mean(-1)

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence of each class's sigmoid, averaged over the classes like the loss."""
        return sigmoid_divergence(taught, output, temperature).mean(-1)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """Every class that is more likely than not."""
        return output > 0

    def score(self, predictions: Array, targets: Array) -> float:
        """Micro-averaged F1."""
        return micro_f1(predictions, targets)
