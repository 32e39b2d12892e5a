"""The benchmark `climb:lowshot`: one task learned from few examples, either after some upstream stages or directly.

The examples are a sub-sample of the task's training data. All weights are fine-tuned, whichever algorithm learned the
upstream tasks (CLiMB, section 5.2). With `--start RUN@STAGE` the encoder starts from the weights of an upstream run
after that stage; without it, from the pre-trained ones. `climb.transfer` defines by which of these runs an upstream run
is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from holdfast import metrics
from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.climb import paper, tasks, unimodal
from holdfast.benchmarks.climb.regions import region_inputs, sight, with_regions
from holdfast.benchmarks.climb.transfer import (
    GUESSING,
    MODALITIES,
    PER_CLASS,
    amount,
    final,
    levels,
    modality,
    task_name,
)
from holdfast.benchmarks.climb.unimodal import PLACES, Unimodal, Vacuous
from holdfast.benchmarks.source import Source, check_splits
from holdfast.benchmarks.splits import PreparedSplit, prepare_split
from holdfast.benchmarks.vocabulary import at_most, word_pieces
from holdfast.data.prepared import class_numbers
from holdfast.data.sampling import cut, low_shot
from holdfast.data.table import Data, Table
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.tasks import Choose, Classify, MultiLabel
from holdfast.types import (
    Array,
    Between,
    EvaluationSet,
    Example,
    Ids,
    Inputs,
    Protocol,
    Score,
    Stage,
    Stream,
    Task,
    Training,
    Wants,
)

VERSION = 2
SIDES = {"tiny": 32, "small": 64, "large": 96, "paper": 384}
"""The side of images, if the model does not specify it."""
MOST = {"tiny": (40, 80), "small": (100, 400), "large": (1000, None), "paper": (None, None)}
"""The maximum number of synthetic examples for validation and for the test; None: all."""
EPOCHS, RATES = {"language": 10, "vision": 10, "imagenet": 8, "inaturalist2019": 8}, {"language": 4e-5, "vision": 1e-4}
"""The paper's values, by task or modality."""
SMALLER: dict[str, dict[str, tuple[int, float]]] = {
    "tiny": dict.fromkeys(MODALITIES, (3, 1e-3)),
    "small": {"multimodal": (10, 5e-4), "language": (10, 4e-4), "vision": (20, 1e-3)},
}
"""Epochs and learning rates for the models of these scales: a small one learns faster at a higher rate."""
FASTER = {"tiny": 1.0, "small": 1.0, "large": 5.0, "paper": 1.0}
"""The factor on the paper's rates, if these are used."""


