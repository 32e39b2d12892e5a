"""Means over runs with their confidence intervals, and a test of whether one model beats another."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import UserError
from holdfast.metrics.arrays import Floats, missing, same_length, vector
from holdfast.metrics.undefined import Undefined

# How many indices the bootstrap draws at a time: 32 MB, whatever the sample size up to that number.
_CHUNK = 4_000_000


@dataclass(frozen=True)
class Summary:
    """Mean, sample standard deviation and half-width of the 95 % interval of the mean, over `count` values."""

    mean: float
    deviation: float
    half_width: float
    count: int


@dataclass(frozen=True)
class PairedBootstrap:
    """Mean difference a - b, its 95 % interval from `low` to `high`, and the two-sided `p_value` of no difference."""

    difference: float
    low: float
    high: float
    p_value: float


def mean(values: ArrayLike) -> float:
    """The arithmetic mean; undefined if a value is NaN or infinite.

    >>> mean([1, 2, 6])
    3.0
    """
    array = vector(values, "values")
    gap = missing(array, "values")
    return float(array.mean()) if gap is None else gap


def standard_deviation(values: ArrayLike) -> float:
    """The sample standard deviation s = sqrt(sum_i (x_i - mean)^2 / (n - 1)); undefined for one value.

    It divides by n - 1 (ddof = 1), because the runs are a small sample of the runs that could be made.

    >>> standard_deviation([1, 2, 3])
    1.0
    """
    array = vector(values, "values")
    gap = missing(array, "values")
    if gap is not None:
        return gap
    if len(array) == 1:
        return Undefined("one value has no deviation")
    return float(array.std(ddof=1))


def t_interval(values: ArrayLike, level: float = 0.95) -> float:
    """Half-width of the confidence interval of the mean by Student's t: t_{n-1, (1+level)/2} s / sqrt(n) (Student,
    1908).

    It is right for normally distributed values at any count, whereas 1.96 in place of t is too narrow for a few (with 3
    runs, t is 4.30). Undefined for one value.

    >>> t_interval([1, 2, 3])  # 4.3027 * 1 / sqrt(3)
    2.484...
    """
    if not 0 < level < 1:
        raise UserError(f"level must lie between 0 and 1, not {level}")
    deviation = standard_deviation(values)
    if isinstance(deviation, Undefined):
        return Undefined(deviation.reason.replace("deviation", "interval"))
    from scipy.special import stdtrit  # imported on use: most callers of the metrics never need it

    count = len(vector(values, "values"))
    return float(stdtrit(count - 1, (1 + level) / 2)) * deviation / math.sqrt(count)


def summary(values: ArrayLike) -> Summary:
    """Mean, sample standard deviation, half-width of the 95 % t interval, and count, of the scores of several runs.

    >>> summary([1, 2, 3])
    Summary(mean=2.0, deviation=1.0, half_width=2.484..., count=3)
    """
    return Summary(mean(values), standard_deviation(values), t_interval(values), len(vector(values, "values")))


def paired_bootstrap(a: ArrayLike, b: ArrayLike, repeats: int = 10_000, seed: int = 0) -> PairedBootstrap:
    """Whether a beats b on the same examples, by resampling the examples with replacement (Efron and Tibshirani, 1993).

    `a[i]` and `b[i]` are the scores of two models on example i. The interval runs between the 2.5 % and 97.5 %
    quantiles of the resampled mean differences. The p-value is that of the differences shifted to mean zero,
    p = (1 + #{|d* - d| >= |d|}) / (1 + repeats), which is never 0. The same seed gives the same result. A single pair
    says nothing about chance, so its interval and p-value are undefined.

    >>> paired_bootstrap([1, 1, 1, 1], [0, 0, 0, 0], repeats=99)
    PairedBootstrap(difference=1.0, low=1.0, high=1.0, p_value=0.01)
    """
    first, second = vector(a, "a"), vector(b, "b")
    same_length(first, "a", second, "b")
    if repeats < 1:
        raise UserError(f"repeats must be at least 1, not {repeats}")
    for values, name in ((first, "a"), (second, "b")):
        gap = missing(values, name)
        if gap is not None:
            return PairedBootstrap(gap, gap, gap, gap)
    differences = first - second
    difference = float(differences.mean())
    if len(differences) == 1:
        gap = Undefined("one pair has no interval")
        return PairedBootstrap(difference, gap, gap, gap)
    resampled = np.concatenate(list(_resampled_means(differences, repeats, np.random.default_rng(seed))))
    low, high = np.quantile(resampled, (0.025, 0.975))
    # Sums in a different order round differently; values that are equal up to rounding count as equal.
    tolerance = 1e-12 * float(np.abs(differences).max())
    extreme = int((np.abs(resampled - difference) >= abs(difference) - tolerance).sum())
    return PairedBootstrap(difference, float(low), float(high), (1 + extreme) / (1 + repeats))


def _resampled_means(values: Floats, repeats: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Means of resamples, a bounded number at a time."""
    count = len(values)
    distinct, occurrences = np.unique(values, return_counts=True)
    # Scores of answers take few distinct values. How often each comes up is then drawn directly: the same distribution,
    # and hundreds of times faster than drawing every example of a large test set.
    few = len(distinct) * 16 <= count
    rows = max(1, _CHUNK // (len(distinct) if few else count))
    for start in range(0, repeats, rows):
        size = min(rows, repeats - start)
        if few:
            yield generator.multinomial(count, occurrences / count, size=size) @ distinct / count
        else:
            yield values[generator.integers(count, size=(size, count))].mean(axis=1)
