"""The few-shot tests at the end of a run: which examples each one draws from, and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from holdfast.benchmarks.cfst import fewshot, protocol
from holdfast.types import Array, Ids, Score, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass(frozen=True)
class FewShotTest:
    """A few-shot test: the examples of its mode, those from which it draws, and their classes."""

    name: str
    mode: Ids
    rows: Ids
    labels: NDArray[np.int64]
    way: int
    bits: NDArray[np.int64]
    """The concepts of each row, one bit each."""
    concepts: tuple[str, ...]

    def title(self, row: int) -> str:
        """The concepts that an example shows, as far as training knows them.

        >>> nothing = np.zeros(1, np.int64)
        >>> FewShotTest("sys", nothing, nothing, nothing, 2, np.array([5]), ("door", "fence", "hat")).title(0)
        'door, hat'
        """
        return ", ".join(word for place, word in enumerate(self.concepts) if self.bits[row] >> place & 1)


@dataclass(frozen=True)
class FewShotTests:
    """All few-shot tests, taken when the last stage of a run has been learned."""

    tests: Sequence[FewShotTest]
    head: str
    """The task whose encoder is tested: it may have a path or adapters of its own."""
    tasks: int
    frozen: bool
    seed: int

    def __call__(self, learner: Learner, learned: Stream, step: int) -> list[tuple[Score, Array]]:
        """The scores of the extractor in its current state; the features of a mode are computed once."""
        found: list[tuple[Score, Array]] = []
        seen: Ids | None = None
        for test in self.tests:
            random = np.random.default_rng([self.seed, *test.name.encode()])  # independent of the other tests
            drawn = fewshot.draw(test.labels, random, tasks=self.tasks, way=test.way)
            heads = fewshot.new_heads(self.tasks, test.way, learner.model.encoder.width, random)
            if not self.frozen:
                accuracies = fewshot.unfrozen_accuracies(learner, test.mode[test.rows], self.head, drawn, heads)
            else:
                if test.mode is not seen:
                    seen, features = test.mode, fewshot.extract(learner, test.mode, self.head)
                accuracies = fewshot.accuracies(features[torch.from_numpy(test.rows)], drawn, heads)
            found += protocol.scored(test.name, accuracies, drawn.query.size, len(learned.stages), step)
        return found
