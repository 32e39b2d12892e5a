"""A set-up from stages of questions and answers: one decoder for all of them, and no heads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from holdfast.benchmarks.base import Setup
from holdfast.benchmarks.cache import digest
from holdfast.benchmarks.source import Source
from holdfast.benchmarks.splits import prepare_split
from holdfast.benchmarks.writing import Exchange, TextColumns, language_for, write
from holdfast.data.sampling import cut, low_shot
from holdfast.data.table import Column, Data, Table, some_rows
from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError
from holdfast.metrics import SCORERS
from holdfast.tasks import Generate
from holdfast.tasks.generate import Scorer
from holdfast.types import Array, EvaluationSet, Example, Ids, Inputs, Protocol, Stage, Stream, Training, Wants

HEAD = "text"
LEAST = 2
"""The fewest tokens of a prompt: with fewer, nothing is left of its text."""
HELD_OUT = 0.1
"""The share of the training examples that is held out for choosing settings."""
Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class Exchanges:
    """The questions and answers of one stage, by split, and the values of the picture column for each."""

    name: str
    splits: Mapping[Split, Sequence[Exchange]]
    chance: float = 0.0
    """The score of guessing in the test."""
    scorer: str | Scorer = "exact"
    pictures: Mapping[Split, Column] = field(default_factory=dict)
    details: Sequence[str] = ()
    """Further scores of each test, by the names of scorers."""


@dataclass(frozen=True)
class Writing:
    """How answers are written and prompts are cut."""

    longest: int
    """The maximum number of tokens of an answer, including its end."""
    length: int
    """The maximum number of tokens of a prompt."""
    beams: int = 1


def some(examples: Sequence[Example], most: int | None) -> list[Example]:
    """At most N examples, always the same ones, chosen by their ids.

    >>> len(some([Example(f"{n}") for n in range(9)], 4))
    4
    """
    if most is None or most >= len(examples):
        return list(examples)
    return [examples[place] for place in low_shot([each.id for each in examples], count=most, seed=0)]


def parted(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """The examples to learn from, and those that are held out.

    >>> [len(part) for part in parted([Example(f"{n}") for n in range(20)])]
    [18, 2]
    """
    learned, held = cut([each.id for each in examples], share=HELD_OUT)
    return [examples[place] for place in learned], [examples[place] for place in held]


def majority(answers: Sequence[str], tested: Sequence[str]) -> float:
    """The score of always giving the most frequent answer of the training data.

    >>> majority(["yes", "yes", "no"], ["no", "no", "no", "yes"])
    0.25
    """
    most = max(sorted(set(answers)), key=answers.count)
    return tested.count(most) / len(tested)


def laid_out(
    title: str,
    order: Sequence[str],
    stages: Mapping[str, Exchanges],
    wants: Wants,
    training: Training,
    how: Writing,
    *,
    image: tuple[int, int, int] | None = None,
    source: Path | None = None,
    problems: tuple[str, ...] = (),
) -> Setup:
    """The set-up that learns these stages in an order, with one task for each way to score.

    The word pieces of a model without a tokenizer come from all stages, so that they are the same for every order.
    """
    language = language_for(wants, title, _texts(stages.values()), source)
    length = how.length if wants.length is None else min(how.length, wants.length - how.longest)
    if length < LEAST:
        raise UserError(
            f"{title}: the model reads {wants.length} tokens, and an answer may take {how.longest} of them, which "
            "leaves no room for a prompt: set benchmark.longest lower, or choose a model that reads more"
        )
    tasks: dict[str, Generate] = {}
    tables: list[Table] = []
    ids: dict[tuple[str, Split], Ids] = {}
    of_task: dict[str, str] = {}
    shape: Inputs | None = None
    for scorer in dict.fromkeys(each.scorer for each in stages.values()):
        own = [each for each in stages.values() if each.scorer == scorer]
        word = scorer if isinstance(scorer, str) else scorer.__name__
        task = title if len({each.scorer for each in stages.values()}) == 1 else f"{title}: {word}"
        rows = [(stage, split, asked) for stage in own for split, asked in stage.splits.items() if asked]
        every = [each for _, _, asked in rows for each in asked]
        book = write(language, every, title=title, longest=how.longest, length=length, images=image is not None)
        tasks[task] = Generate(
            task, HEAD, language.size, 0.0, language, book.references, scorer, longest=how.longest, beams=how.beams
        )
        shape = _wider(shape, book.inputs(image))
        first = sum(map(len, tables))
        starts = np.cumsum([0, *(len(asked) for _, _, asked in rows)])
        for (stage, split, asked), start in zip(rows, starts.tolist(), strict=False):
            ids[stage.name, split] = np.arange(first + start, first + start + len(asked), dtype=np.int64)
            of_task[stage.name] = task
        if image is None:
            tables.append(Table(task, dict(book.columns), book.targets))
        else:
            tables += [
                _table(task, book, slice(start, start + len(asked)), stage.pictures[split])
                for (stage, split, asked), start in zip(rows, starts.tolist(), strict=False)
            ]
    assert shape is not None
    names = [*order, *(name for name in stages if name not in order)]
    sets = {
        (name, split): EvaluationSet(
            name,
            of_task[name],
            split,
            ids[name, split],
            Further(name, tuple(stages[name].details), tasks[of_task[name]]) if stages[name].details else None,
        )
        for name in names
        for split in ("validation", "test")
        if (name, split) in ids
    }
    held_out = {name: tuple(sets[name, split] for split in ("validation",) if (name, split) in sets) for name in order}
    return Setup(
        Data(tables, "".join(task.references.fingerprint() for task in tasks.values())),
        dict(tasks),
        Stream(tuple(Stage(name, ids[name, "train"], training, held_out[name]) for name in order)),
        Protocol(tuple(sets.values()), initial=True),
        shape,
        chance={name: stages[name].chance for name in names},
        problems=problems,
    )


@dataclass(frozen=True)
class Further:
    """Further scores of the answers of an evaluation set, each under its name and the scorer's."""

    name: str
    scorers: tuple[str, ...]
    task: Generate

    def __call__(self, predictions: Array, targets: Array) -> Mapping[str, tuple[int, float]]:
        """The number of examples and the score, by name."""
        said, right = self.task.texts(predictions), self.task.right(targets)
        return {f"{self.name}/{word}": (len(said), float(SCORERS[word](said, right))) for word in self.scorers}


