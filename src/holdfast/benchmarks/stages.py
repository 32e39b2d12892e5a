"""A set-up from stages that a benchmark has made itself: from arrays to tables, evaluation sets and a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from holdfast.benchmarks.base import Setup
from holdfast.data.table import Column, Data, Table, table
from holdfast.errors import UserError
from holdfast.types import EvaluationSet, Example, Ids, Inputs, Protocol, Stage, Stream, Task, Training

Rows: TypeAlias = tuple[Any, Any] | Sequence[Example]
"""Inputs and targets, a row for each example; or examples that each have one array as their picture. Inputs are an
array of pictures, uint8, (rows, height, width) or (rows, height, width, channels), or columns by their names, as
`Inputs` describes them.
"""
SPLITS: tuple[Literal["validation", "test"], ...] = ("validation", "test")


def in_stages(
    stages: Mapping[str, Mapping[str, Rows]],
    task: Task | Mapping[str, Task],
    training: Training | None = None,
    *,
    inputs: Inputs | None = None,
    boundaries: bool = True,
    initial: bool = True,
) -> Setup:
    """The set-up of a benchmark whose stages each have their own data, in this order.

    A stage has the splits `train` and `test`, and `validation` if settings are to be chosen. All its examples are of
    one task: of the same one in every stage, or of `task[stage]`. `inputs` describes the columns to a model; it may be
    left out if there are only pictures. The score of guessing is `task.chance`.

    >>> from holdfast.tasks import Classify
    >>> dark, light = np.zeros((4, 8, 8), np.uint8), np.full((4, 8, 8), 255, np.uint8)
    >>> rows = (np.concatenate([dark, light]), np.arange(8) // 4)
    >>> task = Classify("shade", head="shade", outputs=2, chance=0.5)
    >>> setup = in_stages({"one": {"train": rows, "test": rows}}, task, Training(epochs=3))
    >>> setup.inputs.image, len(setup.data), [each.name for each in setup.protocol.evaluations]
    ((1, 8, 8), 16, ['one'])
    """
    if not stages:
        raise UserError("there are no stages: give each a name, and rows to train and to test")
    tables, laid_out, sets = list[Table](), list[Stage](), list[EvaluationSet]()
    tasks = dict.fromkeys(stages, task) if isinstance(task, Task) else dict(task)
    if tasks.keys() != stages.keys():
        raise UserError(f"the stages are {', '.join(stages)}, and there are tasks for {', '.join(tasks) or 'none'}")
    for name, splits in stages.items():
        if unknown := sorted(set(splits) - {"train", *SPLITS}) or sorted({"train", "test"} - set(splits)):
            raise UserError(f"stage {name!r}: a stage has train, test and perhaps validation; look at {unknown[0]!r}")
        ids = dict[str, Ids]()
        for split, rows in splits.items():
            start = sum(map(len, tables))
            tables.append(_table(tasks[name].name, rows, f"stage {name!r}, {split}"))
            ids[split] = np.arange(start, start + len(tables[-1]), dtype=np.int64)
        own = {split: EvaluationSet(name, tasks[name].name, split, ids[split]) for split in SPLITS if split in ids}
        validation = tuple(own[split] for split in ("validation",) if split in own)
        laid_out.append(Stage(name, ids["train"], training or Training(), validation))
        sets += own.values()
    return Setup(
        Data(tables),
        {each.name: each for each in tasks.values()},
        Stream(tuple(laid_out), boundaries),
        Protocol(tuple(sets), initial=initial),
        inputs or _inputs(tables),
        chance={name: each.chance for name, each in tasks.items()},
    )


def _table(task: str, rows: Rows, where: str) -> Table:
    if not isinstance(rows, tuple):
        return table(task, rows)
    seen, right = rows
    columns = dict(seen) if isinstance(seen, Mapping) else {"image": _pixels(seen, where)}
    inputs: dict[str, Column] = {name: _tensor(column) for name, column in columns.items()}
    targets = _tensor(right)
    lengths = {len(column) for column in (*inputs.values(), targets)}
    if len(lengths) != 1 or 0 in lengths:
        raise UserError(f"{where}: every column needs one row for each target, and there are {sorted(lengths)} rows")
    return Table(task, inputs, targets)


def _pixels(images: Any, where: str) -> Tensor:
    array = np.asarray(images)
    if array.dtype != np.uint8 or array.ndim not in (3, 4):
        raise UserError(
            f"{where}: pictures are {array.dtype} of the shape {array.shape}: give uint8, 0 to 255, of the shape "
            "(rows, height, width) or (rows, height, width, channels)"
        )
    whole = array if array.ndim == 4 else array[..., None]
    return torch.from_numpy(np.ascontiguousarray(whole.transpose(0, 3, 1, 2)))


def _tensor(values: Any) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.ascontiguousarray(values))


def _inputs(tables: Sequence[Table]) -> Inputs:
    shapes = set[tuple[int, ...]]()
    for each in tables:
        image = each.inputs.get("image")
        shapes.add(tuple(image.shape[1:]) if isinstance(image, Tensor) and len(each.inputs) == 1 else ())
    if len(shapes) == 1 and len(shape := shapes.pop()) == 3:
        return Inputs(image=(shape[0], shape[1], shape[2]))
    raise UserError("the columns are not just pictures of one size: describe them with inputs=Inputs(...)")