@dataclass(frozen=True)
class LowShot(Benchmark):
    """A task of CLiMB, multimodal, language or vision, learned from few examples."""

    version: ClassVar[int] = 2
    default_model: ClassVar[str] = "vilt-tiny"
    measures: ClassVar[Mapping[str, Measure]] = {"score": Measure("score", higher=True)}

    task: str = "sst-2"
    """One of the thirteen tasks, such as nlvr2, imdb or coco."""
    shots: str = ""
    """The amount of training data: a number (for each class, if there are classes) or a share, as in 5%; empty: as much
    as the scale has."""
    sample: Annotated[int, Between(0)] | None = None
    """The seed of the sub-sample; none: the run's."""
    image: Vacuous = "mean"
    """The picture that accompanies a language task: the mean of COCO's images, a black image, or none."""
    reallocate: bool = True
    """Whether places of a vacuous image go to the text: the image has a third of its side, and a text may have more
    than 40 word pieces."""
    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """How much data, and how large the pictures: from tiny (seconds) to paper (the official sizes)."""
    data: str = ""
    """The folder of the task's official files; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records may be skipped; they are listed. With more than that, the run is refused."""
    features: str = ""
    """The folder of region features, for a multimodal task and a model that sees regions; empty: those in `data`."""
    validation: Annotated[int, Between(1)] | None = None
    """Use at most N validation examples, drawn by id; none: as many as the scale has."""
    test: Annotated[int, Between(1)] | None = None
    """Use at most N test examples, drawn by id; none: as many as the scale has or, of official data, all."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", task_name(self.task))
        object.__setattr__(self, "shots", self.shots or levels(self.task, self.scale)[0])
        object.__setattr__(self, "sample", self.seed if self.sample is None else self.sample)
        amount(self.shots)  # report a mistake before any data is read

    def model(self, algorithm: str = "finetune") -> str:
        """The paper's own model at its scale, and a small one otherwise."""
        return "vilt" if self.scale == "paper" else self.default_model

    def reads(self) -> tuple[str, ...]:
        """The dataset of the task, and the features if they come from files."""
        features = ["region_features"] if self.features else []
        known: Mapping[str, Unimodal | paper.Facts] = {**paper.TASKS, **unimodal.LANGUAGE, **unimodal.VISION}
        return (known[self.task].dataset, *features)

    def setup(self, wants: Wants) -> Setup:
        """Draw the few examples, and read the validation and test data."""
        features, several = self._sight(wants), modality(self.task) == "multimodal"
        task, parts, inputs = self._multimodal(wants, features) if several else self._unimodal(wants)
        data = Data([part.table for part in parts])
        validation, test = (
            EvaluationSet(self.task, self.task, split, data.ids(number))  # type: ignore[arg-type]
            for number, split in ((1, "validation"), (2, "test"))
        )
        stage = Stage(self.task, data.ids(0), self._training(), (validation,))

        def finish(learner: object, stream: Stream, steps: int) -> list[tuple[Score, Array]]:
            stages = len(stream.stages)
            guessed = (Score(stages, steps, GUESSING, s.split, len(s.ids), task.chance) for s in (validation, test))
            return [(score, np.zeros(0)) for score in guessed]

        return Setup(
            data,
            {self.task: task},
            Stream((stage,)),
            Protocol((validation, test)),
            inputs,
            chance={"score": task.chance},
            problems=tuple(p for part in parts for p in part.problems if "has no size" not in p),
            finish=finish,
        )

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The score on test data."""
        if not any(score.split == "test" for score in scores):
            return {"score": metrics.Undefined("was not measured")}
        return {"score": final(scores)}

    def check(self, wants: Wants) -> None:
        """Refuse a model that sees something else, and files that are not there."""
        self._sight(wants)
        if modality(self.task) == "multimodal":
            tasks.check_files(self.task, tasks.Place(self.data, self.scale, self.skip_bad))
        elif self.data:
            kind = (unimodal.LANGUAGE | unimodal.VISION)[self.task]
            opened = unimodal.open_unimodal(kind, data=self.data, scale=self.scale, skip_bad=self.skip_bad)
            check_splits(opened[0], *opened[1])

    def _sight(self, wants: Wants) -> str:
        """The folder of region features, or empty; refuses a model that cannot be given what it sees."""
        several = modality(self.task) == "multimodal"
        if wants.sees != "image" and not (several and wants.sees == "regions"):
            raise UserError("climb:lowshot uses pictures, but this model takes none: choose another, such as vilt-tiny")
        names = [self.task] if several else []
        return sight(names, wants, self.scale, self.features, self.data if several else "")

    def _training(self) -> Training:
        kind = modality(self.task)
        found = paper.training(self.task if kind == "multimodal" else "vqav2", self.scale)
        if kind != "multimodal":  # keep what all tasks share: the optimiser, its schedule and weight decay
            batch = 64 if kind == "vision" else 16 if self.task in PER_CLASS else 32
            epochs = EPOCHS.get(self.task, EPOCHS[kind])
            found = replace(
                found,
                batch_size=batch,
                learning_rate=RATES[kind] * FASTER[self.scale],
                epochs=epochs,
                patience=epochs,
            )
        if self.scale in SMALLER:  # keep the last epoch's weights: there is too little data to choose by
            epochs, rate = SMALLER[self.scale][kind]
            found = replace(found, epochs=epochs, learning_rate=rate, patience=None)
        return found

    def _sampled(self, names: Sequence[str], labels: Sequence[Any]) -> Ids:
        """The positions of the few examples."""
        share, count = amount(self.shots)
        classes = labels if count is not None and self.task in PER_CLASS else None
        # A rare class contributes everything it has, as in iNaturalist; but at least one class must have enough.
        most = len(names) if classes is None else max(Counter(classes).values(), default=0)
        if count is not None and count > most:
            there = f"{most} examples to learn from" if classes is None else f"{most} examples per class to learn from"
            raise UserError(f"benchmark.shots is {self.shots}, but {self.task} has only {there}: use at most {most}")
        return low_shot(names, classes, share=share, count=count, seed=self.sample or 0)

    def _few(self, names: Sequence[str], part: str) -> Ids:
        """The positions of the examples for validation or test."""
        most = self._most(part)
        return np.arange(len(names)) if most is None else low_shot(names, count=most, seed=0)

    def _most(self, part: str) -> int | None:
        validation, test = MOST[self.scale]
        if part == "test":
            return self.test or (None if self.data else test)  # results on official data refer to all of it
        return self.validation or validation

    def _multimodal(self, wants: Wants, features: str) -> tuple[Task, list[PreparedSplit], Inputs]:
        place = tasks.Place(self.data, self.scale, self.skip_bad)
        vocabulary, side = tasks.vocabulary_file(wants, place), wants.side or SIDES[self.scale]
        fit = {"pictures": False} if features else paper.fit(side, self.scale)

        def part(name: tasks.Part) -> PreparedSplit:
            found = tasks.listing(self.task, name, place)
            rows = self._sampled(found.ids, found.labels) if name == "train" else self._few(found.ids, name)
            keep = {found.ids[row] for row in rows}
            return tasks.read(
                self.task,
                name,
                place,
                vocabulary=vocabulary,
                length=at_most(paper.TEXT, wants),
                fit=fit,
                keep=keep,
                kept=self._kept(name),
            )

        parts = [part(name) for name in _PARTS]
        text = max(_length(each.table) for each in parts)
        images, pieces = paper.TASKS[self.task].images, len(Tokenizer.load(vocabulary).vocabulary)
        inputs = Inputs(None if features else paper.shape(fit), images, "longest" in fit, text=text, vocabulary=pieces)
        if wants.sees == "regions":
            parts = with_regions(self.task, parts, place, features)
            inputs = region_inputs(inputs, parts)
        return tasks.task_of(self.task, place), parts, inputs

    def _unimodal(self, wants: Wants) -> tuple[Task, list[PreparedSplit], Inputs]:
        kind = (unimodal.LANGUAGE | unimodal.VISION)[self.task]
        source, (train, test) = unimodal.open_unimodal(kind, data=self.data, scale=self.scale, skip_bad=self.skip_bad)
        words = self._words(wants, source, train)
        side, parts = wants.side or SIDES[self.scale], self._parts(source, train, test)
        fit = paper.fit(side, self.scale)
        if kind.pieces:
            fit = {"tokenizer": words, "length": at_most(kind.pieces if self.reallocate else PLACES, wants)}
        splits = [
            prepare_split(
                source,
                self.task,
                test if name == "test" else train,
                target=unimodal.indicators if kind.kind == "label" else class_numbers,
                notes={},
                module=__name__,
                keep=_among(parts, name),
                kept=f"{name}/{self._kept(name)}",
                **fit,
            )
            for name in _PARTS
        ]
        if kind.pieces:
            shown, padded = unimodal.shrunk(side) if self.reallocate else side, self.image == "none"
            image = (3, shown, shown)
            pixels = unimodal.vacuous_image(self.image, side, shown, data=self.data, scale=self.scale)
            longest = max(int(_column(each.table, "text_length").max()) for each in splits)
            tables = [unimodal.with_image(_shortened(s.table, longest), pixels, self.image) for s in splits]
        else:
            image, padded = paper.shape(fit), "longest" in fit
            tables = [unimodal.with_text(each.table, words) for each in splits]
        splits = [replace(split, table=table) for split, table in zip(splits, tables, strict=True)]
        text = max(_length(table) for table in tables)
        pairs = bool(kind.pieces) and kind.kind == "choose"
        inputs = Inputs(image, padded=padded, text=text, vocabulary=len(words.vocabulary), pairs=pairs)
        return _task(self.task, kind, tables), splits, inputs

    def _parts(self, source: Source, train: str, test: str) -> Callable[[], dict[str, frozenset[str]]]:
        """The ids of each part, determined when a table has to be made: a cached table knows its own."""

        @cache
        def found() -> dict[str, frozenset[str]]:
            rows = [(example.id, example.target) for example in source.examples(train)]
            names, labels = [name for name, _ in rows], [label for _, label in rows]
            pool, held = _held_out(self.task, names, labels)
            few = pool[self._sampled([names[i] for i in pool], [labels[i] for i in pool])]
            checked = held[self._few([names[i] for i in held], "validation")]
            tested = [example.id for example in source.examples(test)]
            chosen = {"train": [names[i] for i in few], "validation": [names[i] for i in checked]}
            chosen["test"] = [tested[i] for i in self._few(tested, "test")]
            return {part: frozenset(ids) for part, ids in chosen.items()}

        return found

    def _kept(self, part: str) -> str:
        """A short description of the examples of a part."""
        return f"{self.shots} shots, sample {self.sample}" if part == "train" else f"at most {self._most(part)}"

    def _words(self, wants: Wants, source: Source, train: str) -> Tokenizer:
        """The word pieces of the model, or of the upstream tasks; if only this task's files exist, its own."""
        try:
            return Tokenizer.load(tasks.vocabulary_file(wants, tasks.Place(self.data, self.scale, self.skip_bad)))
        except UserError:
            if not self.data or wants.vocabulary is not None:
                raise
        return word_pieces(source, lambda: (" ".join((e.text, *e.choices)) for e in source.examples(train)))[0]


