"""Printed numbers as intervals: the values a number may have had before the paper rounded it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

# Far below any printed digit, and far above the error of a few floating-point operations.
HAIR = 1e-9


@dataclass(frozen=True)
class Printed:
    """A number, and the closed interval in which the unrounded number lies.

    >>> Printed(50.0, 50.0, 50.0).meets(Printed(50.2, 49.9, 50.5))
    True
    """

    value: float
    low: float
    high: float

    def meets(self, other: Printed) -> bool:
        """Whether both could be roundings of the same number.

        >>> printed(1.2, 1).meets(printed(1.24, 2)), printed(1.2, 1).meets(printed(1.26, 2))
        (True, False)
        """
        return self.low <= other.high + HAIR and other.low <= self.high + HAIR


def exactly(value: float) -> Printed:
    """A number that was never rounded, such as a count.

    >>> exactly(3).low == exactly(3).high == 3
    True
    """
    return Printed(value, value, value)


def printed(value: float, decimals: int | None) -> Printed:
    """A number printed with `decimals` decimals; None if nothing was rounded.

    Both ends belong to the interval, so it does not matter in which direction the paper rounds a half.

    >>> printed(67.7, 1)
    Printed(value=67.7, low=67.65, high=67.75)
    """
    if decimals is None:
        return exactly(value)
    half = 0.5 * 10.0**-decimals
    return Printed(value, value - half, value + half)


def between(value: float, other: float) -> Printed:
    """A number with two possible readings, and everything between them.

    >>> between(33.33, 33.34).high
    33.34
    """
    return Printed(value, min(value, other), max(value, other))


def recompute(formula: Callable[..., float], *inputs: Printed) -> Printed:
    """The value of a formula on the printed inputs, and the interval it covers over all that they may stand for.

    The formula must be monotone, in either direction, in each input while the others are fixed. Its extremes over the
    box of inputs then lie at the corners of the box, and the interval is exact.

    >>> recompute(lambda a, b: a - b, printed(5, 0), printed(3, 0))
    Printed(value=2, low=1.0, high=3.0)
    """
    corners = [formula(*corner) for corner in itertools.product(*((each.low, each.high) for each in inputs))]
    return Printed(formula(*(each.value for each in inputs)), min(corners), max(corners))
