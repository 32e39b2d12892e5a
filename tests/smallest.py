"""The smallest runs that are still real: for tests that train."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.watch import Watch
from holdfast.experiments import runner
from holdfast.experiments.config import Config, resolve
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Record, Store
from holdfast.models.base import Model
from holdfast.types import Array, Score

SETTINGS: dict[str, Any] = {
    "benchmark.stages": 2,
    "model.width": 16,
    "train.epochs": 2,
    "train.batch_size": 32,
    "train.learning_rate": 3e-3,
}


class Scores:
    """A score log in memory."""

    def __init__(self) -> None:
        self.scores: list[Score] = []

    def add(self, scores: Sequence[tuple[Score, Array]]) -> None:
        self.scores += [score for score, _ in scores]

    def size(self) -> int:
        return len(self.scores)

    def cut(self, size: int) -> None:
        del self.scores[size:]

    def damage(self, size: int) -> str:
        return ""


class StopAt(Watch):
    """Asks a run to stop after a number of steps of this process, or of batches that an algorithm only observes."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, stage_step, loss):
        self.observing()

    def observing(self):
        self.left -= 1
        self.stopping = self.left <= 0


TRANSFORMER = {"model.patch": 6, "model.depth": 2, "model.heads": 2, "model.head_width": 8, "model.hidden": 16}
THREADED = Request(
    "patterns",
    model="vit-tiny",
    scale="tiny",
    settings={**TRANSFORMER, "benchmark.stages": 1, "train.epochs": 1, "train.batch_size": 64},
)
"""The smallest run whose weights tell one thread from two."""
FOR_NEEDS: dict[str, tuple[str, dict[str, Any]]] = {
    "blocks": ("vit-tiny", TRANSFORMER),
    "modular": ("modular-perceptron", {}),
}
"""The smallest model that serves an algorithm which a perceptron cannot serve."""
OWN: dict[str, dict[str, Any]] = {
    "rpsnet": {"rpsnet.modules": 3, "rpsnet.candidates": 2, "rpsnet.every": 1},
    "mntdp": {"model.parts": "stages"},
    "ranpac": {"ranpac.dimensions": 48},
    "slda": {"slda.shrinkage": 0.1},
    "icarl": {"icarl.capacity": 24},
    "wa": {"wa.capacity": 24},
    "coda-prompt": {"coda-prompt.pool": 8},
}


def request(algorithm: str = "finetune", model: str | None = None, **settings: Any) -> Request:
    chosen = {name: value for name, value in SETTINGS.items() if model is None or not name.startswith("model.")}
    for name in algorithm.split("+"):
        kind = registry.ALGORITHMS[name].load() if name in registry.ALGORITHMS else Algorithm
        for need in sorted(kind.needs & FOR_NEEDS.keys()):
            model = FOR_NEEDS[need][0]
            chosen |= FOR_NEEDS[need][1]
        chosen |= OWN.get(name, {})
    chosen |= {name.replace("__", "."): value for name, value in settings.items()}
    return Request("patterns", algorithm, model, scale="tiny", precision="float64", settings=chosen)


@dataclass(frozen=True)
class Ready:
    """A run that is ready to begin: its configuration and its data, and the algorithms that a test trains with."""

    config: Config
    setup: Setup
    recipe: Model | None = None
    """Another model, for `dataclasses.replace`."""

    def __post_init__(self) -> None:
        if self.recipe not in (None, self.config.recipe):
            object.__setattr__(self, "config", replace(self.config, recipe=self.recipe))
        object.__setattr__(self, "recipe", self.config.recipe)

    @cached_property
    def algorithms(self) -> tuple[Algorithm, ...]:
        return copy.deepcopy(self.config.algorithms)

    @property
    def benchmark(self) -> Benchmark:
        return self.config.benchmark


def prepare(asked: Request | Config, setups: Setups | None = None) -> Ready:
    setups = setups or Setups()
    config = setups.settle(resolve(asked) if isinstance(asked, Request) else asked)
    return Ready(config, setups.of(config))


def prepared(algorithm: str = "finetune", model: str | None = None, **settings: Any) -> Ready:
    return prepare(request(algorithm, model, **settings))


def make_learner(ready: Ready, *given: Any, **named: Any) -> Learner:
    return runner.make_learner(ready.config, ready.setup, *given, **named)


def run(ready: Ready, store: Store, **named: Any) -> Record:
    return runner.run(ready.config, ready.setup, store, **named)


def trained(
    ready: Ready,
    algorithms: Sequence[Algorithm] | None = None,
    checkpoints: Checkpoints | None = None,
    watch: Watch | None = None,
    log: Scores | None = None,
) -> tuple[Learner, Scores]:
    learner, log = make_learner(ready), log or Scores()
    chosen = ready.algorithms if algorithms is None else algorithms
    setup = ready.setup
    train(learner, setup.stream, chosen, setup.protocol, log=log, checkpoints=checkpoints, watch=watch)
    return learner, log
