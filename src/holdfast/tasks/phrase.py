"""Phrases whose words are hidden in a caption and have to be filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast.tasks.base import OfHead
from holdfast.tasks.distillation import softmax_divergence
from holdfast.types import Array, Head, Part


@dataclass(frozen=True)
class MaskedPhrase(OfHead):
    """Words of a phrase that are hidden in its caption; a target holds them, padded with -100.

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
        """The cross-entropy of each hidden word (rows, places), 0 for padding."""
        flat = functional.cross_entropy(output.flatten(0, 1), part.targets.flatten().long(), reduction="none")
        return flat.view(part.targets.shape)

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence of each hidden word's softmax, averaged over the hidden words of each phrase."""
        hidden = part.targets >= 0
        return (softmax_divergence(taught, output, temperature) * hidden).sum(-1) / hidden.sum(-1)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The loss of each hidden word, 0 for padding, followed by the most likely words: (rows, 2 x places)."""
        words = output.argmax(-1).to(torch.float32)
        return torch.cat([self.word_losses(output, part).to(torch.float32), words], dim=1)

    def score(self, predictions: Array, targets: Array) -> float:
        """Minus the log-perplexity."""
        return -float(phrase_losses(predictions, targets).mean())


def phrase_losses(predictions: Array, targets: Array) -> Array:
    """The log-perplexity of each phrase, from the predictions of `MaskedPhrase`.

    >>> phrase_losses(np.array([[1.0, 3.0, 7, 7], [4.0, 0.0, 7, 7]]), np.array([[5, 6], [5, -100]]))
    array([2., 4.])
    """
    there = targets >= 0
    return predictions[:, : targets.shape[1]].astype(np.float64).sum(1) / there.sum(1)  # type: ignore[no-any-return]
