"""How many pairs a test of a mean difference needs, and which difference a number of pairs can detect.

Both are exact for normally distributed differences: under a true difference d, the t statistic of n pairs with the
standard deviation s follows the noncentral t distribution with n - 1 degrees of freedom and parameter d sqrt(n) / s.
"""

from __future__ import annotations

import math

from holdfast.errors import UserError
from holdfast.metrics.undefined import Undefined

POWER = 0.8
"""The usual probability with which a difference should be found."""
MOST = 10_000
"""No search goes beyond this number of pairs."""
_LARGEST = 100.0
"""Beyond this parameter, the power is 1 up to rounding, and SciPy's function may not converge."""


def power(difference: float, deviation: float, count: int, level: float = 0.05) -> float:
    """The probability that a two-sided paired t-test finds a true difference, with its sign.

    >>> round(power(1.0, 1.0, 10), 3)
    0.803
    >>> power(1.0, 0.0, 3)  # without spread, any difference is found
    1.0
    """
    _check(deviation, count, level)
    if difference == 0:
        return level / 2 if deviation else 0.0
    if deviation == 0:
        return 1.0
    from scipy.special import nctdtr, stdtrit

    bound = float(stdtrit(count - 1, 1 - level / 2))
    parameter = min(abs(difference) * math.sqrt(count) / deviation, _LARGEST)
    return 1 - float(nctdtr(count - 1, parameter, bound))


def pairs_needed(difference: float, deviation: float, level: float = 0.05, wanted: float = POWER) -> float:
    """The minimum number of pairs (at least 2) that find a difference with probability `wanted`; undefined over 10,000.

    >>> pairs_needed(1.0, 1.0)
    10.0
    >>> pairs_needed(0.0, 1.0).reason
    'no number of pairs finds a difference of 0'
    """
    if difference == 0:
        return Undefined("no number of pairs finds a difference of 0")
    low, high = 1, 2  # `low` pairs are too few
    while power(difference, deviation, high, level) < wanted:
        low, high = high, 2 * high
        if low >= MOST:
            return Undefined(f"it needs more than {MOST:,} pairs")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(difference, deviation, middle, level) >= wanted else (middle, high)
    return float(high)


def detectable(deviation: float, count: int, level: float = 0.05, wanted: float = POWER) -> float:
    """The smallest true difference that `count` pairs find with probability `wanted`.

    >>> round(detectable(1.0, 10), 2)
    1.0
    >>> detectable(1.0, 1).reason
    'one pair detects nothing'
    """
    if count < 2:
        return Undefined("one pair detects nothing")
    _check(deviation, count, level)
    if deviation == 0:
        return 0.0
    low, high = 0.0, deviation
    while power(high, deviation, count, level) < wanted:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, deviation, count, level) >= wanted else (middle, high)
    return high


def _check(deviation: float, count: int, level: float) -> None:
    if not deviation >= 0:
        raise UserError(f"deviation must not be negative, but is {deviation}")
    if count < 2:
        raise UserError(f"count must be at least 2, not {count}")
    if not 0 < level < 1:
        raise UserError(f"level must lie between 0 and 1, not {level}")
