"""The common part of writers: the names of scales, the amounts at each, and items that occur in only one split."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import UserError, nearest

T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    """The amount of data at a scale: records and pictures over all splits, and the pixels of one picture.

    `values` counts the numbers that are stored as base64 beside the records.
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
    holdfast.errors.UserError: unknown scale 'papers': did you mean paper?
    """
    if scale not in counts:
        raise UserError(f"unknown scale {scale!r}: {nearest(scale, counts)}")
    return counts[scale]


@dataclass
class Splits:
    """Draws items for one split after another, so that none occurs in two of them.

    An item is identified by its `words`: differences in case, spaces and punctuation do not make a new item. Within a
    split an item may recur, as in the official datasets.

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
        raise AssertionError(f"the language yields too few items for {split}")


def words(text: str) -> str:
    """Only the words of a text.

    >>> words(' "Dull , but I\\'d see it again .')
    'dull but i d see it again'
    """
    return " ".join(re.findall(r"[^\W_]+", text.lower()))
