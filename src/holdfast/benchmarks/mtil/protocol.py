"""When datasets are scored, and the measures: those of ZSCL, from the matrix of accuracies.

Source: Zheng et al. 2023, section 4.1. Row i of the matrix has the accuracies after stage i, column j those on the
dataset of stage j, both from 1 to n.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast import metrics
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.metrics import Undefined
from holdfast.types import Score

RETRIEVAL = "retrieval"
"""The evaluation set of captions that no stage teaches."""
MEASURES = {
    "transfer": Measure("Transfer", higher=True),
    "average": Measure("Average", higher=True, mean_of=("*",)),
    "last": Measure("Last", higher=True, mean_of=("*",)),
    "zero_shot": Measure("zero-shot", higher=True, mean_of=("*",)),
    "retained": Measure("retrieval", higher=True),
    "retained_change": Measure("change of retrieval", higher=True),
}


def transfer(matrix: NDArray[np.float64]) -> float:
    """The mean accuracy on datasets before they are learned: over stages i < j for each j > 1, then over datasets.

    >>> transfer(np.array([[9, 1, 2], [9, 9, 4], [9, 9, 9]], float))
    2.0
    """
    return metrics.zero_shot_transfer(matrix)


def average(matrix: NDArray[np.float64]) -> float:
    """The mean accuracy on all datasets after each stage."""
    return float(matrix.mean())


def last(matrix: NDArray[np.float64]) -> float:
    """The mean accuracy on all datasets after the last stage."""
    return float(matrix[-1].mean())


def summary(scores: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The measures of a run."""
    names, before, matrix = score_matrix(scores, split)
    places = [place for place, name in enumerate(names) if name != RETRIEVAL]
    own, zero = matrix[:, places], before[places]
    found: dict[str, float] = {name: Undefined("no stage was learned") for name in MEASURES}
    found["zero_shot"] = float(zero.mean())
    if len(matrix):
        square = own.shape[0] == own.shape[1]
        found["transfer"] = transfer(own) if square else Undefined("not all datasets were learned")
        found |= {"average": average(own), "last": last(own)}
    kept = [place for place, name in enumerate(names) if name == RETRIEVAL]
    for name in ("retained", "retained_change"):
        if not kept:
            found[name] = Undefined("no captions were held out")
        elif len(matrix):
            now, then = float(matrix[-1, kept[0]]), float(before[kept[0]])
            found[name] = now if name == "retained" else now - then
    return found
