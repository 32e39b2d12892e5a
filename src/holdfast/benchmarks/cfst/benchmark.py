"""The benchmarks `cfst:cgqa`, `cfst:cobj`, `cfst:cpin` and `cfst:cifar100`: their settings, and how their parts fit.

A run learns combinations of concepts in stages, with one growing head (class-incremental) or a head for each stage
(task-incremental, starred in the paper). At the end, few-shot tests measure how well the extractor serves combinations
that it has not learned. CIFAR-100 has no combinations and no such tests.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.cache import place, version_of
from holdfast.benchmarks.cfst import combinations, fewshot, paper, protocol, stream, tasks
from holdfast.benchmarks.cfst.build import MARK, READERS, build
from holdfast.benchmarks.cfst.combinations import ORDER_SEED, Combination, Combinations, of_folder
from holdfast.benchmarks.cfst.plan import LAYOUTS
from holdfast.benchmarks.cfst.stream import Rows
from holdfast.benchmarks.cfst.testing import FewShotTest, FewShotTests
from holdfast.benchmarks.source import Source, check_splits, open_source
from holdfast.benchmarks.splits import PreparedSplit, prepare_split
from holdfast.benchmarks.synthetic import world
from holdfast.data.prepared import class_numbers, files_fingerprint
from holdfast.data.sampling import cut
from holdfast.data.table import Data, Table
from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.cpin import DATASET as ARCHIVE
from holdfast.errors import UserError
from holdfast.types import Between, EvaluationSet, Inputs, Protocol, Score, Stage, Stream, Training, Wants

LEAST, MOST = 40, {"tiny": 40, "small": 40, "large": 96}
"""The minimum side of a composed picture, whatever a small model was made for: below it, the cells show too little. And
the maximum at all scales but the paper's, whatever a large model was made for."""
EPOCHS = {"tiny": 2, "small": 12, "large": 30}
RATE = 3e-3
"""The paper's settings for plain fine-tuning on CGQA; `preset` has those of each method."""
CHANNELS = 16
"""The settings of a small model, for methods that need a network of modules."""
BATCHES = {"tiny": 32, "small": 32, "large": 100, "paper": paper.BATCH}
"""Except at the paper's scale, a stage has few examples, and a small model learns faster in smaller steps."""
VALIDATION = 0.1
"""The share of CIFAR-100's training data that is used for validation."""
BUILT = {"tiny": (16, 4, 20), "small": (60, 10, 20), "large": (300, 50, 100), "paper": (1000, 50, 100)}
"""The number of pictures per combination for training, validation and test, when the synthetic CPIN is built."""
PAIR = 2
"""The number of classes in a test on fresh, or on old, concepts."""
SPLITS: tuple[Literal["validation", "test"], ...] = ("validation", "test")


