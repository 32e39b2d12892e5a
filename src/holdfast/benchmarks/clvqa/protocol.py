"""When the tasks are evaluated, and the resulting measures: the paper's, from the matrix of accuracies.

Backward transfer is the cited definition (Diaz-Rodriguez et al., 2018): the supplement prints it with an extra factor
N, with which two tasks would leave [-1, 1]; see `metrics.backward_transfer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast import metrics
from holdfast.benchmarks.base import Measure, absent, score_matrix
from holdfast.types import Score

MEASURES = {
    "wh": Measure("Wh", higher=True),
    "yn": Measure("Y/N", higher=True),
    "mean_accuracy": Measure("Mean acc", higher=True, mean_of=("*",)),
    "backward_transfer": Measure("BWT", higher=True, relies_on="mean_accuracy"),
    "remembering": Measure("Rem", higher=True, relies_on="mean_accuracy"),
    "intransigence": Measure("Int", higher=False, relies_on="mean_accuracy"),
    "cl_score": Measure("CL score", higher=True, relies_on="mean_accuracy"),
}
_ALONE = "needs one stage for each task, but there are {} for {}"
REFERENCE = "cumulative"
"""The run that intransigence is measured against."""


def summary(scores: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The measures that need no other run: the accuracy on both tasks at the end, and those of its own score matrix."""
    names, _, matrix = score_matrix(scores, split)
    last = dict(zip(names, matrix[-1].tolist(), strict=True)) if len(matrix) else {}
    found: dict[str, float] = {name: last.get(name, metrics.Undefined("was not measured")) for name in ("wh", "yn")}
    if matrix.shape[0] != matrix.shape[1]:
        reason = metrics.Undefined(_ALONE.format(*matrix.shape))
        return found | {name: reason for name in MEASURES if name not in found}
    return found | {
        "mean_accuracy": metrics.mean_accuracy(matrix),
        "backward_transfer": metrics.backward_transfer(matrix),
        "remembering": metrics.remembering(matrix),
        "intransigence": absent(REFERENCE),
        "cl_score": absent(REFERENCE),
    }


def relative(scores: Sequence[Score], reference: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The measures that need the cumulative run: Int, and the CL score (Mean acc, Rem and Int, equally weighted)."""
    alone = summary(scores, split)
    (names, _, matrix), (others, _, together) = score_matrix(scores, split), score_matrix(reference, split)
    if matrix.shape[0] != matrix.shape[1] or names != others or matrix.shape != together.shape:
        return {}
    intransigence = metrics.intransigence(matrix, together.diagonal())
    parts = {name: alone[name] for name in ("mean_accuracy", "remembering")} | {"intransigence": intransigence}
    return {"intransigence": intransigence, "cl_score": metrics.cl_score(parts)}
