"""Benchmarks of your own data, and the building blocks for your own benchmarks and readers.

`from_folder`, `from_table`, `from_arrays` and `from_dataset` make a benchmark of what you have. Beside the data, each
takes the settings of `holdfast run folder` and `holdfast run table`: `stages`, `order`, `setting`, `stream`, `most`,
`test`, `validation`, `side`, `length`, `skip_bad`. docs/bring-your-data.md explains them.

| for                            | words                                                                              |
|--------------------------------|------------------------------------------------------------------------------------|
| a benchmark of stages you make | `in_stages`, and `Inputs` if there is more than pictures                        |
| any other benchmark            | `Setup`, `Data`, `Table`, `Inputs`, `Protocol`, `EvaluationSet`, `Score`, `Need`   |
| a reader of a dataset's files  | `Dataset`, `Reading`, `Example`                                                    |
| a kind of task                 | `Head`, if it does not classify                                                    |
| answers that are written       | `Exchange`, `language_for` and `write`, which make columns of texts                |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.benchmarks.base import Benchmark, Need, Setup
from holdfast.benchmarks.folder.benchmark import FolderData
from holdfast.benchmarks.own.memory import Gathered, InMemory, gather_arrays, gather_pairs
from holdfast.benchmarks.stages import in_stages
from holdfast.benchmarks.table.benchmark import TableData
from holdfast.benchmarks.writing import Exchange, language_for, write
from holdfast.data.table import Data, Table
from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError, nearest
from holdfast.settings import convert, fields
from holdfast.types import EvaluationSet, Example, Head, Inputs, Protocol, Score

__all__ = [
    "Data",
    "Dataset",
    "EvaluationSet",
    "Example",
    "Exchange",
    "Head",
    "Inputs",
    "Need",
    "Protocol",
    "Reading",
    "Score",
    "Setup",
    "Table",
    "from_arrays",
    "from_dataset",
    "from_folder",
    "from_table",
    "in_stages",
    "language_for",
    "write",
]


def from_folder(data: str | os.PathLike[str], **settings: Any) -> Benchmark:
    """Pictures in a folder for each class; with `by="domain"`, such folders within one for each domain.

    >>> from_folder("photos", stages=5).stages
    5
    """
    return _built(FolderData, {"data": os.fspath(data), **settings}, "from_folder()")


def from_table(
    data: str | os.PathLike[str], *, target: str, image: str = "", text: str = "", by: str = "class", **settings: Any
) -> Benchmark:
    """Rows of a CSV, TSV, JSON, JSON lines or Parquet file, or of a folder with a Hugging Face dataset.

    `target`, `image`, `text` and `by` are names of columns.

    >>> from_table("qa.csv", image="path", text="question", target="answer", by="topic").by
    'topic'
    """
    named = {"data": os.fspath(data), "target": target, "image": image, "text": text, "by": by}
    return _built(TableData, {**named, **settings}, "from_table()")


def from_arrays(
    x: Any, y: Any, *, test: tuple[Any, ...] | float | None = None, by: Sequence[Any] | None = None, **settings: Any
) -> Benchmark:
    """Pictures, texts, or a tuple of both, each with a class in `y`.

    Pictures are arrays or tensors (examples, height, width), with channels first or last, or a list of arrays or Pillow
    images. `by` has a value for each example, such as its domain, that decides its stage. `test` is `(x, y)` or
    `(x, y, by)`, or the share of the examples to cut for tests.

    >>> import numpy as np
    >>> digits = np.random.default_rng(0).integers(0, 256, (40, 8, 8), np.uint8)
    >>> benchmark = from_arrays(digits, [number % 4 for number in range(40)], stages=2)
    >>> benchmark.setting, benchmark.stages
    (None, 2)
    """
    found = Gathered()
    gather_arrays(found, x, y, by, "train", "x")
    if isinstance(test, float):
        settings["test"] = test
    elif test is not None:
        if not isinstance(test, tuple) or len(test) != (2 if by is None else 3):
            raise UserError(f"test must be a tuple {'(x, y)' if by is None else '(x, y, by)'}")
        gather_arrays(found, test[0], test[1], None if by is None else test[2], "test", "test")
    return _built(InMemory, settings, "from_arrays()", held=found.held())


def from_dataset(
    dataset: Any,
    *,
    test: Any = None,
    validation: Any = None,
    image: str = "",
    text: str = "",
    target: str = "label",
    by: str | Callable[[Any], Any] | None = None,
    **settings: Any,
) -> Benchmark:
    """Any sequence of `(input, target)` pairs, or of rows by name: a torch or Hugging Face dataset, a list.

    An input is a picture (array, tensor, Pillow image or `pathlib.Path`), a text, or a tuple of both. Of rows, `image`,
    `text` and `target` are the names of columns. `by` is the name of a column, or a function of an item, whose value
    decides the stage. `test` and `validation` are sequences of their own, or the shares
    to cut from this one.

    >>> reviews = [(f"{word} film number {n}", word) for n in range(20) for word in ("good", "bad", "odd", "long")]
    >>> from_dataset(reviews, stages=2).sees
    'text'
    """
    found, names = Gathered(), {"image": image, "text": text, "target": target}
    for split, items in (("train", dataset), ("validation", validation), ("test", test)):
        if isinstance(items, float):  # the share to cut
            settings[split] = items
        elif items is not None:
            gather_pairs(found, items, names, by, split)
    return _built(InMemory, settings, "from_dataset()", held=found.held())


def _built(kind: type[Benchmark], settings: Mapping[str, Any], where: str, **objects: Any) -> Benchmark:
    """The benchmark, with its settings checked; objects are not settings."""
    known = {name: hint for name, hint in fields(kind).items() if name not in {"seed", *objects}}
    for name in settings:
        if name not in known:
            raise UserError(f"{where} takes no {name!r}: {nearest(name, known)}")
    checked = {name: convert(value, known[name], name) for name, value in settings.items()}
    return kind(**checked, **objects)


def __dir__() -> list[str]:
    return sorted(__all__)