@dataclass(frozen=True)
class Cfst(Benchmark):
    """The common part of all four: classes in stages."""

    default_model: ClassVar[str] = "resnet18-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES
    former: ClassVar[Mapping[str, Mapping[str, str]]] = {"model.start": {"cfst": "medium"}}
    name: ClassVar[str]

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """How much data, and how large the pictures: from tiny (seconds) to paper (the official sizes)."""
    setting: Literal["class", "task"] = "class"
    """class: one head, which grows with each stage. task: a head for each stage, and the stage is known at test
    time."""
    tasks: Annotated[int, Between(1)] | None = None
    """The number of stages that the classes are divided into; by default stages of ten classes."""
    per_class: Annotated[int, Between(1)] | None = None
    """How many images of each class are used for training; by default all."""
    side: Annotated[int, Between(8)] | None = None
    """The side of the images; by default the side that the model was made for, unless it is too small to show the
    things."""
    data: str = ""
    """The folder of the published archive; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records may be skipped; they are listed. With more than that, the run is refused."""
    fidelity: Literal["paper", "released"] = "paper"
    """paper: the text's protocol. released: that of the authors' code: the order of classes depends on the seed,
    nothing of CIFAR-100 is held out (the training data of a stage also stops its training early), the support pictures
    of few-shot tests are flipped, and cosine schedules end at 1e-6."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    @property
    def released(self) -> bool:
        """Whether the protocol is that of the authors' code."""
        return self.fidelity == "released"

    def model(self, algorithm: str = "finetune") -> str:
        """The paper's own model for a method at its scale; otherwise a small one, if the method allows it."""
        found = paper.model(algorithm)
        return self.default_model if found == "resnet18" and self.scale != "paper" else found

    def preset(self, model: str, algorithm: str) -> dict[str, Any]:
        """The settings that define a method as in the paper and, at the paper's scale, the paper's own for it."""
        found = paper.shape(model, algorithm, self.setting, self.released)
        if self.scale == "paper":
            found |= {"train.epochs": paper.epochs(model)}
            return found | self._published(model, algorithm)
        return found | ({"model.channels": CHANNELS} if model == paper.model("rpsnet") else {})

    def _published(self, model: str, algorithm: str) -> dict[str, Any]:
        return paper.preset(self.name, model, algorithm, self.setting, self.tasks, self.released)

    def first(self, stages: int) -> tuple[str, ...]:
        """The evaluation sets for the classes of the first stages, and all few-shot tests."""
        return (*map(tasks.stage_name, range(stages)), *protocol.TESTS)

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return protocol.summary(scores)

    def _training(self) -> Training:
        """The paper's training settings for ResNet; `preset` has those that other models need."""
        return Training(
            epochs=paper.EPOCHS["resnet"] if self.scale == "paper" else EPOCHS[self.scale],
            batch_size=BATCHES[self.scale],
            optimiser="adam",
            learning_rate=RATE,
            augment="flip",
            patience=paper.PATIENCE,
        )

    def _laid_out(
        self, tables: Sequence[tuple[PreparedSplit, NDArray[np.int64]]], rows: Mapping[str, Rows], side: int
    ) -> tuple[Setup, list[Table]]:
        """Heads, stages and evaluations, and the tables, which are those of whole splits in their order."""
        classes = 1 + max(int(places.max()) for _, places in tables)
        each = stream.classes_each(classes, self.tasks)
        kinds = tasks.kinds(self.setting, classes, each)
        names = [kind.name for kind in kinds]
        sets = {
            (split, number): EvaluationSet(tasks.stage_name(number), kind.name, split, rows[split].of(number, each))
            for split in SPLITS
            for number, kind in enumerate(kinds)
        }
        stages = tuple(
            Stage(
                tasks.stage_name(number),
                rows["train"].of(number, each),
                self._training(),
                (sets["validation", number],),
                tuple(range(number * each, (number + 1) * each)) if self.setting == "class" else None,
            )
            for number in range(len(kinds))
        )
        parts = [part for split, places in tables for part in stream.tables(split.table, places, names, each)]
        setup = Setup(
            Data(parts),
            {kind.name: kind for kind in kinds},
            Stream(stages),
            Protocol(tuple(sets.values())),
            Inputs(image=(3, side, side)),
            chance={tasks.stage_name(number): kind.chance for number, kind in enumerate(kinds)},
            problems=tuple(problem for split, _ in tables for problem in split.problems),
        )
        return setup, parts


