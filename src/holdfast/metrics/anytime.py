"""How good a learner is while it spends a budget: the curve of its scores against its spending, and the area below."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import UserError
from holdfast.metrics.arrays import same_length, vector
from holdfast.metrics.undefined import Undefined
from holdfast.types import Score

SPENT = ("stage", "step", "flops", "forward", "backward")
"""The values that a record has for each round of scores, in this order."""


def anytime_curve(
    scores: Sequence[Score], spent: Sequence[Sequence[int]], by: str = "flops"
) -> tuple[list[int], list[float]]:
    """The amount spent at each round of scores, and the mean score over the test sets that were scored then.

    `by` is `flops`, `forward`, `backward`, or `passes`, which is the sum of the last two. Rounds that did not score any
    test set are left out.

    >>> log = [Score(1, 3, "a", "test", 9, 0.5), Score(2, 6, "a", "test", 9, 0.25), Score(2, 6, "b", "test", 9, 0.75)]
    >>> anytime_curve(log, [(1, 3, 100, 9, 9), (2, 6, 250, 27, 27)])
    ([100, 250], [0.5, 0.5])
    """
    found: dict[tuple[int, int], list[float]] = {}
    for score in scores:
        if score.split == "test" and "/" not in score.name:
            found.setdefault((score.stage, score.step), []).append(score.score)
    rounds = [(row, found[row[0], row[1]]) for row in spent if (row[0], row[1]) in found]
    places = [SPENT.index(name) for name in (("forward", "backward") if by == "passes" else (by,))]
    return [sum(row[place] for place in places) for row, _ in rounds], [float(np.mean(values)) for _, values in rounds]


def anytime_area(spent: ArrayLike, scores: ArrayLike, budget: float | None = None) -> float:
    """The mean score over a budget, if each score holds for what was spent since the one before it.

    A = (sum_i S_i (B_i - B_{i-1}) + S_n (B - B_n)) / B, with B_i the amount spent at the score S_i, and B_0 = 0; the
    rest of the budget B counts with the last score. If all stages cost the same and use up the budget, this is the
    average anytime accuracy (Caccia et al., 2022): the mean of the scores after each stage. Without `budget`, B = B_n.

    >>> anytime_area([100, 200], [0.5, 0.75])
    0.625
    >>> anytime_area([0, 100, 200], [0.1, 0.5, 0.75], budget=400)  # (0.5 * 100 + 0.75 * 100 + 0.75 * 200) / 400
    0.6875
    """
    if np.size(spent) == 0 == np.size(scores):
        return Undefined("nothing was scored")
    taken, values = vector(spent, "spent"), vector(scores, "scores")
    same_length(taken, "spent", values, "scores")
    if not (np.isfinite(taken).all() and np.isfinite(values).all()):
        return Undefined("a score or an amount spent is not a finite number")
    steps = np.diff(taken, prepend=0.0)
    if (steps < 0).any():
        raise UserError("the amounts spent must not decrease")
    rest = 0.0 if budget is None else max(budget - float(taken[-1]), 0.0)
    whole = float(taken[-1]) + rest
    if whole <= 0:
        return Undefined("nothing was spent")
    return float((values * steps).sum() + values[-1] * rest) / whole
