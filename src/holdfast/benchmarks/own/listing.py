"""Examples of a user's own data as they are listed, before any picture is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import Problem
from holdfast.errors import UserError
from holdfast.types import Ids

Picture: TypeAlias = Path | NDArray[np.uint8]

SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "testing"),
}
"""The words for each split in names of folders and files, and in columns of tables."""


def split_of(word: str) -> str | None:
    """The split that a word means; None if it means none.

    >>> split_of("Val"), split_of("cats")
    ('validation', None)
    """
    return next((split for split, words in SPLITS.items() if word.strip().lower() in words), None)


@dataclass(frozen=True)
class Listed:
    """Examples as columns. The split of an example depends on its id and its group, never on its place."""

    ids: Sequence[str]
    targets: Sequence[str]
    """The name of each example's class."""
    images: Sequence[Picture] | None = None
    texts: Sequence[str] | None = None
    values: Sequence[str] | None = None
    """The value that decides the stage of each example; None: its class does."""
    splits: Sequence[str] | None = None
    """train, validation or test; None: the splits are cut."""
    groups: Sequence[str] | None = None
    """The group of each example, which is never in two splits; None: each example is a group of its own."""
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Ids) -> Listed:
        """Some of the examples."""
        columns = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "problems"}
        taken: dict[str, Any] = {name: _taken(column, rows) for name, column in columns.items() if column is not None}
        return replace(self, **taken)


def _taken(column: Any, rows: Ids) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows.tolist()]


def refuse_beyond(skip: int, problems: Sequence[Problem]) -> tuple[str, ...]:
    """The problems as text; raises a UserError if there are more than may be skipped.

    >>> refuse_beyond(0, [Problem("qa.csv", "row 3", "its answer is empty", "fill it in")])
    Traceback (most recent call last):
    holdfast.errors.UserError: qa.csv, row 3: its answer is empty: fill it in, or skip it with --skip-bad 1
    """
    if len(problems) > skip:
        first = problems[0]
        if len(problems) == 1:
            raise UserError(f"{first}, or skip it with --skip-bad 1")
        raise UserError(f"{first}; {len(problems) - 1} more like it: skip them all with --skip-bad {len(problems)}")
    return tuple(map(str, problems))
