"""The overhead of a plan beyond its runs: time between trivial runs, utilisation of two cores, and two ranks."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from holdfast.data.table import Data, Table
from holdfast.engine import ranks as sending
from holdfast.engine.learner import Learner
from holdfast.experiments.local import Options, Workers
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import Engine, PlanResult, carry_out
from holdfast.experiments.store import Store
from holdfast.models.perceptron import Perceptron
from holdfast.tasks import Classify
from holdfast.types import Head, Inputs, Training

LIMITS_MS = {"local": 20.0, "ray": 60.0}
"""The maximum time that scheduling may add to each trivial run."""
LIMIT_RATIO = 0.56
"""The target for the wall time of sixteen runs on two cores, divided by the sum of their times: 0.5 is perfect."""
CORES = 2
TRIVIAL = {"benchmark.stages": 1, "train.epochs": 1}


@dataclass(frozen=True)
class EngineOverhead:
    """The milliseconds that one engine adds to each run, beyond the run's own time in its process."""

    engine: str
    runs: int
    run_ms: float
    extra_ms: float
    limit_ms: float


@dataclass(frozen=True)
class Filling:
    """The wall time of a plan, and the sum of the times of its runs."""

    runs: int
    places: int
    wall_s: float
    sum_s: float
    limit: float

    @property
    def ratio(self) -> float:
        """Their ratio; for two workers, half is perfect."""
        return self.wall_s / self.sum_s


@dataclass(frozen=True)
class Overlap:
    """Milliseconds per step of two ranks: averaging gradients after the backward pass, or during it."""

    megabytes: float
    buckets: int
    after_ms: float
    during_ms: float
    limit: float = 1.0

    @property
    def ratio(self) -> float:
        """The speed-up as a ratio: overlapping pays if it is below 1."""
        return self.during_ms / self.after_ms


def local(store: Store) -> AbstractContextManager[Engine]:
    """Two worker processes."""
    return Workers(store, Options(), CORES)


def on_ray(store: Store) -> AbstractContextManager[Engine]:
    """A local Ray cluster."""
    from holdfast.experiments.ray import Cluster

    return Cluster(store, Options())


ENGINES: dict[str, Callable[[Store], AbstractContextManager[Engine]]] = {"local": local, "ray": on_ray}


def overhead(engine: str, runs: int) -> EngineOverhead:
    """The overhead of an engine for each of `runs` trivial runs, once its processes are running."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with ENGINES[engine](store) as workers:
            _trivial(store, workers, 4, first=runs)  # triggers imports, and a process's other one-time work
            result = _trivial(store, workers, runs, first=0)
    total = sum(outcome.seconds for outcome in result.outcomes.values())
    extra = result.seconds * CORES - total
    return EngineOverhead(engine, runs, 1e3 * total / runs, 1e3 * extra / runs, LIMITS_MS[engine])


def filling(runs: int = 16, epochs: int = 30) -> Filling:
    """How well a plan of longer runs fills two cores, once its processes are running."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with local(store) as workers:
            _trivial(store, workers, 4, first=runs)
            settings = {"train.epochs": epochs}
            plan = graph([Request(scale="tiny", seed=seed, settings=settings) for seed in range(runs)])
            result = carry_out(plan, store, workers)
    total = sum(outcome.seconds for outcome in result.outcomes.values())
    return Filling(runs, CORES, result.seconds, total, LIMIT_RATIO)


def _trivial(store: Store, engine: Engine, runs: int, first: int) -> PlanResult:
    requests = [Request(scale="tiny", seed=seed, settings=TRIVIAL) for seed in range(first, first + runs)]
    result = carry_out(graph(requests), store, engine)
    assert not result.failed(), result.failed()
    return result


def overlap(repeats: int = 30) -> Overlap:
    """The benefit of sending gradients during the backward pass: two ranks over gloo, one thread each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    words = [sys.executable, "-m", "holdfast.bench.plans", str(repeats)]
    shared |= {"OMP_NUM_THREADS": "1"}
    other = subprocess.Popen(words, env=shared | {"RANK": "1"}, stdout=subprocess.DEVNULL)
    try:
        done = subprocess.run(words, env=shared | {"RANK": "0"}, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        other.kill()
        other.wait()
    return Overlap(**json.loads(done.stdout))


def _as_rank(repeats: int, width: int = 1024, rows: int = 64) -> Overlap:
    """The steps of one rank, alternating between one message after the backward pass and buckets during it."""
    ranks = sending.join()
    torch.manual_seed(0)
    model = Perceptron(width=width, depth=8).build(Inputs((3, 16, 16)), {"speed": Head("classify", 10)})
    images = torch.randint(0, 256, (2 * rows, 3, 16, 16), dtype=torch.uint8)
    data = Data([Table("speed", {"image": images}, torch.randint(0, 10, (2 * rows,)))])
    learner = Learner(model, data, {"speed": Classify("speed", "speed", 10, 0.1)}, ranks=ranks)
    size = sum(parameter.nbytes for parameter in learner.parameters.values())
    own = sending.BUCKET
    times: dict[int, list[float]] = {own: [], size: []}
    for _ in range(repeats + 1):  # the first round is a warm-up
        for bucket, taken in times.items():
            sending.BUCKET = bucket
            learner.restart(Training(), 1)
            learner.gradients(np.arange(2 * rows))  # after this, it is known which gradients exist
            ranks.wait()
            start = time.perf_counter()
            learner.gradients(np.arange(2 * rows))
            learner.step(0)
            ranks.wait()
            taken.append(1e3 * (time.perf_counter() - start))
    sending.leave()
    after, during = (statistics.median(times[bucket][1:]) for bucket in (size, own))
    return Overlap(size / 1e6, -(-size // own), after, during)


if __name__ == "__main__":
    print(json.dumps(asdict(_as_rank(int(sys.argv[1])))))
