"""The kinds of task: each says how a model's output becomes a loss, a prediction and a score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast.metrics import accuracy, micro_f1
from holdfast.types import Array, Head, Part, Task


class _HeadTask(Task):
    """A task whose output is what its head gives."""

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The outputs of the task's head."""
        return model(part.inputs, self.head)


@dataclass(frozen=True)
class Classify(_HeadTask):
    """One right answer among `outputs`, scored by accuracy.

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
    """Whether the head knows only the classes that some stage has brought."""

    @property
    def reads(self) -> Head:
        """A classifier."""
        return Head("classify", self.outputs, self.images, self.growing)

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
class SoftLabel(_HeadTask):
    """Several answers that each are right to a degree, as ten annotators make them: VQA.

    A target is a pair of rows: the numbers of the answers (-1 where there are fewer) and what each of them scores.

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
    """What is taken off every logit. A new head gives each answer even odds; where all but a few are wrong, the first
    steps only learn that, and shake an encoder that has little time to recover: log(outputs) spares it."""

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The outputs of the task's head, less the prior."""
        return super().forward(model, part) - self.prior

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Binary cross-entropy, summed over the answers: its mean times their number, as in CLiMB."""
        answers, scores = part.targets.unbind(1)
        dense = output.new_zeros(len(output), self.outputs + 1)  # the last column takes what is padding
        places = answers.long() % (self.outputs + 1)
        dense = dense.scatter_(1, places, scores.to(output.dtype))[:, :-1]
        return functional.binary_cross_entropy_with_logits(output, dense, reduction="none").sum(-1)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The most likely answer."""
        return output.argmax(-1)

    def score(self, predictions: Array, targets: Array) -> float:
        """The mean score of the chosen answers."""
        answers, scores = targets[:, 0], targets[:, 1]
        return float(np.where(answers == predictions[:, None], scores, 0).sum(1).mean())


@dataclass(frozen=True)
class MultiLabel(_HeadTask):
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

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """Every class that is more likely than not."""
        return output > 0

    def score(self, predictions: Array, targets: Array) -> float:
        """Micro-averaged F1."""
        return micro_f1(predictions, targets)


@dataclass(frozen=True)
class Choose(Classify):
    """One of several texts is right: multiple choice. `outputs` is their number."""

    version: ClassVar[int] = 1

    @property
    def reads(self) -> Head:
        """A head with one number for each text."""
        return Head("choose", self.outputs)


@dataclass(frozen=True)
class MaskedPhrase(_HeadTask):
    """Words of a phrase that are hidden in its caption; a target holds them, -100 where there are fewer.

    The score is minus the log-perplexity: the mean over a phrase's words, then over phrases.
    """

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    """The number of word pieces."""
    chance: float

    @property
    def reads(self) -> Head:
        """A head over the word pieces."""
        return Head("phrase", self.outputs)

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Cross-entropy: the mean over the hidden words of each phrase."""
        words = self.word_losses(output, part)
        return words.sum(-1) / (part.targets >= 0).sum(-1)

    def word_losses(self, output: Tensor, part: Part) -> Tensor:
        """The cross-entropy of each hidden word (rows, places), 0 where there is none."""
        flat = functional.cross_entropy(output.flatten(0, 1), part.targets.flatten().long(), reduction="none")
        return flat.view(part.targets.shape)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The loss of each hidden word, 0 where there is none, then the most likely words: (rows, 2 x places)."""
        words = output.argmax(-1).to(torch.float32)
        return torch.cat([self.word_losses(output, part).to(torch.float32), words], dim=1)

    def score(self, predictions: Array, targets: Array) -> float:
        """Minus the log-perplexity."""
        return -float(phrase_losses(predictions, targets).mean())


def phrase_losses(predictions: Array, targets: Array) -> Array:
    """The log-perplexity of each phrase, from what `MaskedPhrase` predicts.

    >>> phrase_losses(np.array([[1.0, 3.0, 7, 7], [4.0, 0.0, 7, 7]]), np.array([[5, 6], [5, -100]]))
    array([2., 4.])
    """
    there = targets >= 0
    return predictions[:, : targets.shape[1]].astype(np.float64).sum(1) / there.sum(1)  # type: ignore[no-any-return]
