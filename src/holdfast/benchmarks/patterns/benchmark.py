"""The benchmark `patterns`: its settings, and how its parts are assembled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.benchmarks.patterns import tasks
from holdfast.benchmarks.patterns.stream import stage_order
from holdfast.data.table import Data, Table, table
from holdfast.tasks import Classify
from holdfast.types import Between, EvaluationSet, Example, Ids, Inputs, Protocol, Stage, Stream, Training, Wants

PER_CLASS = {"tiny": 40, "small": 200, "large": 1000}
SPLITS: tuple[Literal["train", "validation", "test"], ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class Patterns(Benchmark):
    """Procedural image classes, a few new ones in each stage."""

    version: ClassVar[int] = 1
    default_model: ClassVar[str] = "perceptron"

    scale: Literal["tiny", "small", "large"] = "small"
    """How many images each class has: tiny 40, small 200, large 1000."""
    setting: Literal["class", "task"] = "class"
    """class: one head for all classes. task: a head for each stage, and the stage is known at test time."""
    order: str = "forward"
    """The order of the stages: forward, reverse, or their numbers with `>` between them, as in 2>1>3."""
    stages: Annotated[int, Between(1)] = 5
    """The number of stages."""
    classes: Annotated[int, Between(2)] = 2
    """How many new classes each stage has."""
    noise: Annotated[float, Between(0)] = 0.7
    """The standard deviation of the noise on each picture."""
    boundaries: bool = True
    """Whether the learner sees where one stage ends and the next begins."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        stage_order(self.order, self.stages)  # report a mistake before any data is drawn

    def first(self, stages: int) -> tuple[str, ...]:
        """The first stages in their order."""
        return tuple(map(tasks.stage_name, stage_order(self.order, self.stages)[:stages]))

    def setup(self, wants: Wants) -> Setup:
        """Draw the pictures, and arrange them in stages."""
        order, per_class = stage_order(self.order, self.stages), PER_CLASS[self.scale]
        kinds = [self._task(stage) for stage in range(self.stages)]
        tables: list[Table] = []
        found: dict[str, dict[int, Ids]] = {}
        for split in SPLITS:
            count = per_class if split != "validation" else per_class // 2
            drawn = tasks.examples(self.stages * self.classes, count, self.noise, split)
            size = self.classes * count
            found[split] = {}
            for stage in range(self.stages):
                rows = drawn[stage * size : (stage + 1) * size]
                start = sum(map(len, tables)) + (stage * size if self.setting == "class" else 0)
                found[split][stage] = np.arange(start, start + size, dtype=np.int64)
                if self.setting == "task":
                    tables.append(table(kinds[stage].name, [self._relabelled(row, stage) for row in rows]))
            if self.setting == "class":
                tables.append(table(kinds[0].name, drawn))
        training = Training(epochs=10, batch_size=32, learning_rate=1e-3)
        sets = {
            (split, stage): EvaluationSet(tasks.stage_name(stage), kinds[stage].name, split, found[split][stage])
            for split in ("validation", "test")
            for stage in order
        }
        stages = tuple(
            Stage(tasks.stage_name(stage), found["train"][stage], training, (sets["validation", stage],))
            for stage in order
        )
        return Setup(
            Data(tables),
            {kind.name: kind for kind in kinds},
            Stream(stages, self.boundaries),
            Protocol(tuple(sets.values()), initial=True),
            Inputs(image=(1, tasks.SIDE, tasks.SIDE)),
            chance={tasks.stage_name(stage): kind.chance for stage, kind in enumerate(kinds)},
        )

    def _task(self, stage: int) -> Classify:
        if self.setting == "class":
            return tasks.shared_task(self.stages * self.classes)
        return tasks.stage_task(stage, self.classes)

    def _relabelled(self, example: Example, stage: int) -> Example:
        assert isinstance(example.target, int)
        return Example(example.id, example.target - stage * self.classes, example.images)
