"""The measures: those of the field on the matrix of scores, and how boxes that are written as text are scored."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.benchmarks.base import USUAL

MEASURES = USUAL
EPOCHS = {"tiny": 4, "small": 8, "large": 4, "paper": 1}
RATES = {"tiny": 3e-3, "small": 3e-3, "large": 1e-3, "paper": 2e-4}
SIDES = {"tiny": 32, "small": 32, "large": 64, "paper": 336}
_NUMBER = re.compile(r"-?\d*\.?\d+")
_OVERLAP = 0.5


def boxes(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The share of boxes, written as four numbers, that overlap a reference by more than half of their union.

    >>> boxes(["[0.0, 0.0, 0.5, 1.0]", "left"], [["[0, 0, 0.6, 1]"], ["[0, 0, 1, 1]"]])
    0.5
    """
    pairs = zip(predictions, references, strict=True)
    right = [
        any(_union_share(_corners(said), _corners(each)) > _OVERLAP for each in several) for said, several in pairs
    ]
    return sum(right) / len(right)


def _corners(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in _NUMBER.findall(text))


def _union_share(first: Sequence[float], second: Sequence[float]) -> float:
    """The area that two boxes share, as a share of the area that they cover; 0 if one is not a box."""
    if len(first) != 4 or len(second) != 4:
        return 0.0
    sides = (min(first[i + 2], second[i + 2]) - max(first[i], second[i]) for i in (0, 1))
    across, down = (max(side, 0.0) for side in sides)
    areas = [max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0) for box in (first, second)]
    covered = sum(areas) - across * down
    return across * down / covered if covered > 0 else 0.0
