"""The few-shot tests at the end of a run: which examples each one draws from, and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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


@dataclass(frozen=True)
class FewShotTests:
    """All few-shot tests, taken when the last stage of a run has been learned."""

    tests: Sequence[FewShotTest]
    head: str
    """The task whose encoder is tested: it may have a path or adapters of its own."""
    tasks: int
    frozen: bool
    seed: int
    shots: int = fewshot.SHOT
    flips: bool = False
    schedule: Literal["constant", "cosine"] | None = "constant"
    """None: that of the last stage's training."""

    def __call__(self, learner: Learner, learned: Stream, step: int) -> list[tuple[Score, Array]]:
        """The scores of the extractor in its current state; the features of a mode are computed once."""
        found: list[tuple[Score, Array]] = []
        seen: Ids | None = None
        cosine = (self.schedule or learned.stages[-1].training.schedule) == "cosine"
        for test in self.tests:
            random = np.random.default_rng([self.seed, *test.name.encode()])  # independent of the other tests
            drawn = fewshot.draw(test.labels, random, tasks=self.tasks, way=test.way, shot=self.shots)
            heads = fewshot.new_heads(self.tasks, test.way, learner.model.encoder.width, random)
            training = fewshot.head_training(drawn, random, flips=self.flips, cosine=cosine)
            if not self.frozen:
                accuracies = fewshot.unfrozen_accuracies(
                    learner, test.mode[test.rows], self.head, drawn, heads, training
                )
            else:
                if test.mode is not seen:
                    seen, sides = test.mode, [False, True] if self.flips else [False]
                    features = [fewshot.extract(learner, test.mode, self.head, side) for side in sides]
                accuracies = fewshot.accuracies(
                    features[0][torch.from_numpy(test.rows)],
                    drawn,
                    heads,
                    training,
                    features[1][torch.from_numpy(test.rows)] if self.flips else None,
                )
            found += protocol.scored(test.name, accuracies, drawn.query.size, len(learned.stages), step)
        return found
