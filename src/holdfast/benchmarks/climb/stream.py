"""The order of tasks, the examples of each that are learned, and those that are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.benchmarks.climb import paper
from holdfast.benchmarks.climb.paper import KNOWN
from holdfast.benchmarks.climb.tasks import Part, Place, listing
from holdfast.data.sampling import low_shot
from holdfast.errors import UserError, nearest
from holdfast.types import EvaluationSet, Stage, Training

PARTS: tuple[Part, ...] = ("train", "validation", "test")


def task_order(order: str) -> tuple[str, ...]:
    """The tasks in learning order: their names separated by `>`, or the number of one of the paper's three orders.

    >>> task_order("2"), task_order("vcr>nlvr2"), task_order("")[0]
    (('snli-ve', 'vcr', 'vqav2', 'nlvr2'), ('vcr', 'nlvr2'), 'vqav2')
    """
    known = {str(number): each for number, each in enumerate(paper.ORDERS, 1)}
    names = tuple(word.strip().replace("_", "-") for word in known.get(order or "1", order).split(">"))
    for name in names:
        if name not in KNOWN:
            raise UserError(f"order is {order!r}, with the unknown task {name!r}: {nearest(name, [*KNOWN, *known])}")
    if len(set(names)) < len(names):
        raise UserError(f"order is {order!r}: each task may occur only once, as in {paper.ORDERS[0]}")
    return names


def chosen(name: str, part: Part, place: Place, limit: int | None) -> tuple[str, ...]:
    """The ids of a part's examples, or of `limit` of them, independent of the run's seed."""
    ids = listing(name, part, place).ids
    if limit is None or limit >= len(ids):
        return ids
    return tuple(ids[row] for row in low_shot(ids, count=limit, seed=0))


@dataclass(frozen=True)
class TaskExamples:
    """The numbers of a task's examples within a run's data: where each part begins, and how long it is."""

    name: str
    first: int
    sizes: Sequence[int]

    def rows(self, part: Part) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The ids of a part."""
        place = PARTS.index(part)
        begin = self.first + sum(self.sizes[:place])
        return np.arange(begin, begin + self.sizes[place], dtype=np.int64)

    def evaluation(self, part: Part) -> EvaluationSet:
        """A part as an evaluation set."""
        assert part != "train"
        return EvaluationSet(self.name, self.name, part, self.rows(part))

    def stage(self, training: Training) -> Stage:
        """The stage that trains on the task."""
        return Stage(self.name, self.rows("train"), training, (self.evaluation("validation"),))


def layouts(names: Sequence[str], sizes: Sequence[Sequence[int]]) -> list[TaskExamples]:
    """Where the tables of each task begin if all are concatenated.

    >>> [each.rows("validation").tolist() for each in layouts(["a", "b"], [(3, 2, 1), (2, 1, 1)])]
    [[3, 4], [8]]
    """
    found, first = [], 0
    for name, each in zip(names, sizes, strict=True):
        found.append(TaskExamples(name, first, tuple(each)))
        first += sum(each)
    return found
