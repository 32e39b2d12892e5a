"""What a plan costs beyond its runs: the time between trivial runs, and how well two cores are filled."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from holdfast.experiments.config import Request
from holdfast.experiments.local import Options, Workers
from holdfast.experiments.plan import graph
from holdfast.experiments.schedule import Engine, Result, carry_out
from holdfast.experiments.store import Store

LIMITS_MS = {"local": 20.0, "ray": 60.0}
"""How much scheduling may add to each trivial run."""
LIMIT_RATIO = 0.56
"""What the wall time of sixteen runs on two cores may be, over the sum of their times: 0.5 is perfect."""
CORES = 2
TRIVIAL = {"benchmark.stages": 1, "train.epochs": 1}


@dataclass(frozen=True)
class Overhead:
    """Milliseconds that one engine adds to each run, beyond what runs take in its processes."""

    engine: str
    runs: int
    run_ms: float
    extra_ms: float
    limit_ms: float


@dataclass(frozen=True)
class Filling:
    """The wall time of a plan over the sum of the times of its runs."""

    runs: int
    places: int
    wall_s: float
    sum_s: float
    limit: float

    @property
    def ratio(self) -> float:
        """Half is perfect, for two."""
        return self.wall_s / self.sum_s


def local(store: Store) -> AbstractContextManager[Engine]:
    """Two worker processes."""
    return Workers(store, Options(), CORES)


def on_ray(store: Store) -> AbstractContextManager[Engine]:
    """A local Ray cluster."""
    from holdfast.experiments.ray import Cluster

    return Cluster(store, Options())


ENGINES: dict[str, Callable[[Store], AbstractContextManager[Engine]]] = {"local": local, "ray": on_ray}


def overhead(engine: str, runs: int) -> Overhead:
    """What an engine adds to each of so many trivial runs, once its processes are there."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with ENGINES[engine](store) as workers:
            _trivial(store, workers, 4, first=runs)  # imports, and what a process does once
            result = _trivial(store, workers, runs, first=0)
    total = sum(outcome.seconds for outcome in result.outcomes.values())
    extra = result.seconds * CORES - total
    return Overhead(engine, runs, 1e3 * total / runs, 1e3 * extra / runs, LIMITS_MS[engine])


def filling(runs: int = 16, epochs: int = 30) -> Filling:
    """How well a plan of longer runs fills two cores, its processes there."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with local(store) as workers:
            _trivial(store, workers, 4, first=runs)
            settings = {"train.epochs": epochs}
            plan = graph([Request(scale="tiny", seed=seed, settings=settings) for seed in range(runs)])
            result = carry_out(plan, store, workers)
    total = sum(outcome.seconds for outcome in result.outcomes.values())
    return Filling(runs, CORES, result.seconds, total, LIMIT_RATIO)


def _trivial(store: Store, engine: Engine, runs: int, first: int) -> Result:
    requests = [Request(scale="tiny", seed=seed, settings=TRIVIAL) for seed in range(first, first + runs)]
    result = carry_out(graph(requests), store, engine)
    assert not result.failed(), result.failed()
    return result
