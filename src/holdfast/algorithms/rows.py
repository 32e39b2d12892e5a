"""The rows of a batch: which examples they are, what other ranks hold for them, and which group each belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import UserError
from holdfast.types import Batch, Ids, Part

if TYPE_CHECKING:
    from holdfast.data.table import Data
    from holdfast.engine.learner import Learner
    from holdfast.memory import Group


def places_by_part(data: Data, ids: Ids) -> list[Ids]:
    """For each part of the batch of these ids, the positions of its examples among them, on all ranks."""
    which = np.searchsorted(data.offsets[1:-1], ids, side="right")
    return [np.flatnonzero(which == table) for table in np.unique(which)]


def own_places(learner: Learner, ids: Ids) -> list[Ids]:
    """For each part, the positions of this rank's rows among the ids; a padding row has that of the part's first."""
    rank, size = learner.ranks.rank, learner.ranks.size
    parts = places_by_part(learner.data, ids)
    return [own if len(own := places[rank::size]) else places[:1] for places in parts]


def on_all_ranks(learner: Learner, batch: Batch, rows: tuple[Tensor, ...]) -> list[tuple[Ids, Tensor]]:
    """For each part, the ids of its examples on all ranks and a row for each, given this rank's rows."""
    parts = places_by_part(learner.data, batch.ids)
    return [
        (batch.ids[places], learner.ranks.gather_rows(own.detach(), len(places)))
        for places, own in zip(parts, rows, strict=True)
    ]


def some_rows(part: Part, some: slice) -> Part:
    """A selection of rows of a part."""
    weights = None if part.weights is None else part.weights[some]
    return Part(part.task, {name: column[some] for name, column in part.inputs.items()}, part.targets[some], weights)


def weighted(rows: Tensor, part: Part) -> Tensor:
    """One number for each row of a part, with padding rows set to 0."""
    return rows if part.weights is None else rows * part.weights.to(rows.dtype)


def grouping(learner: Learner, by: Literal["class", "task"], name: str) -> Group:
    """The group of each example: its class within its task, or its task.

    The groups of all examples are gathered once, so that looking up those of a batch never waits for a device.
    """
    tables, numbers, first = learner.data.tables, [], 0
    tasks = {task: index for index, task in enumerate(learner.tasks)}
    starts: dict[str, int] = {}
    if by == "class":
        refuse_without_classes(learner, name)
        for task in learner.tasks.values():
            starts[task.name], first = first, first + task.outputs
    for table in tables:
        if by == "class":
            numbers.append(table.targets.cpu().numpy().astype(np.int64) + starts[table.task])
        else:
            numbers.append(np.full(len(table), tasks[table.task]))
    groups = np.concatenate(numbers)
    return lambda ids: groups[ids]


def phrasing(learner: Learner, name: str) -> tuple[Group, Ids]:
    """The phrase of each example as a number, and the words of each phrase, padded with -1.

    Two phrases with the same words, in any order, are the same.
    """
    if any(learner.tasks[table.task].reads.kind != "phrase" for table in learner.data.tables):
        raise UserError(f"{name}.by is 'word', but this data has no phrases: set it to class or task")
    targets = [table.targets.cpu().numpy() for table in learner.data.tables]
    most = max(each.shape[1] for each in targets)
    rows = [np.pad(each, ((0, 0), (0, most - each.shape[1])), constant_values=-1) for each in targets]
    said = np.sort(np.maximum(np.concatenate(rows), -1).astype(np.int64), axis=1)
    words, groups = np.unique(said, axis=0, return_inverse=True)
    return lambda ids: groups[ids], words


def refuse_without_classes(learner: Learner, name: str) -> None:
    """Raise a UserError for tasks whose examples do not have exactly one class."""
    for table in learner.data.tables:
        whole = table.targets.ndim == 1 and table.targets.dtype in (torch.int64, torch.int32, torch.uint8)
        if learner.tasks[table.task].reads.kind != "classify" or not whole:
            raise UserError(
                f"{name} needs one class for each example, but task {table.task!r} has none: choose another algorithm, "
                "or a memory that does not balance classes"
            )