def with_pictures(
    source: Source, official: str, parts: Mapping[Split, Sequence[Example]], side: int, module: str
) -> tuple[dict[Split, list[Example]], dict[Split, Column], tuple[str, ...]]:
    """The examples of parts of an official split whose pictures can be decoded, with a column of pictures for each.

    An example may occur several times: its rows share a picture. `module` is where the parts are chosen.
    """
    wanted = {each.id for examples in parts.values() for each in examples}
    found = prepare_split(
        source,
        "pictures",
        official,
        target=_nothing,
        notes={},
        module=module,
        keep=lambda example: example.id in wanted,
        kept=digest(sorted(wanted)),
        image_size=side,
    )
    rows = {str(name): row for row, name in enumerate(found.ids)}
    kept = {split: [each for each in examples if each.id in rows] for split, examples in parts.items()}
    column = found.table.inputs["image"]
    columns = {
        split: some_rows(column, np.array([rows[each.id] for each in own], np.int64)) for split, own in kept.items()
    }
    return kept, columns, found.problems


def always_pictured(dataset: Dataset) -> Dataset:
    """The dataset, with a plain grey picture for each example that has none."""

    def read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        for example in dataset.read(folder, split, reading):
            yield example if example.images else replace(example, images=(np.full((8, 8, 3), 128, np.uint8),))

    return replace(dataset, read=read)


def _nothing(examples: Sequence[Example]) -> Array:
    """The targets are references, which are made later."""
    return np.zeros(len(examples), np.int64)


def _texts(stages: Iterable[Exchanges]) -> Iterator[str]:
    for stage in stages:
        for asked in stage.splits.get("train", ()):
            yield asked.asked
            yield asked.answer


def _wider(known: Inputs | None, own: Inputs) -> Inputs:
    return own if known is None or own.text > known.text else known


def _table(task: str, book: TextColumns, rows: slice, picture: Column) -> Table:
    columns: dict[str, Column] = {name: column[rows] for name, column in book.columns.items()}
    return Table(task, columns | {"image": picture}, book.targets[rows])
