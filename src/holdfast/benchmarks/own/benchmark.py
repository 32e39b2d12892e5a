"""The common part of benchmarks of a user's own data: their settings, and the way from a listing to a set-up."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.own.inputs import Ready, make_ready
from holdfast.benchmarks.own.layout import Layout, lay_out
from holdfast.benchmarks.own.listing import Listed
from holdfast.benchmarks.own.measures import MEASURES, summary
from holdfast.data.shifting import arranged
from holdfast.data.table import Data, Table, some_rows
from holdfast.errors import UserError
from holdfast.tasks import Classify
from holdfast.types import Between, EvaluationSet, Ids, Protocol, Score, Stage, Stream, Training, Wants

NAME = "classes"
"""The name of the only task, and of its head, if all stages share a head."""
SPLITS: tuple[Literal["validation", "test"], ...] = ("validation", "test")
MODELS = {"both": "vilt-tiny", "image": "resnet18-tiny", "text": "bert-tiny"}
"""The default model for each kind of input: small ones, for two CPU cores."""
EPOCHS, RATES = {"both": 20, "image": 15, "text": 10}, {"both": 1e-3, "image": 3e-3, "text": 1e-3}
"""Training settings with which these models learn a thousand examples in a minute."""
EVALUATIONS, INTERVALS = 10, 100
"""For a stream without boundaries: the number of evaluations, and of intervals in which its mixture shifts."""


@dataclass(frozen=True)
class OwnData(Benchmark):
    """Classes to learn in stages, from a user's own examples."""

    version: ClassVar[int] = 2  # 2: the last evaluation of a stream without boundaries counts once
    default_model: ClassVar[str] = MODELS["image"]
    brings_data: ClassVar[bool] = False
    measures: ClassVar[Mapping[str, Measure]] = MEASURES

    setting: Literal["class", "task", "domain"] | None = None
    """class: one head, which grows with the classes of each stage. domain: one head for all classes from the beginning.
    task: a head for each stage, and the stage is known at test time. The default is class if each stage adds classes,
    otherwise domain."""
    stages: Annotated[int, Between(1)] | None = None
    """The number of stages; by default five, or fewer if there are few classes; with `by`, one for each value."""
    order: str = "sorted"
    """The order of the classes, or of the values that make stages: sorted; random, by the run's seed; random-7, by the
    seed 7; or names with `>` between them, of which only these are learned."""
    stream: Literal["stages", "shift"] = "stages"
    """shift: one pass without boundaries, in which each stage's examples fade in and out again."""
    most: Annotated[int, Between(2)] | None = None
    """Keep only this many classes, those with the most training examples."""
    test: Annotated[float, Between(0, 1)] = 0.2
    """The share of the examples that is cut for tests, if the data has no test split."""
    validation: Annotated[float, Between(0, 1)] = 0.1
    """The share of the examples that is cut for validation, if the data has no validation split."""
    side: Annotated[int, Between(1)] | None = None
    """The side of the pictures; by default the one that the model was made for."""
    length: Annotated[int, Between(3)] | None = None
    """The maximum number of word pieces of a text; longer texts lose their ends."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records may be skipped; they are listed. With more than that, the run is refused."""
    seed: int = 0
    """The seed of random draws, which `--seed` sets."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the data in messages."""

    @property
    def source(self) -> Path | None:
        """The file or folder of the data; None if it is in memory."""
        return None

    @property
    @abstractmethod
    def sees(self) -> Literal["image", "text", "both"]:
        """The kinds of input of an example."""

    @abstractmethod
    def listing(self) -> Listed:
        """List the examples, without decoding a picture; raise UserError for more than `skip_bad` bad ones."""

    def model(self, algorithm: str = "finetune") -> str:
        """A small model for the examples' kinds of input."""
        return MODELS[self.sees]

    def first(self, stages: int) -> Sequence[str]:
        """The first stages in their order."""
        return self._layout()[0].stages[:stages]

    def setup(self, wants: Wants) -> Setup:
        """List the examples, lay them out, and make their pictures and texts ready."""
        layout, problems = self._layout()
        train = np.flatnonzero(layout.split == "train")
        skip = self.skip_bad - len(problems)
        ready = make_ready(
            layout.listing,
            train,
            wants,
            title=self.title,
            source=self.source,
            side=self.side,
            length=self.length,
            skip=skip,
        )
        if len(ready.rows) < len(layout.listing):
            layout = layout.take(ready.rows)
        return self._laid_out(layout, ready, (*problems, *ready.problems))

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return summary(scores)

    def _layout(self) -> tuple[Layout, tuple[str, ...]]:
        listing = self.listing()
        layout = lay_out(
            listing,
            stages=self.stages,
            order=self.order,
            most=self.most,
            test=self.test,
            validation=self.validation,
            seed=self.seed,
        )
        return layout, listing.problems

    def _laid_out(self, layout: Layout, ready: Ready, problems: tuple[str, ...]) -> Setup:
        setting = self.setting or ("class" if layout.listing.values is None else "domain")
        if setting == "task" and self.stream == "shift":
            raise UserError(
                "a stream without boundaries has no stages to give heads to: set --setting class or domain, or "
                "benchmark.stream=stages"
            )
        places, tables, tasks = _tables(
            layout, ready, setting == "task", setting == "class" and self.stream == "stages"
        )
        found = {
            (split, number): EvaluationSet(name, tasks[number].name, split, places[layout.rows(number, split)])
            for number, name in enumerate(layout.stages)
            for split in SPLITS
        }
        sets = {key: each for key, each in found.items() if len(each.ids)}
        stages = tuple(
            Stage(
                name,
                places[layout.rows(number, "train")],
                self._training(),
                tuple(sets[key] for key in [("validation", number)] if key in sets),
                tuple(np.unique(layout.target[layout.rows(number, "train")]).tolist()) if setting == "class" else None,
            )
            for number, name in enumerate(layout.stages)
        )
        stream, every = Stream(stages), None
        if self.stream == "shift":
            stream = _shifting(stages, self.seed)
            (whole,) = stream.stages
            every = max(round(len(whole.train) / whole.training.batch_size / EVALUATIONS), 1)
        return Setup(
            Data(tables, _arrangement(stream, list(sets.values()))),
            {task.name: task for task in tasks},
            stream,
            Protocol(tuple(sets.values()), every=every),
            ready.inputs,
            chance=_chance(layout, setting == "task"),
            problems=problems,
        )

    def _training(self) -> Training:
        if self.stream == "shift":
            return Training(1, 10, optimiser="adam", learning_rate=RATES[self.sees], shuffle=False)
        return Training(
            EPOCHS[self.sees],
            optimiser="adam",
            learning_rate=RATES[self.sees],
            augment="flip" if self.sees == "image" else "none",
        )