@dataclass(frozen=True)
class Composed(Cfst):
    """The common part of CGQA, COBJ and CPIN: combinations of concepts, and few-shot tests of other combinations."""

    version: ClassVar[int] = 1
    retests: ClassVar[frozenset[str]] = frozenset({"tests", "way", "shots", "frozen", "flips", "schedule"})

    tests: Annotated[int, Between(2)] = fewshot.TASKS
    """The number of few-shot tasks in each test."""
    way: Annotated[int, Between(2)] | None = None
    """The number of classes in a few-shot task; by default ten, or as many as there are."""
    shots: Annotated[int, Between(1)] = fewshot.SHOT
    """How many pictures of each class a few-shot task learns from; it is scored on ten others."""
    frozen: bool = True
    """Whether the extractor stays frozen in the tests; otherwise it is fine-tuned for each few-shot task, which is
    slow."""
    flips: bool | None = None
    """Whether the pictures that a few-shot task learns from are mirrored at random in each epoch. none: as `fidelity`
    says."""
    schedule: Literal["constant", "cosine"] | None = None
    """How the learning rate of a few-shot task changes. none: not at all or, with `fidelity=released`, as that of
    training."""

    def reads(self) -> tuple[str, ...]:
        """The underlying dataset."""
        return (READERS[self.name].name,)

    @abstractmethod
    def _source(self) -> Source:
        """The source files."""

    def check(self, wants: Wants) -> None:
        """Refuse files that are not there."""
        if self.data:
            check_splits(self._source(), "train", "val", "test")

    def setup(self, wants: Wants) -> Setup:
        """Read the combinations, and arrange them in stages; the few-shot tests' examples come after them."""
        source = self._source()
        built = of_folder(source.folder / LAYOUTS[self.name].root, self.name)
        listed = built or combinations.listed(self.name)
        trained = self._order(source, listed)
        side = max(wants.side or paper.SIDES["resnet"], LEAST)
        side = self.side or min(side, MOST.get(self.scale, side))
        ordered = replace(source, dataset=stream.by_list(source.dataset, trained))
        order = stream.mark(trained)

        def read(split: str) -> PreparedSplit:
            notes = {"concepts": tasks.concept_bits(listed.concepts)}
            return prepare_split(
                ordered,
                "cfst",
                split,
                target=class_numbers,
                notes=notes,
                module=stream.__name__,
                kept=order,
                image_size=side,
            )

        train, val, test = (read(split) for split in ("train", "val", "test"))
        places = stream.places_of([train, val, test])
        starts = np.cumsum([0, *map(len, places)])
        found = [Rows(start + np.arange(len(at)), at) for start, at in zip(starts, places, strict=False)]
        found[0] = stream.some_of_each(found[0], train.ids, self.per_class, self.seed)
        rows = dict(zip(("train", *SPLITS), found, strict=True))
        setup, parts = self._laid_out(list(zip((train, val, test), places, strict=True)), rows, side)

        modes: dict[str, PreparedSplit] = {}
        for mode in listed.modes:
            try:
                modes[mode] = read(mode)
            except DataError as error:
                if not error.missing:  # a dataset built from little data may have no pictures for a test
                    raise
        fresh = int(np.bitwise_or.reduce(train.notes["concepts"][setup.stream.stages[-1].train]))
        return self._with_tests(setup, parts, modes, fresh)

    def titles(self, mode: str) -> dict[int, str]:
        """The concepts of each combination of a few-shot test, by the number of the class."""
        source = self._source()
        examples = source.examples(mode, Reading(skip=self.skip_bad))
        return {int(str(example.target)): ", ".join(tasks.combination(example)) for example in examples}

    def _order(self, source: Source, listed: Combinations) -> tuple[Combination, ...]:
        """The training combinations, in the order in which they are learned."""
        return combinations.in_drawn_order(listed.trained, self.seed) if self.released else listed.trained

    def _with_tests(
        self,
        setup: Setup,
        parts: Sequence[Table],
        modes: Mapping[str, PreparedSplit],
        fresh: int,
    ) -> Setup:
        """The same setup with the examples of the few-shot tests; `fresh` are the concepts of the last stage.

        These examples belong to no stage. Their tables name a task because every table does; their targets are the
        classes of their own test, and no loss ever reads them.
        """
        task = setup.stream.stages[-1].validation[0].task
        data = Data([*parts, *(replace(split.table, task=task) for split in modes.values())])
        asked: list[FewShotTest] = []
        least = self.shots + fewshot.QUERY
        for number, (mode, split) in enumerate(modes.items(), len(parts)):
            ids, labels, bits = data.ids(number), split.table.targets.numpy(), split.notes["concepts"]
            way = self.way or min(fewshot.WAY, len(fewshot.classes_of(labels, least)))
            if way < PAIR:
                continue  # the summary reports that this was not tested
            # Fails before training if there are too few.
            fewshot.draw(labels, np.random.default_rng(0), tasks=1, way=way, shot=self.shots)
            asked.append(FewShotTest(mode, ids, np.arange(len(ids)), labels, way))
            for group, chosen in (("f", bits & ~fresh == 0), ("o", bits & fresh == 0)):
                rows = np.flatnonzero(chosen)
                if mode in protocol.COMPARED and len(fewshot.classes_of(labels[rows], least)) >= PAIR:
                    asked.append(FewShotTest(f"{mode}({group})", ids, rows, labels[rows], PAIR))
        return replace(
            setup,
            data=data,
            finish=FewShotTests(
                asked,
                setup.tasks[task].head,
                self.tests,
                self.frozen,
                self.seed,
                self.shots,
                self.released if self.flips is None else self.flips,
                self.schedule or (None if self.released else "constant"),
            ),
            chance={**setup.chance, **{test.name: 1 / test.way for test in asked}},
            problems=(*setup.problems, *(problem for split in modes.values() for problem in split.problems)),
        )


@dataclass(frozen=True)
class Cgqa(Composed):
    """Pairs of concepts of GQA."""

    name: ClassVar[str] = "cgqa"

    def _source(self) -> Source:
        return open_source("cgqa", data=self.data, scale=self.scale, skip_bad=self.skip_bad)


@dataclass(frozen=True)
class Cobj(Composed):
    """Things of Objects365 that are seen together."""

    name: ClassVar[str] = "cobj"

    def _source(self) -> Source:
        return open_source("cobj", data=self.data, scale=self.scale, skip_bad=self.skip_bad)


