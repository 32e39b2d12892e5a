"""When the patterns are evaluated, and which measures follow: the field's usual ones, on the whole score matrix."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast import metrics
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.types import Score

MEASURES = {
    "final_accuracy": Measure("final acc.", higher=True, mean_of=("*",)),
    "learning_accuracy": Measure("learning acc.", higher=True, mean_of=("*",)),
    "forgetting": Measure("forgetting", higher=False, relies_on="final_accuracy"),
    "backward_transfer": Measure("BWT", higher=True, relies_on="final_accuracy"),
}


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """The measures of a run; all but the final accuracy need a score matrix with one row for each task."""
    _, _, matrix = score_matrix(scores)
    found = {"final_accuracy": metrics.mean(matrix[-1])}
    if matrix.shape[0] != matrix.shape[1]:
        reason = f"needs one stage for each task, and there are {matrix.shape[0]} for {matrix.shape[1]}"
        return found | {name: metrics.Undefined(reason) for name in MEASURES if name != "final_accuracy"}
    return found | {
        "learning_accuracy": metrics.learning_accuracy(matrix),
        "forgetting": metrics.forgetting(matrix),
        "backward_transfer": metrics.backward_transfer(matrix, final=True),
    }
