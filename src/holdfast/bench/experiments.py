"""Where the time of a benchmark's runs goes, from an empty cache to the last record, and how fast training computes.

The runs are executed in this process, one after another, as by `holdfast run BENCHMARK -a A,B --jobs 1`. Each moment of
the wall time counts for one part: set-up within an evaluation counts as set-up.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any
from unittest import mock

import torch

from holdfast.benchmarks import synthetic
from holdfast.benchmarks.base import Setup
from holdfast.data.threads import threads
from holdfast.engine.loop import Loop
from holdfast.experiments.carry import carry
from holdfast.experiments.local import Options
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from holdfast.processes import working
from holdfast.world.whole import write_whole

SIDE, PEAK_S = 1024, 1.0
"""The side of the matrices whose product gives the machine's peak, and the seconds for which it is computed."""
PARTS = ("training", "writing data", "evaluation", "set-up", "saving", "rest")


@dataclass(frozen=True)
class Spent:
    """The wall time of some runs of a benchmark, by part, and the speed of its training steps."""

    runs: str
    seconds: dict[str, float]
    gflops: float
    peak: float
    """The speed of a product of matrices with the same number of threads, in billions of operations per second."""

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.seconds.values())


class _Clock:
    """Wall time by part; a moment counts for the innermost part that was entered."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside, self._since = ["rest"], time.perf_counter()

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        """Count the time of a block for a part."""
        self.stop()
        self._inside.append(part)
        try:
            yield
        finally:
            self.stop()
            self._inside.pop()

    def stop(self) -> None:
        """Count the time since the last call for the current part."""
        now = time.perf_counter()
        self.seconds[self._inside[-1]] += now - self._since
        self._since = now

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose time counts for a part."""

        @wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            with self.within(part):
                return function(*args, **named)

        return timed

    def around(self, part: str, context: Callable[..., AbstractContextManager[Any]]) -> Callable[..., Any]:
        """The same context, whose time counts for a part."""

        @contextmanager
        def timed(*args: Any, **named: Any) -> Iterator[Any]:
            with self.within(part), context(*args, **named) as found:
                yield found

        return timed

    def finished(self, of: Callable[..., Setup]) -> Callable[..., Setup]:
        """`Setups.of`: what a benchmark measures once, at the end, is evaluation."""

        def timed(*args: Any) -> Setup:
            setup = of(*args)
            return setup if setup.finish is None else replace(setup, finish=self.timed("evaluation", setup.finish))

        return timed


def experiments(benchmark: str, algorithms: Sequence[str], scale: str | None = None) -> Spent:
    """Execute runs of a benchmark with an empty cache, and account for their time."""
    clock = _Clock()
    timed = [
        (synthetic, "write_whole", clock.timed("writing data", write_whole)),
        (synthetic, "working", clock.around("writing data", working)),
        (Setups, "_read", clock.timed("set-up", Setups._read)),
        (Setups, "_seen", clock.timed("set-up", Setups._seen)),
        (Loop, "score", clock.timed("evaluation", Loop.score)),
        (Loop, "save", clock.timed("saving", Loop.save)),
        (Loop, "step", clock.timed("training", Loop.step)),
        (Setups, "of", clock.finished(Setups.of)),
    ]
    requests = [Request(benchmark, name, scale=scale) for name in algorithms]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"HOLDFAST_CACHE": f"{folder}/cache"}))
        for owner, name, replaced in timed:
            stack.enter_context(mock.patch.object(owner, name, replaced))
        setups = Setups()
        records = carry(graph(requests, False, setups), Store(f"{folder}/runs"), Options(), setups, needs=False)
        clock.stop()
    seconds = {part: clock.seconds[part] for part in PARTS}
    operations = sum(record.cost["flops"] for record in records)
    gflops = operations / seconds["training"] / 1e9 if seconds["training"] else 0.0
    return Spent(f"{benchmark} ({', '.join(algorithms)})", seconds, gflops, peak())


def peak() -> float:
    """Billions of operations per second of a product of two large matrices, with one thread."""
    draw = torch.Generator().manual_seed(0)
    one, other = (torch.randn(SIDE, SIDE, generator=draw) for _ in range(2))
    with threads(1):
        torch.mm(one, other)
        best, end = float("inf"), time.perf_counter() + PEAK_S
        while (began := time.perf_counter()) < end:
            torch.mm(one, other)
            best = min(best, time.perf_counter() - began)
    return 2 * SIDE**3 / best / 1e9
