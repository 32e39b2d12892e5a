"""Long use: whether memory, open files, threads or step time grow over a million steps, and how much disk is used.

Three loads, each of the smallest model on the smallest data: one stage of very many steps, a stream of many stages, and
very many runs in worker processes. Each is sampled at regular intervals. A slope is a least-squares fit through the
means of blocks of samples, the first quarter left out, with a 95 % t-interval.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit
from scipy.stats import linregress
from torch import Tensor

from holdfast.bench.plans import CORES, TRIVIAL
from holdfast.engine.watch import Watch
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.local import Options, Workers
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.runner import run
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.size import estimate
from holdfast.experiments.store import Store

SAMPLES, BLOCKS, WARM = 160, 12, 0.25
SMALLEST = {"benchmark.stages": 1, "model.width": 8, "train.batch_size": 8}
CHECKPOINTS = 7
"""An estimate of disk counts the weights seven times: twice with two moments, and once as the final weights."""


@dataclass(frozen=True)
class Growth:
    """How much one quantity grows over a whole load, with half the width of a 95 % interval."""

    load: str
    what: str
    level: float
    growth: float
    interval: float

    @property
    def flat(self) -> bool:
        """Whether the growth is compatible with zero, or is below one per cent."""
        return self.growth - self.interval <= 0 or self.growth < 0.01 * self.level


@dataclass(frozen=True)
class DiskUse:
    """The disk space used in the end, and the prediction: from the size of the model, and from the first score."""

    load: str
    what: str
    found: float
    predicted: float


@dataclass(frozen=True)
class Sample:
    """The state of this process and of those that it started, at one moment."""

    memory: float
    files: int
    threads: int

    @staticmethod
    def now() -> Sample:
        """The current state."""
        memory, files, threads = 0.0, 0, 0
        for process in _family():
            with suppress(OSError):  # it may have ended
                memory += int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
                files += len(list((process / "fd").iterdir()))
                threads += len(list((process / "task").iterdir()))
        return Sample(memory, files, threads)


def _family() -> list[Path]:
    """The folders in /proc of this process and of all its descendants."""
    parents = dict(_parents())
    found = {os.getpid()}
    while new := {child for child, parent in parents.items() if parent in found and child not in found}:
        found |= new
    return [Path(f"/proc/{process}") for process in found]


def _parents() -> Iterator[tuple[int, int]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            yield int(path.parent.name), int(path.read_text().rpartition(")")[2].split()[1])


def soak(steps: int, stages: int, runs: int, begin: Callable[[str], None]) -> list[Growth | DiskUse]:
    """Run all three loads, except those of size 0. `begin` is called with the name of each before it starts."""
    if not Path("/proc/self/statm").exists():
        raise UserError("`bench soak` reads /proc, which this machine does not have: run it on Linux")
    found: list[Growth | DiskUse] = []
    for name, count, work in (("steps", steps, _steps), ("stages", stages, _stages), ("runs", runs, _runs)):
        if count:
            begin(f"{count:,} {name}")
            with tempfile.TemporaryDirectory() as folder:
                found += work(f"{count:,} {name}", count, Store(folder))
    return found


class _Sampled(Watch):
    """Samples a run at every N steps, or, if N is 0, at the end of the training of each stage."""

    def __init__(self, every: int) -> None:
        self.every, self.in_stage, self.of_stage, self.total = every, 0, 0, 0
        self.began = time.process_time()
        self.samples, self.times = list[Sample](), list[float]()

    def stage(self, index: int, stages: int, stage: object, steps: int) -> None:
        """Start the clock."""
        self.in_stage, self.of_stage, self.began = 0, steps, time.process_time()

    def step(self, stage_step: int, loss: Tensor) -> None:
        """Take a sample if one is due."""
        self.in_stage, self.total = self.in_stage + 1, self.total + 1
        count = self.every or self.of_stage
        if self.in_stage % count == 0:
            self.times.append(1e3 * (time.process_time() - self.began) / count)
            self.samples.append(Sample.now())
            self.began = time.process_time()


def _steps(load: str, count: int, store: Store) -> list[Growth | DiskUse]:
    """One stage: eighty examples in batches of eight."""
    watch = _Sampled(max(count // SAMPLES, 1))
    disk = _one_run({"train.epochs": -(-count // 10)}, store, watch, load)
    return [*_growths(load, watch.samples, watch.times, "ms a step"), *disk]


def _stages(load: str, count: int, store: Store) -> list[Growth | DiskUse]:
    """One epoch of each stage, after which all stages are scored."""
    watch = _Sampled(0)
    disk = _one_run({"train.epochs": 1, "benchmark.stages": count}, store, watch, load)
    return [*_growths(load, watch.samples, watch.times, "ms a step"), *disk]


def _one_run(settings: dict[str, Any], store: Store, watch: Watch, load: str) -> list[DiskUse]:
    """Make a run, and return the disk space that it uses in the end."""
    setups = Setups()
    config = setups.settle(resolve(Request(scale="tiny", settings=SMALLEST | settings)))
    setup = setups.of(config)
    record = run(config, setup, store, watch=watch)
    folder = store.folder(record.id).path
    log, weights = folder / "scores.jsonl", folder / "model.safetensors"
    lines = log.read_bytes().splitlines(keepends=True)
    scores = (1 + len(setup.stream.stages)) * len(setup.protocol.evaluations)
    size = estimate(config, setup)
    assert size is not None, "the smallest model is ours"
    return [
        DiskUse(load, "scores", len(lines), scores),
        DiskUse(load, "score log, bytes", log.stat().st_size, scores * len(lines[0])),
        DiskUse(load, "final weights, bytes", weights.stat().st_size, size.disk / CHECKPOINTS),
    ]


def _runs(load: str, count: int, store: Store) -> list[Growth | DiskUse]:
    """Trivial runs in two workers, a batch of them for each sample."""
    batch = max(count // SAMPLES, CORES)
    samples, times, sizes = list[Sample](), list[float](), list[float]()
    with Workers(store, Options(), CORES) as workers:
        for first in range(0, count, batch):
            seeds = range(first, min(first + batch, count))
            plan = graph([Request(scale="tiny", seed=seed, settings=TRIVIAL) for seed in seeds])
            began = time.perf_counter()
            result = carry_out(plan, store, workers)
            assert not result.failed(), result.failed()
            times.append(1e3 * (time.perf_counter() - began) / len(seeds))
            samples.append(Sample.now())
            sizes += [sum(path.stat().st_size for path in (store.path / id).rglob("*")) for id in plan.configs]
    disk = DiskUse(load, "store, bytes", sum(sizes), len(sizes) * sizes[0])
    return [*_growths(load, samples, times, "ms a run"), disk]


def _growths(load: str, samples: Sequence[Sample], times: Sequence[float], timed: str) -> Iterator[Growth]:
    for what, values in (
        ("memory, MB", [each.memory for each in samples]),
        ("open files", [each.files for each in samples]),
        ("threads", [each.threads for each in samples]),
        (timed, times),
    ):
        yield Growth(load, what, float(np.median(values)), *growth(values))


def growth(values: Sequence[float]) -> tuple[float, float]:
    """The growth of equally spaced values from the first to the last, and half the width of its 95 % interval.

    >>> [round(each, 6) for each in growth([float(number) for number in range(48)])]
    [48.0, 0.0]
    """
    later = np.asarray(values[int(WARM * len(values)) :], float)
    blocks = np.array([block.mean() for block in np.array_split(later, min(BLOCKS, len(later)))])
    if np.ptp(blocks) == 0:
        return 0.0, 0.0
    fit = linregress(np.linspace(0, 1, len(blocks), endpoint=False), blocks)
    whole = 1 / (1 - WARM)  # from the fitted part to the whole load
    return float(fit.slope) * whole, float(stdtrit(len(blocks) - 2, 0.975) * fit.stderr) * whole
