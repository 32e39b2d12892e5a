"""The benchmarks `instructions:coin` and `instructions:ucit`: their settings, and how their parts are assembled.

One model with an image and a language part learns one collection of instructions after another, and writes its answers.
Neither download has validation data, so a part of the training data is held out.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.exchanges import (
    Exchanges,
    Split,
    Writing,
    always_pictured,
    laid_out,
    majority,
    parted,
    some,
    with_pictures,
)
from holdfast.benchmarks.instructions import protocol, stream
from holdfast.benchmarks.source import Source, check_splits, open_source
from holdfast.benchmarks.writing import Exchange
from holdfast.data.table import Column
from holdfast.datasets import coin, ucit
from holdfast.datasets.base import Reading
from holdfast.types import Between, Example, Training, Wants


@dataclass(frozen=True)
class _Instructions(Benchmark, ABC):
    """Instructions with pictures, one task after another."""

    version: ClassVar[int] = 1
    default_model: ClassVar[str] = "prefix-lm-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES
    dataset: ClassVar[str]
    tasks: ClassVar[Sequence[str]]
    captions: ClassVar[Sequence[str]] = ()

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """The amount of synthetic data, the size of its pictures, and the length of training."""
    order: str = ""
    """The tasks with `>` between them; empty: in the authors' order."""
    most: Annotated[int, Between(2)] | None = None
    """Learn from a fixed part of each task, at most N examples; none: all."""
    most_tested: Annotated[int, Between(1)] | None = None
    """Test on a fixed part of each task, at most N examples; none: all."""
    length: Annotated[int, Between(8)] = 512
    """The maximum number of tokens of a prompt; longer ones lose words in their middle."""
    longest: Annotated[int, Between(2)] = 64
    """The maximum number of tokens of an answer, including its end."""
    beams: Annotated[int, Between(1)] = 1
    """The number of beams in the search for an answer; 1: take the likeliest token each time."""
    data: str = ""
    """The folder of the download; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records of a split may be skipped; they are listed. With more than that, the run is refused."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        stream.tasks_of(self.order, self.tasks)  # report a mistake before any data is read

    def reads(self) -> Collection[str]:
        """The dataset."""
        return (self.dataset,)

    def check(self, wants: Wants) -> None:
        """Check that the files of the tasks are there."""
        if self.data:
            names = stream.tasks_of(self.order, self.tasks)
            check_splits(self._source(), *(f"{name}_{split}" for name in names for split in ("train", "test")))

    def setup(self, wants: Wants) -> Setup:
        """Read the tasks, and make each a stage."""
        order, side = stream.tasks_of(self.order, self.tasks), wants.side or protocol.SIDES[self.scale]
        problems: list[str] = []
        source = self._source()
        stages = {name: self._stage(source, name, side, problems) for name in sorted(order)}
        training = Training(
            protocol.EPOCHS[self.scale], batch_size=32, learning_rate=protocol.RATES[self.scale], schedule="cosine"
        )
        how = Writing(self.longest, self.length, self.beams)
        return laid_out(
            f"instructions:{self.dataset}",
            order,
            stages,
            wants,
            training,
            how,
            image=(3, side, side),
            problems=tuple(problems),
        )

    def _source(self) -> Source:
        source = open_source(self.dataset, data=self.data, scale=self.scale, skip_bad=self.skip_bad)
        return replace(source, dataset=always_pictured(source.dataset))

    def _stage(self, source: Source, name: str, side: int, problems: list[str]) -> Exchanges:
        found: dict[str, list[Example]] = {}
        for split in ("train", "test"):
            reading = Reading(skip=self.skip_bad)
            found[split] = list(source.examples(f"{name}_{split}", reading))
            problems += map(str, reading.problems)
        learned, held = parted(found["train"])
        train = {"train": some(learned, self.most), "validation": some(held, self.most_tested)}
        test = {"test": some(found["test"], self.most_tested)}
        splits: dict[Split, list[Exchange]] = {}
        pictures: dict[Split, Column] = {}
        for official, parts in ((f"{name}_train", train), (f"{name}_test", test)):
            kept, columns, bad = with_pictures(source, official, parts, side, stream.__name__)  # type: ignore[arg-type]
            splits |= {split: [_exchange(each) for each in own] for split, own in kept.items()}
            pictures |= columns
            problems += bad
        free = name in self.captions
        scorer = "cider" if free else protocol.boxes if name in stream.BOXES else "exact"
        answers = [[each.answer for each in splits[split]] for split in ("train", "test")]
        chance = 0.0 if free or name in stream.BOXES else majority(*answers)
        return Exchanges(name, splits, chance, scorer, pictures)


def _exchange(example: Example) -> Exchange:
    return Exchange(example.text, str(example.target), tuple(example.extra["answers"]))


@dataclass(frozen=True)
class Coin(_Instructions):
    """CoIN's eight tasks of instructions with pictures, one after another."""

    dataset: ClassVar[str] = "coin"
    tasks: ClassVar[Sequence[str]] = coin.TASKS


@dataclass(frozen=True)
class Ucit(_Instructions):
    """UCIT's six tasks of instructions with pictures, two of them captions, one after another."""

    dataset: ClassVar[str] = "ucit"
    tasks: ClassVar[Sequence[str]] = ucit.TASKS
    captions: ClassVar[Sequence[str]] = ucit.CAPTIONS
