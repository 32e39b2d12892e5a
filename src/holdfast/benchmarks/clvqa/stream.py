"""The order of tasks, the training questions of each, and which pictures are for validation and for test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.benchmarks.clvqa.tasks import KINDS
from holdfast.data.sampling import cut, low_shot
from holdfast.errors import UserError, nearest
from holdfast.types import Array, Ids

SETTINGS = {"two": ("wh", "yn"), "types": tuple(KINDS), "text": ("wh", "yn")}


def task_order(order: str, setting: str) -> list[str]:
    """The tasks in learning order; a single task is an independent model.

    >>> task_order("", "two"), task_order("yn>wh", "two"), task_order("wh", "two")
    (['wh', 'yn'], ['yn', 'wh'], ['wh'])
    """
    known = SETTINGS[setting]
    names = [word.strip() for word in order.split(">")] if order else list(known)
    for name in names:
        if name not in known:
            raise UserError(f"order is {order!r}, with the unknown task {name!r}: {nearest(name, known)}")
    if len(set(names)) < len(names):
        raise UserError(f"order is {order!r}: each task may occur only once, as in {'>'.join(known)}")
    return names


def balanced(rows: Mapping[str, Ids], names: NDArray[np.str_], seed: int) -> dict[str, Ids]:
    """The same number of questions for each task: as many as the smallest has, drawn by id.

    >>> rows = {"wh": np.array([0, 1, 2]), "yn": np.array([3])}
    >>> {task: len(found) for task, found in balanced(rows, np.array(["a", "b", "c", "d"]), seed=0).items()}
    {'wh': 1, 'yn': 1}
    """
    least = min(map(len, rows.values()))
    return {
        task: found
        if len(found) == least
        else found[low_shot([str(names[row]) for row in found], count=least, seed=seed)]
        for task, found in rows.items()
    }


def halves(images: Array) -> tuple[Ids, Ids]:
    """The rows of a split in two halves, by picture: all questions about one picture are in the same half.

    >>> images = np.array([7, 7, 8, 9, 9, 4])
    >>> first, second = halves(images)
    >>> set(images[first].tolist()).isdisjoint(images[second].tolist()), len(first) + len(second)
    (True, 6)
    """
    pictures = np.unique(images)
    parts: Sequence[Ids] = cut([str(number) for number in pictures], share=0.5)
    first, second = (np.flatnonzero(np.isin(images, pictures[part])) for part in parts)
    return first, second