_PARTS: tuple[tasks.Part, ...] = ("train", "validation", "test")


def _among(parts: Callable[[], dict[str, frozenset[str]]], name: str) -> Callable[[Example], bool]:
    return lambda example: example.id in parts()[name]


def _held_out(task: str, names: Sequence[str], labels: Sequence[Any]) -> tuple[Ids, Ids]:
    """Split the official training data into the pool of the few examples and the validation data.

    Validation gets 30 % of a language task, 10 % of COCO, and 10 %, at most 50, of each class of another vision task;
    for ImageNet and Places365, it is 50.
    """
    if modality(task) == "language":
        return cut(names, share=0.3)
    return cut(names, share=0.1) if task == "coco" else cut(names, labels, share=0.1, count=50)


def _task(name: str, kind: Unimodal, tables: Sequence[Table]) -> Task:
    outputs = kind.outputs or 1 + max(int(table.targets.max()) for table in tables)
    if kind.kind == "label":
        # The paper gives no chance score: naming no object at all scores 0.
        return MultiLabel(name, head=name, outputs=outputs, chance=0.0)
    if kind.kind == "choose":
        return Choose(name, head=name, outputs=outputs, chance=1 / outputs)
    return Classify(name, head=name, outputs=outputs, chance=1 / outputs)


def _column(table: Table, name: str) -> Tensor:
    column = table.inputs[name]
    found = column if isinstance(column, Tensor) else getattr(column, "values", None)
    assert isinstance(found, Tensor)
    return found


def _length(table: Table) -> int:
    return int(_column(table, "text").shape[-1])


def _shortened(table: Table, longest: int) -> Table:
    """Remove the padding that all rows have in common."""
    return replace(table, inputs={**table.inputs, "text": _column(table, "text")[..., :longest].contiguous()})
