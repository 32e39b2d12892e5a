"""Further measures of a whole score matrix, as libraries and papers on pre-trained models report them.

`scores[i, j]` is the score on task j after training stage i, as in `forgetting`.
"""

import numpy as np
from numpy.typing import ArrayLike

from holdfast.metrics.arrays import square
from holdfast.metrics.undefined import Undefined


def average_incremental_accuracy(scores: ArrayLike) -> float:
    """Mean over stages of the mean score on the tasks learned so far: A = (1/N) sum_i (1/i) sum_{j <= i} R_ij.

    iCaRL (Rebuffi et al., 2017) introduced it; the average of PILOT and PyCIL is this one if all tasks are tested on as
    many examples. It is also called average anytime accuracy, CAA or MAA.

    >>> average_incremental_accuracy([[0.9, float("nan")], [0.3, 0.6]])  # (0.9 + 0.45) / 2
    0.675
    """
    table = square(scores, "scores")
    if not np.isfinite(table[np.tri(len(table), dtype=bool)]).all():
        return Undefined("a score on a learned task was not measured")
    return float(np.mean([table[stage, : stage + 1].mean() for stage in range(len(table))]))


def drop_from_best(scores: ArrayLike) -> float:
    """Mean drop of each earlier task from its best score at any stage to its last: never negative.

    F = (1 / (N - 1)) sum_{j < N} (max_l R_lj - R_Nj). PILOT and PyCIL print this; `forgetting`, of Chaudhry et al.
    (2018), leaves out the last stage from the maximum, so that a task that improves counts as negative forgetting.

    >>> drop_from_best([[0.5, 0, 0], [0.75, 1, 0], [0.25, 1, 1]])  # ((0.75 - 0.25) + (1 - 1)) / 2
    0.25
    """
    table = square(scores, "scores")
    if len(table) == 1:
        return Undefined("forgetting needs at least two tasks")
    if not np.isfinite(table[np.tri(len(table), dtype=bool)]).all():
        return Undefined("a score on a learned task was not measured")
    return float((np.nanmax(table, axis=0) - table[-1])[:-1].mean())


def zero_shot_transfer(scores: ArrayLike) -> float:
    """Mean over tasks of the mean score before a task is learned: ZSCL's Transfer (Zheng et al., 2023).

    T = (1 / (N - 1)) sum_{j > 1} (1 / (j - 1)) sum_{i < j} R_ij: the mean over tasks of the mean of a column above the
    diagonal.

    >>> zero_shot_transfer([[9, 1, 2], [9, 9, 4], [9, 9, 9]])  # (1 + (2 + 4) / 2) / 2
    2.0
    """
    table = square(scores, "scores")
    if len(table) == 1:
        return Undefined("transfer needs at least two tasks")
    if not np.isfinite(table[~np.tri(len(table), dtype=bool)]).all():
        return Undefined("a score on a task that was not learned yet was not measured")
    return float(np.mean([table[:task, task].mean() for task in range(1, len(table))]))


def average_over_stages(scores: ArrayLike) -> float:
    """Mean of all entries, learned or not: ZSCL's Average (Zheng et al., 2023).

    >>> average_over_stages([[0.5, 0.25], [0.25, 1.0]])
    0.5
    """
    table = square(scores, "scores")
    if not np.isfinite(table).all():
        return Undefined("a score was not measured")
    return float(table.mean())
