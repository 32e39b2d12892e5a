"""Targets as numbers: classes, words under a vocabulary of their own, or several labels at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from holdfast.errors import UserError
from holdfast.types import Array, Example

UNLABELLED = -1


def numbered(examples: Sequence[Example]) -> tuple[Callable[[Sequence[Example]], Array], tuple[str, ...]]:
    """How the targets of a dataset become numbers, and the names behind these where targets are words.

    A class number stays; a word becomes its place among the words of these examples, sorted; several labels become a
    row of zeros and ones. A missing target is -1, and so is a word that these examples do not have: number the training
    split, and use what that gives for all.

    >>> turn, names = numbered([Example("a", "yes"), Example("b", "no"), Example("c", None)])
    >>> names, turn([Example("d", "yes"), Example("e", None), Example("f", "perhaps")])
    (('no', 'yes'), array([ 1, -1, -1]))
    """
    kinds = {type(example.target) for example in examples if example.target is not None}
    if len(kinds) > 1:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise UserError(f"the targets are of several kinds ({found}): a task has one")
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
