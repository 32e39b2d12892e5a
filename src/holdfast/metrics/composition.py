"""Compositional few-shot testing (CFST: Liao et al., 2023): harmonic means, related scores, intervals.

The few-shot tests are `sys` (systematicity), `pro` (productivity) and `sub` (substitutivity), on novel combinations of
known concepts; `non` (non-novel), on trained combinations; and `noc`, on concepts never seen.
"""

import math
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import UserError
from holdfast.metrics.arrays import missing, number, vector
from holdfast.metrics.undefined import Undefined


def harmonic_mean(values: ArrayLike) -> float:
    """The harmonic mean n / sum_i (1 / x_i) of non-negative values; 0 if any value is 0, which is the limit.

    >>> harmonic_mean([1, 0.5])  # 2 / (1 + 2)
    0.66...
    >>> harmonic_mean([80, 0])
    0.0
    """
    array = vector(values, "values")
    if (array < 0).any():
        raise UserError("values must be at least 0: the harmonic mean of negative numbers has no meaning")
    gap = missing(array, "values")
    if gap is not None:
        return gap
    smallest = float(array.min())
    # Divide by the smallest value first, so that the sum of reciprocals cannot overflow.
    return 0.0 if smallest == 0 else smallest * len(array) / float((smallest / array).sum())


def related_score(novel: SupportsFloat, non_novel: SupportsFloat) -> float:
    """How novel combinations fare relative to trained ones: S = (A_novel - A_non) / A_non; higher is better.

    From the supplement of Liao et al. (2023), sections on fresh and old concepts and on the training size, where
    S(sys) = (A_sys - A_non) / A_non, and likewise for pro, sub and noc. A fraction, not a percentage; 0 means no gap.
    Undefined if `non_novel` is 0.

    >>> related_score(novel=0.375, non_novel=0.5)
    -0.25
    """
    test, base = number(novel, "novel"), number(non_novel, "non_novel")
    for value in (test, base):
        if isinstance(value, Undefined):
            return value
    if test < 0 or base < 0:
        raise UserError("novel and non_novel must be at least 0: they are accuracies")
    if base == 0:
        return Undefined("the accuracy on the trained combinations is 0, so nothing can be related to it")
    return (test - base) / base


def confidence_interval(values: ArrayLike) -> float:
    """Half-width of the 95 % confidence interval of the mean under the normal distribution: 1.96 s / sqrt(n).

    From Liao et al. (2023). s is the sample standard deviation, which divides by n - 1: the few-shot tasks are a sample
    of all that could be drawn. Over the paper's 300 tasks, dividing by n would narrow the interval by a factor of
    0.998, which no printed digit shows. For a handful of runs use `t_interval`, which is right for any count. Undefined
    for one value.

    >>> confidence_interval([1, 2, 3, 4])  # 1.96 * sqrt(5/3) / 2
    1.265...
    """
    array = vector(values, "values")
    gap = missing(array, "values")
    if gap is not None:
        return gap
    if len(array) == 1:
        return Undefined("one value has no interval")
    return 1.96 * float(np.std(array, ddof=1)) / math.sqrt(len(array))


def composition_scores(
    *,
    con: SupportsFloat,
    sys: SupportsFloat,
    pro: SupportsFloat,
    non: SupportsFloat,
    noc: SupportsFloat,
    sub: SupportsFloat | None = None,
) -> dict[str, float]:
    """One row of a CFST table, in the table's order and under its names, from the mean accuracies of the tests.

    Hn is the harmonic mean of sys, pro and sub (the novel tests), Hr that of non and noc (the reference tests), Ha that
    of all five; `con` is the accuracy on the continual tasks themselves. COBJ and CPIN have no `sub`: leave it out.

    CFST's joint training on CGQA (Liao et al., 2023, supplement, Table 1):

    >>> row = composition_scores(con=83.61, sys=88.14, pro=85.94, sub=69.67, non=91.55, noc=40.04)
    >>> [f"{name} {row[name]:.2f}" for name in ("Acon", "Hn", "Hr", "Ha")]
    ['Acon 83.61', 'Hn 80.35', 'Hr 55.71', 'Ha 68.28']
    """
    novel = {"Asys": number(sys, "sys"), "Apro": number(pro, "pro")}
    if sub is not None:
        novel["Asub"] = number(sub, "sub")
    reference = {"Anon": number(non, "non"), "Anoc": number(noc, "noc")}
    return {
        "Acon": number(con, "con"),
        **novel,
        "Hn": _harmonic(novel),
        **reference,
        "Hr": _harmonic(reference),
        "Ha": _harmonic(novel | reference),
    }


def _harmonic(accuracies: dict[str, float]) -> float:
    for name, value in accuracies.items():
        if isinstance(value, Undefined):
            return Undefined(f"{name} is undefined: {value.reason}")
    return harmonic_mean(list(accuracies.values()))
