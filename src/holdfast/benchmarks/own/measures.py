"""The measures of a user's own data: the field's usual ones, and the accuracy over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.benchmarks.base import USUAL, Benchmark, Measure, score_matrix
from holdfast.metrics import Undefined
from holdfast.types import Score

AVERAGE = "average_accuracy"
MEASURES = {"final_accuracy": USUAL["final_accuracy"], AVERAGE: Measure("average acc.", higher=True, mean_of=("*",))}
MEASURES |= USUAL
"""The average accuracy is a mean over time: after each stage, over the stages learned so far; for a stream without
boundaries, over all evaluations along the stream."""


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """The measures of a run; some are undefined unless each stage has an evaluation set.

    >>> log = [Score(0, 5, "a", "test", 9, 0.5), Score(1, 9, "a", "test", 9, 0.9)]
    >>> summary(log)["average_accuracy"]
    0.7
    """
    _, _, matrix = score_matrix(scores)
    found = Benchmark.summary(scores)
    if times := {score.step for score in scores if score.stage == 0 and score.step}:
        times.add(max(score.step for score in scores))  # the end may be one of these times, and counts once
        means = [np.mean([s.score for s in scores if s.step == time and s.split == "test"]) for time in sorted(times)]
        return found | {AVERAGE: float(np.mean(means))}
    if matrix.shape[0] == matrix.shape[1]:
        return found | {AVERAGE: float(np.mean([row[: number + 1].mean() for number, row in enumerate(matrix)]))}
    return found | {AVERAGE: Undefined(f"needs one stage for each task, and there are {matrix.shape[0]}")}
