"""What writers share about scales: their names, how much is written at each, and items that no other split has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import UserError, nearest

T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    """How much a writer writes at a scale: records and pictures over all splits, and the pixels of one picture.

    `values` counts the numbers that stand in base64 beside the records.
    """

    records: int
    pictures: int = 0
    pixels: int = 0
    values: int = 0


def at_scale(counts: Mapping[str, T], scale: str) -> T:
    """A writer's counts at a scale.

    >>> at_scale({"tiny": 3, "paper": 900}, "paper")
    900
    >>> at_scale({"tiny": 3, "paper": 900}, "papers")
    Traceback (most recent call last):
    holdfast.errors.UserError: there is no scale 'papers': did you mean paper?
    """
    if scale not in counts:
        raise UserError(f"there is no scale {scale!r}: {nearest(scale, counts)}")
    return counts[scale]


@dataclass
class Splits:
    """Draws items for one split after the other, so that none stands in two of them.

    An item is known by its `words`: small and capital letters, blanks and punctuation make no other item. Within a
    split an item may come again, as it does in the official sets.

    >>> splits, random = Splits(), iter(["Up.", "Down.", "up", "Left."])
    >>> splits.draw("train", lambda: next(random)), splits.draw("train", lambda: next(random))
    ('Up.', 'Down.')
    >>> splits.draw("dev", lambda: next(random))
    'Left.'
    """

    _split: dict[str, str] = field(default_factory=dict)

    def draw(self, split: str, make: Callable[[], T], known_by: Callable[[T], str] = str) -> T:
        """The next item of `make` that no other split has."""
        for _ in range(1_000):
            item = make()
            if self._split.setdefault(words(known_by(item)), split) == split:
                return item
        raise AssertionError(f"the language gives too few items for {split}")


def words(text: str) -> str:
    """The words of a text alone.

    >>> words(' "Dull , but I\\'d see it again .')
    'dull but i d see it again'
    """
    return " ".join(re.findall(r"[^\W_]+", text.lower()))
