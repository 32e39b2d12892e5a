"""Boxes in dataset files: finite numbers, with a size."""

from __future__ import annotations

import math
from typing import Any


def numbers(value: Any, count: int) -> tuple[float, ...]:
    """A list of `count` finite numbers as floats; otherwise a ValueError with a message for `Reading.bad`.

    >>> numbers([1, 2.5], 2)
    (1.0, 2.5)
    >>> numbers([1, None], 2)
    Traceback (most recent call last):
    ValueError: [1, None] is not a list of 2 numbers
    """
    try:
        if isinstance(value, list) and len(value) == count and not any(isinstance(v, bool | str) for v in value):
            found = tuple(float(v) for v in value)
            if all(map(math.isfinite, found)):
                return found
    except (TypeError, OverflowError):
        pass
    raise ValueError(f"{value!r:.60} is not a list of {count} numbers")


def sized_box(value: Any) -> tuple[float, ...]:
    """A box (left, top, width, height) that has a size.

    >>> sized_box([10, 20, 0, 5])
    Traceback (most recent call last):
    ValueError: its box [10, 20, 0, 5] has no size
    """
    box = numbers(value, 4)
    if box[2] <= 0 or box[3] <= 0:
        raise ValueError(f"its box {value!r} has no size")
    return box


def corner_box(value: Any, count: int = 4, *, inclusive: bool = False) -> tuple[float, ...]:
    """A box (left, top, right, bottom) that has a size, with any further values in a list of `count` numbers.

    If right and bottom are `inclusive`, they are the last pixels of the box, and may equal the first ones.

    >>> corner_box([10, 20, 30, 40, 0.9], 5)
    (10.0, 20.0, 30.0, 40.0, 0.9)
    >>> corner_box([10, 20, 10, 40], inclusive=True)
    (10.0, 20.0, 10.0, 40.0)
    """
    box = numbers(value, count)
    width, height = box[2] - box[0], box[3] - box[1]
    if min(width, height) < 0 or (not inclusive and min(width, height) == 0):
        raise ValueError(f"its box {value!r} has no size")
    return box
