"""The order of classes, and the examples of each: sorted by class, so that a stage is a slice of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from holdfast.benchmarks.cfst.combinations import Combination
from holdfast.benchmarks.cfst.tasks import combination
from holdfast.benchmarks.splits import PreparedSplit
from holdfast.data.sampling import low_shot
from holdfast.data.table import Column, Shared, Table
from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError
from holdfast.types import Example, Ids

VERSION = 1
USUAL = 10
"""The number of classes in a stage, if nothing else is specified and there are enough."""


@dataclass(frozen=True)
class Rows:
    """Examples of the stream, and the position of each one's class in it."""

    ids: Ids
    places: NDArray[np.int64]

    def of(self, stage: int, each: int) -> Ids:
        """The examples of the classes that a stage introduces.

        >>> Rows(np.arange(4), np.array([0, 1, 2, 3])).of(stage=1, each=2)
        array([2, 3])
        """
        found: Ids = self.ids[self.places // each == stage]
        return found


def in_order(dataset: Dataset, rank: Callable[[Example], Any]) -> Dataset:
    """The dataset with the examples of each split sorted by a rank."""

    def read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        yield from sorted(dataset.read(folder, split, reading), key=rank)

    return replace(dataset, read=read)


def by_list(dataset: Dataset, listed: Sequence[Combination]) -> Dataset:
    """An archive in the order of a list of combinations; combinations not on the list come last, alphabetically."""
    places = {tuple(sorted(each)): place for place, each in enumerate(listed)}
    return in_order(dataset, lambda e: (places.get(combination(e), len(places)), combination(e)))


def by_number(dataset: Dataset, order: Sequence[int]) -> Dataset:
    """A dataset in a given order of its class numbers."""
    places = {number: place for place, number in enumerate(order)}
    return in_order(dataset, lambda example: places[int(str(example.target))])


def mark(order: Sequence[object]) -> str:
    """A tag for an order, to distinguish a table in it from others."""
    return hashlib.blake2b(repr(order).encode(), digest_size=8).hexdigest()


def classes_each(classes: int, tasks: int | None) -> int:
    """The number of classes in a stage: by default ten, or half of all if there are few.

    >>> classes_each(100, None), classes_each(30, 5), classes_each(10, None)
    (10, 6, 5)
    """
    count = max(2, classes // USUAL) if tasks is None else tasks
    if classes % count:
        fitting = [each for each in range(1, classes + 1) if classes % each == 0]
        words = f"{', '.join(map(str, fitting[:-1]))} or {classes}" if classes > 1 else "1"
        raise UserError(
            f"{classes} classes cannot be divided evenly among {count} stages: set benchmark.tasks to {words}, or use "
            "data with more classes"
        )
    return classes // count


def places_of(splits: Sequence[PreparedSplit]) -> list[NDArray[np.int64]]:
    """For each split, the position of each example's class in the stream, from splits that are sorted by class."""
    order: list[int] = []
    for split in splits:
        targets = split.table.targets.numpy()
        first = np.unique(targets, return_index=True)[1]
        found = targets[np.sort(first)].tolist()
        order = order or found
        if found != order:
            missing = len(set(order) ^ set(found))
            raise UserError(f"{missing} classes are not in each of train, val and test: provide the whole archive")
    place = {number: at for at, number in enumerate(order)}
    return [np.array([place[number] for number in split.table.targets.tolist()], np.int64) for split in splits]


def tables(table: Table, places: NDArray[np.int64], names: Sequence[str], each: int) -> list[Table]:
    """Split a table whose rows are sorted by class into one per task: slices, so that nothing is copied.

    The tasks are those of the stages; if all stages form one task, its table stays whole.
    """
    if len(set(names)) == 1:
        return [replace(table, task=names[0], targets=torch.from_numpy(places))]
    found = []
    for number, name in enumerate(names):
        start, stop = np.searchsorted(places, [number * each, (number + 1) * each])
        inputs = {column: _slice(values, start, stop) for column, values in table.inputs.items()}
        found.append(Table(name, inputs, torch.from_numpy(places[start:stop] - number * each)))
    return found


def _slice(column: Column, start: int, stop: int) -> Column:
    if isinstance(column, Shared):
        return Shared(column.values, column.index[start:stop])
    assert isinstance(column, torch.Tensor), "images are decoded when a table is prepared"
    return column[start:stop]


def some_of_each(rows: Rows, names: NDArray[np.str_], per_class: int | None, seed: int) -> Rows:
    """All rows, or `per_class` of each class, drawn by the examples' names."""
    if per_class is None:
        return rows
    chosen = low_shot([str(name) for name in names], rows.places.tolist(), count=per_class, seed=seed)
    return Rows(rows.ids[chosen], rows.places[chosen])