@dataclass(frozen=True)
class Cpin(Composed):
    """Parts of the things of PartImageNet: a built dataset, or an archive in the layout of the authors' code."""

    name: ClassVar[str] = "cpin"

    def reads(self) -> tuple[str, ...]:
        """The reader of built datasets, which have the layout of CGQA, and that of the authors' layout."""
        return (READERS[self.name].name, ARCHIVE.name)

    def _source(self) -> Source:
        reader = READERS[self.name]
        if not self.data:
            return Source(reader, self._built(), self.skip_bad)
        for folder in (Path(self.data), Path(self.data) / self.name):
            if of_folder(folder, self.name) is not None:
                return Source(reader, folder, self.skip_bad)
            if ARCHIVE.holds(folder):
                return Source(ARCHIVE, folder, self.skip_bad)
        raise UserError(
            f"{self.data} contains no cpin: unpack its archive there, or build it from PartImageNet with "
            "`holdfast data build cpin`"
        )

    def _order(self, source: Source, listed: Combinations) -> tuple[Combination, ...]:
        """The combinations of the built dataset's list; an archive has no list, so they are drawn as for the other
        benchmarks.
        """
        if source.dataset is not ARCHIVE:
            return super()._order(source, listed)
        known = {tasks.combination(example) for example in source.examples("val", Reading(skip=self.skip_bad))}
        return combinations.in_drawn_order(known, self.seed if self.released else ORDER_SEED)

    def _built(self) -> Path:
        """The dataset built from the synthetic PartImageNet, once."""
        source = world("partimagenet", self.scale)
        title = f"{self.name}, built of the world's partimagenet at {self.scale}"
        modules = [build.__module__, "holdfast.datasets.partimagenet", "holdfast.datasets.cgqa"]
        name = "-".join([self.name, source.name, *(f"v{version_of(module)}" for module in modules)])
        folder = place("world", name, title, modules, {str(source): files_fingerprint(source)})
        if not (folder / MARK).is_file():
            build(self.name, source, folder, per_combination=BUILT[self.scale], smallest=1)
        return folder


@dataclass(frozen=True)
class Cifar100(Cfst):
    """CIFAR-100 in stages; images keep their 32 pixels, whatever the model was made for."""

    version: ClassVar[int] = 1
    name: ClassVar[str] = "cifar100"

    script: Literal["run", "backup"] = "run"
    """Which of the authors' two scripts for RPSnet its settings at the paper's scale are from: the one that their shell
    files run, or a backup of an older one."""

    def _published(self, model: str, algorithm: str) -> dict[str, Any]:
        backup = self.script == "backup"
        return paper.preset(self.name, model, algorithm, self.setting, self.tasks, self.released, backup)

    def reads(self) -> tuple[str, ...]:
        """The underlying dataset."""
        return ("cifar100",)

    def check(self, wants: Wants) -> None:
        """Refuse files that are not there."""
        if self.data:
            check_splits(open_source("cifar100", data=self.data, skip_bad=self.skip_bad), "train", "test")

    def setup(self, wants: Wants) -> Setup:
        """Read the images, and split the validation data off the training data, never off the test data.

        If nothing is held out, the training data is also what stops training early; it is never scored.
        """
        source = open_source("cifar100", data=self.data, scale=self.scale, skip_bad=self.skip_bad)
        order, side = combinations.drawn_order(100, self.seed if self.released else ORDER_SEED), self.side or 32
        source = replace(source, dataset=stream.by_number(source.dataset, order))
        train, test = (
            prepare_split(
                source,
                "cfst",
                split,
                target=class_numbers,
                notes={},
                module=stream.__name__,
                kept=stream.mark(order),
                image_size=side,
            )
            for split in ("train", "test")
        )
        known, asked = stream.places_of([train, test])
        kept, held = cut([str(name) for name in train.ids], known.tolist(), share=VALIDATION)
        if self.released:
            kept = np.arange(len(known))
        learned = stream.some_of_each(Rows(kept, known[kept]), train.ids[kept], self.per_class, self.seed)
        rows = {
            "train": learned,
            "validation": learned if self.released else Rows(held, known[held]),
            "test": Rows(len(known) + np.arange(len(asked)), asked),
        }
        setup, _ = self._laid_out([(train, known), (test, asked)], rows, side)
        if not self.released:
            return setup
        return replace(setup, protocol=Protocol(tuple(e for e in setup.protocol.evaluations if e.split == "test")))
