"""Accuracy, transfer and forgetting over a sequence of tasks, from one matrix of scores.

`scores[i, j]` (R_ij in the papers) is the score on task j after training stage i; there are N stages and N tasks,
counted from 0 in the code. Higher scores are better. Entries above the diagonal (tasks not yet learned) may be NaN if
they were not measured; only `forward_transfer` needs them. If a needed score is missing, or if a single task is not
enough for the measure, the result is `Undefined`, with the reason.

Sources: Lopez-Paz and Ranzato, 2017 (GEM); Chaudhry et al., 2018 (Riemannian walk); Diaz-Rodriguez et al., 2018
(Don't forget, there is more than forgetting), as used by Greco et al., 2019.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import UserError
from holdfast.metrics.arrays import Floats, number, square, vector
from holdfast.metrics.undefined import Undefined

Mask = NDArray[np.bool_]

# Every measure the CL score can include. Those on the left already run from 0 (bad) to 1 (good);
# those on the right run from -1 (good) to 1 (bad).
_GOOD_IS_ONE = ("mean_accuracy", "final_accuracy", "learning_accuracy", "remembering")
_BAD_IS_ONE = ("intransigence", "forgetting")


def mean_accuracy(scores: ArrayLike) -> float:
    """Mean score on the tasks learned so far, over all stages: the lower triangle including the diagonal.

    A = sum_{i >= j} R_ij / (N (N + 1) / 2) (Diaz-Rodriguez et al., 2018; Greco et al., 2019).

    >>> mean_accuracy([[0.9, float("nan")], [0.3, 0.6]])  # (0.9 + 0.3 + 0.6) / 3
    0.6
    """
    table = square(scores, "scores")
    return _mean_where(table, _at_or_below_diagonal(table))


def final_accuracy(scores: ArrayLike) -> float:
    """Mean score over all tasks after the last stage: ACC = (1/N) sum_j R_Nj (Lopez-Paz and Ranzato, 2017).

    >>> round(final_accuracy([[0.9, 0.1], [0.3, 0.6]]), 6)  # (0.3 + 0.6) / 2
    0.45
    """
    table = square(scores, "scores")
    last_row = np.zeros_like(table, dtype=bool)
    last_row[-1] = True
    return _mean_where(table, last_row)


def learning_accuracy(scores: ArrayLike) -> float:
    """Mean score on each task right after learning it: the diagonal, LA = (1/N) sum_j R_jj (Riemer et al., 2019).

    >>> learning_accuracy([[0.9, 0.1], [0.3, 0.6]])  # (0.9 + 0.6) / 2
    0.75
    """
    table = square(scores, "scores")
    return _mean_where(table, np.eye(len(table), dtype=bool))


def backward_transfer(scores: ArrayLike, final: bool = False) -> float:
    """The effect of learning later tasks on earlier ones; negative values mean forgetting.

    By default it covers every later stage: BWT = sum_{i > j} (R_ij - R_jj) / (N (N - 1) / 2) (Diaz-Rodriguez et al.,
    2018). The supplement of Greco et al. (2019) prints this with an extra factor N in the numerator. The definition it
    cites does not have that factor, and with N = 2 the result would leave [-1, 1], so we omit it. With `final=True`
    only the last stage counts: BWT = sum_{j < N} (R_Nj - R_jj) / (N - 1) (Lopez-Paz and Ranzato, 2017). For two tasks
    the two forms agree.

    >>> table = [[0.75, 0, 0], [0.5, 1, 0], [0.25, 0.5, 1]]
    >>> backward_transfer(table)  # (-0.25 - 0.5 - 0.5) / 3
    -0.4166666666666667
    >>> backward_transfer(table, final=True)  # (-0.5 - 0.5) / 2
    -0.5
    """
    table = square(scores, "scores")
    if len(table) == 1:
        return Undefined("backward transfer needs at least two tasks")
    used = _at_or_below_diagonal(table)
    missing = _unmeasured(table, used)
    if missing is not None:
        return missing
    change = table - np.diagonal(table)
    earlier = used & ~np.eye(len(table), dtype=bool)
    return float((change[-1, :-1] if final else change[earlier]).mean())


def remembering(scores: ArrayLike) -> float:
    """How much of what was learned is kept: REM = 1 - |min(BWT, 0)| (Diaz-Rodriguez et al., 2018); 1 means everything.

    BWT is `backward_transfer` over every later stage. Scores must lie between 0 and 1.

    >>> remembering([[0.75, 0], [0.25, 0.5]])  # 1 - (0.75 - 0.25)
    0.5
    """
    table = square(scores, "scores")
    result = backward_transfer(table)
    if isinstance(result, Undefined):
        return Undefined(result.reason.replace("backward transfer", "remembering"))
    _check_shares(table[_at_or_below_diagonal(table)])
    return 1 - abs(min(result, 0.0))


def forward_transfer(scores: ArrayLike, baseline: ArrayLike | None = None) -> float:
    """How much earlier tasks help with tasks not yet learned; higher is better. It reads above the diagonal.

    With `baseline`, the score of an untrained model on each task (b_j): FWT = sum_{j > 1} (R_{j-1,j} - b_j) / (N - 1)
    (Lopez-Paz and Ranzato, 2017). Without it: FWT = sum_{i < j} R_ij / (N (N - 1) / 2), the mean of all scores above
    the diagonal (Diaz-Rodriguez et al., 2018). The two are on different scales: the first is a gain, the second a
    score.

    >>> table = [[1, 0.5, 0.25], [1, 1, 0.75], [1, 1, 1]]
    >>> forward_transfer(table)  # (0.5 + 0.25 + 0.75) / 3
    0.5
    >>> forward_transfer(table, baseline=[0, 0.25, 0.25])  # (0.5 - 0.25 + 0.75 - 0.25) / 2
    0.375
    """
    table = square(scores, "scores")
    untrained = None if baseline is None else _for_each_task(baseline, "baseline", table)
    if len(table) == 1:
        return Undefined("forward transfer needs at least two tasks")
    if untrained is None:
        return _mean_where(table, ~_at_or_below_diagonal(table))
    if not np.isfinite(untrained[1:]).all():
        return Undefined("baseline contains a value that is not a finite number")
    ahead = _mean_where(table, np.eye(len(table), k=1, dtype=bool))
    return ahead if isinstance(ahead, Undefined) else ahead - float(untrained[1:].mean())


def forgetting(scores: ArrayLike) -> float:
    """Mean drop of each earlier task from its best score so far to its last; in [-1, 1], lower is better.

    F = (1 / (N - 1)) sum_{j < N} f_j with f_j = max_{l < N} R_lj - R_Nj (Chaudhry et al., 2018). As in that paper, the
    best is taken over all earlier stages, including those before task j was learned, if these were measured.

    >>> forgetting([[0.5, 0, 0], [0.75, 1, 0], [0.25, 0.5, 1]])  # ((0.75 - 0.25) + (1 - 0.5)) / 2
    0.5
    """
    table = square(scores, "scores")
    if len(table) == 1:
        return Undefined("forgetting needs at least two tasks")
    missing = _unmeasured(table, _at_or_below_diagonal(table))
    if missing is not None:
        return missing
    best = np.nanmax(table[:-1, :-1], axis=0)  # no column is all NaN: the diagonal was measured
    return float((best - table[-1, :-1]).mean())


def intransigence(scores: ArrayLike, reference: ArrayLike) -> float:
    """How much worse each new task is learned than by a model that sees all data; in [-1, 1], lower is better.

    I_k = a*_k - R_kk, where a*_k (`reference[k]`) is the score on task k of a model trained on tasks 1 to k together
    (Chaudhry et al., 2018). The result is the mean over k = 2..N, because on the first task the two models are
    identical, as Greco et al. (2019) say, who report I_2 of two tasks. `reference[0]` is never read and may be NaN.

    >>> intransigence([[0.9, 0], [0.3, 0.5]], reference=[float("nan"), 0.75])
    0.25
    """
    table = square(scores, "scores")
    together = _for_each_task(reference, "reference", table)
    if len(table) == 1:
        return Undefined("intransigence needs at least two tasks")
    after_first = np.eye(len(table), dtype=bool)
    after_first[0, 0] = False
    if not np.isfinite(together[1:]).all():
        return Undefined("reference contains a value that is not a finite number")
    learned = _mean_where(table, after_first)
    return learned if isinstance(learned, Undefined) else float(together[1:].mean()) - learned


def cl_score(measures: Mapping[str, float], weights: Mapping[str, float] | None = None) -> float:
    """One figure for a learner: a weighted mean of measures, each rescaled to run from 0 (bad) to 1 (good).

    CL score = sum_i w_i c_i with weights that sum to 1 (equal by default) (Diaz-Rodriguez et al., 2018). Intransigence
    and forgetting run from -1 (good) to 1 (bad) and enter as 1 - (c + 1) / 2, as in the supplement of Greco et al.
    (2019), whose CL score combines mean accuracy, remembering and intransigence.

    >>> cl_score({"mean_accuracy": 0.5, "remembering": 0.75, "intransigence": 0.5})  # (0.5 + 0.75 + 0.25) / 3
    0.5
    """
    if not measures:
        raise UserError("measures is empty")
    known = (*_GOOD_IS_ONE, *_BAD_IS_ONE)
    unknown = [name for name in measures if name not in known]
    if unknown:
        raise UserError(f"measures has unknown names {', '.join(unknown)}; the known names are {', '.join(known)}")
    if weights is None:
        weights = dict.fromkeys(measures, 1.0)
    elif not np.isclose(sum(weights.values()), 1):
        raise UserError("weights must sum to 1")
    if set(weights) != set(measures):
        raise UserError(f"weights must name the same measures: {', '.join(measures)}")
    shares = vector([weights[name] for name in measures], "weights")
    if not (shares >= 0).all():
        raise UserError("weights must be at least 0")
    values = []
    for name, measure in measures.items():
        value = number(measure, name)
        if isinstance(value, Undefined):
            return Undefined(f"{name} is undefined: {value.reason}")
        values.append(_from_zero_to_one(name, value))
    return float(np.average(values, weights=shares))


def _from_zero_to_one(name: str, value: float) -> float:
    lowest = -1 if name in _BAD_IS_ONE else 0
    if not lowest - 1e-6 <= value <= 1 + 1e-6:
        raise UserError(f"{name} must lie between {lowest} and 1, not {value:g} (is it in percent?)")
    return 1 - (value + 1) / 2 if name in _BAD_IS_ONE else value


def _at_or_below_diagonal(table: Floats) -> Mask:
    return np.tri(len(table), dtype=np.bool_)


def _mean_where(table: Floats, used: Mask) -> float:
    missing = _unmeasured(table, used)
    return float(table[used].mean()) if missing is None else missing


def _unmeasured(table: Floats, used: Mask) -> Undefined | None:
    holes: NDArray[Any] = np.argwhere(used & ~np.isfinite(table))
    if not len(holes):
        return None
    return Undefined(f"scores[{holes[0][0]}, {holes[0][1]}] was not measured")


def _for_each_task(values: ArrayLike, name: str, table: Floats) -> Floats:
    array = vector(values, name)
    if len(array) != len(table):
        raise UserError(f"{name} must hold one value for each of the {len(table)} tasks, not {len(array)}")
    return array


def _check_shares(used: Floats) -> None:
    if used.min() < -1e-6 or used.max() > 1 + 1e-6:
        raise UserError("scores must lie between 0 and 1 (are they in percent?)")