def _tables(layout: Layout, ready: Ready, apart: bool, growing: bool) -> tuple[Ids, list[Table], list[Classify]]:
    """The id of each example, the tables, and the task of each stage: one for all, or, `apart`, one for each."""
    classes, count = len(layout.classes), len(layout.listing)
    if not apart:
        task = Classify(NAME, head=NAME, outputs=classes, chance=1 / classes, growing=growing)
        table = Table(NAME, ready.columns, torch.from_numpy(layout.target))
        return np.arange(count), [table], [task] * len(layout.stages)
    places, tables, tasks = np.zeros(count, np.int64), list[Table](), list[Classify]()
    for number, stage in enumerate(layout.stages):
        rows, name = np.flatnonzero(layout.stage == number), f"stage-{number + 1}"
        own, target = np.unique(layout.target[rows], return_inverse=True)
        if len(own) < 2:
            raise UserError(
                f"stage {stage!r} has one class, and a head for each stage needs two to tell apart: set fewer stages, "
                "or --setting class"
            )
        places[rows] = sum(map(len, tables)) + np.arange(len(rows))
        columns = {column: some_rows(values, rows) for column, values in ready.columns.items()}
        tables.append(Table(name, columns, torch.from_numpy(target.astype(np.int64))))
        tasks.append(Classify(name, head=name, outputs=len(own), chance=1 / len(own)))
    return places, tables, tasks


def _shifting(stages: Sequence[Stage], seed: int) -> Stream:
    """All stages in one, each fading into the next."""
    train = np.concatenate([stage.train for stage in stages])
    number = np.repeat(np.arange(len(stages)), [len(stage.train) for stage in stages])
    order = arranged(number, None, seed=seed, interval=max(len(train) // INTERVALS, 1))
    validation = tuple(each for stage in stages for each in stage.validation)
    return Stream((Stage("stream", train[order], stages[0].training, validation),), boundaries=False)


def _chance(layout: Layout, apart: bool) -> dict[str, float]:
    """The score of guessing on the tests of each stage: a random class, or always the one most frequent in training. If
    stages are made of other values than classes, or have heads of their own, it is the stage's most frequent class.
    """
    by_class = layout.listing.values is None and not apart
    found = {}
    for number, name in enumerate(layout.stages):
        train, test = layout.rows(number, "train"), layout.rows(number, "test")
        if by_class:
            counts = np.bincount(layout.target[layout.split == "train"])
            found[name] = max(1 / len(layout.classes), float(counts.max() / counts.sum()))
        else:
            outputs = len(np.unique(layout.target[layout.stage == number])) if apart else len(layout.classes)
            usual = np.bincount(layout.target[train]).argmax()
            found[name] = max(1 / outputs, float((layout.target[test] == usual).mean()))
    return found


def _arrangement(stream: Stream, sets: Sequence[EvaluationSet]) -> str:
    """A hash of what is learned and scored when, which depends on names of files and values of columns."""
    digest = hashlib.blake2b(digest_size=16)
    for name, ids in [*((s.name, s.train) for s in stream.stages), *((f"{e.name}/{e.split}", e.ids) for e in sets)]:
        digest.update(f"{name};{len(ids)};".encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(ids, "<i8").data)
    return digest.hexdigest()
