"""Targets as numbers: classes, words of a separate vocabulary, or several labels at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from holdfast.errors import UserError
from holdfast.types import Array, Example

UNLABELLED = -1


def numbered(examples: Sequence[Example]) -> tuple[Callable[[Sequence[Example]], Array], tuple[str, ...]]:
    """A function that turns the targets of a dataset into numbers, and the names of these numbers if targets are words.

    A class number is unchanged; a word becomes its index among the sorted words of these examples; several labels
    become a row of zeros and ones. A missing target is -1, and so is a word that does not occur in these examples:
    number the training split, and use the result for all splits.

    >>> turn, names = numbered([Example("a", "yes"), Example("b", "no"), Example("c", None)])
    >>> names, turn([Example("d", "yes"), Example("e", None), Example("f", "perhaps")])
    (('no', 'yes'), array([ 1, -1, -1]))
    """
    kinds = {type(example.target) for example in examples if example.target is not None}
    if len(kinds) > 1:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise UserError(f"the targets are of several kinds ({found}): a task needs a single kind")
    if kinds == {tuple}:
        width = 1 + max((label for e in examples if isinstance(e.target, tuple) for label in e.target), default=0)
        return lambda rows: _indicators(rows, width), ()
    names = tuple(sorted({e.target for e in examples if isinstance(e.target, str)}))
    place = {name: number for number, name in enumerate(names)}

    def number(target: object) -> int:
        return target if isinstance(target, int) else place.get(str(target), UNLABELLED)

    def numbers(rows: Sequence[Example]) -> Array:
        return np.array([number(row.target) for row in rows], np.int64)

    return numbers, names


def _indicators(rows: Sequence[Example], width: int) -> Array:
    table = np.zeros((len(rows), width), np.uint8)
    for row, example in enumerate(rows):
        if isinstance(example.target, tuple):
            table[row, list(example.target)] = 1
    return table
