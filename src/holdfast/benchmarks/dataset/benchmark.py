"""The benchmark `dataset`: the examples of a reader, built in or your own, learned class by class.

It takes datasets whose examples have one class each: pictures (one for each example), texts, or both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from holdfast import registry
from holdfast.benchmarks.own.benchmark import OwnData
from holdfast.benchmarks.own.listing import Listed, Picture, split_of
from holdfast.benchmarks.own.memory import Gathered
from holdfast.benchmarks.synthetic import world
from holdfast.datasets.base import DataError, Dataset, Reading
from holdfast.errors import UserError, nearest
from holdfast.types import Example


@dataclass(frozen=True)
class ReadData(OwnData):
    """The classes of any dataset that has a reader, learned in stages."""

    reader: str = ""
    """The dataset: a built-in name, or your own as `file.py:NAME`; `holdfast list datasets` names all."""
    data: str = ""
    """The folder of its files; without it, a built-in dataset uses small synthetic data."""
    by: str = "class"
    """What each stage adds: new classes, or the examples with another value of this entry of `extra`."""

    def reads(self) -> tuple[str, ...]:
        """The dataset."""
        return (self.reader,)

    @property
    def title(self) -> str:
        """The dataset's name."""
        return self._entry().name

    @cached_property  # finding the first example may mean to read a whole file
    def sees(self) -> Literal["image", "text", "both"]:
        """The kinds of input of its first example."""
        _, first = next(self._examples(), (None, None))
        if first is None:
            raise UserError(f"{self.data or self.title} has no example of {self.title} with a class: choose its folder")
        image, text = _parts(first, self.title)
        return "both" if image is not None and text else "text" if text else "image"

    def listing(self) -> Listed:
        """The examples of all splits that have a class."""
        found, reading, title = Gathered(), Reading(self.skip_bad), self.title
        for split, example in self._examples(reading):
            where = f"{title}, {example.id}"
            image, text = _parts(example, where)
            seen = image if not text else text if image is None else (image, text)
            if isinstance(example.target, tuple):
                raise UserError(f"{where} has several classes, and the benchmark `dataset` learns one for each example")
            found.add(seen, example.target, _value(example, self.by, where), split, where)
        return replace(found.held().listing, problems=tuple(map(str, reading.problems)))

    def _examples(self, reading: Reading | None = None) -> Iterator[tuple[str, Example]]:
        """The examples with a target, each with the name that its split has here."""
        dataset: Dataset = self._entry().load()
        known = {split: name for split in dataset.splits if (name := split_of(split)) is not None}
        if not known:
            raise UserError(f"{self.title} has the splits {', '.join(dataset.splits)}: none is called train or test")
        if not self.data and self.reader not in registry.WRITERS:
            raise UserError(f"where is {self.reader}? Give the folder of its files: --data FOLDER")
        folder = Path(self.data) if self.data else world(self.reader, "tiny")
        for split, name in known.items():
            try:
                examples = dataset.examples(folder, split, reading)
                yield from ((name, example) for example in examples if example.target is not None)
            except DataError as error:
                if not error.missing:
                    raise

    def _entry(self) -> registry.Entry:
        if not self.reader:
            raise UserError("which dataset? Name its reader: --set benchmark.reader=cifar100, or file.py:NAME")
        return registry.find(self.reader, "dataset")


def _parts(example: Example, where: str) -> tuple[Picture | None, str]:
    if example.choices or len(example.images) > 1:
        raise UserError(f"{where} has {'choices' if example.choices else 'several pictures'}: write a benchmark for it")
    return (example.images[0] if example.images else None), example.text


def _value(example: Example, by: str, where: str) -> Any:
    """The value that decides an example's stage; None: its class does."""
    if by == "class":
        return None
    if by not in example.extra:
        raise UserError(f"{where} has no {by!r}: {nearest(by, ['class', *example.extra])}")
    return example.extra[by]
