"""The splits of a dataset as tables, kept in the cache."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from holdfast.benchmarks.cache import remove, write_json
from holdfast.benchmarks.source import Source, place_of
from holdfast.checksums import is_intact, seal
from holdfast.data import decoding, prepared, text
from holdfast.data.language import PromptPieces
from holdfast.data.prepared import Values, prepare
from holdfast.data.table import Column, Table
from holdfast.data.text import Tokenizer
from holdfast.datasets.base import Reading
from holdfast.errors import UserError
from holdfast.progress import progress_bar
from holdfast.types import Example


@dataclass(frozen=True)
class PreparedSplit:
    """One split, prepared: its table, the ids of its rows, further columns that no model sees, and bad records."""

    table: Table
    ids: NDArray[np.str_]
    notes: Mapping[str, NDArray[np.int64]]
    problems: tuple[str, ...]


def prepare_split(
    source: Source,
    task: str,
    split: str,
    *,
    target: Values,
    notes: Mapping[str, Values],
    module: str,
    keep: Callable[[Example], bool] = lambda example: True,
    kept: str = "all",
    pictures: bool = True,
    **settings: Any,
) -> PreparedSplit:
    """A split as a table (see `data.prepared.prepare` for the settings), from the cache if possible.

    `notes` become arrays beside the table; `kept` names the examples that `keep` selects. The cache identifies
    functions by the VERSION of the `module` that defines them, so that it can open a table without reading the dataset.
    """
    words = {
        name: value.fingerprint if isinstance(value, Tokenizer | PromptPieces) else value
        for name, value in settings.items()
    }
    folder = place_of(
        "tables",
        f"{task}, {split}",
        [source],
        kept,
        pictures,
        sorted(notes),
        sorted(words.items()),
        modules=[prepared.__name__, decoding.__name__, text.__name__, module],
    )
    dropped = folder.with_name(f"{folder.name}.dropped.json")

    if not is_intact(dropped):
        remove(folder)

    def rows() -> Iterator[Example]:
        reading = Reading(skip=source.skip_bad)
        for example in source.examples(split, reading):
            if keep(example):
                yield example if pictures else replace(example, images=())
        # Written before the table, so that any process that finds the table also finds what is missing from it.
        write_json(dropped, [str(problem) for problem in reading.problems])
        seal(dropped)

    with progress_bar(f"preparing {source.dataset.name}, {split}") as progress:
        found = prepare(
            task,
            rows(),
            folder,
            target=target,
            columns=notes,
            source=folder.name,
            skip=source.skip_bad,
            workers=os.cpu_count() or 1,
            progress=progress,
            **settings,
        )
    problems = (*json.loads(dropped.read_text(encoding="utf-8")), *found.problems)
    if len(problems) > source.skip_bad:
        others = f" ({source.skip_bad} others may be left out)" if source.skip_bad else ""
        raise UserError(problems[source.skip_bad] + others)
    inputs = {name: column for name, column in found.table.inputs.items() if name not in notes}
    values = {name: _array(found.table.inputs[name]) for name in notes}
    return PreparedSplit(replace(found.table, inputs=inputs), found.ids, values, problems)


def _array(column: Column) -> NDArray[np.int64]:
    assert isinstance(column, Tensor)
    return np.asarray(column.numpy(), np.int64)
