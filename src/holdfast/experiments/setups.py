"""Data set up once in a process for all runs that can share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.data.threads import threads
from holdfast.experiments import parts
from holdfast.experiments.config import Config, trained
from holdfast.experiments.front import through
from holdfast.experiments.size import refuse_unbuildable
from holdfast.types import Stream, Wants


class Setups:
    """Sets benchmarks up for the runs of a process.

    The data of the last run is kept, and for every run the facts about its data that its id covers, so that computing
    the ids of a thousand runs does not read the data a thousand times.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Benchmark, Wants], tuple[Stream, str, Mapping[str, int | str]]] = {}
        self._shared: tuple[Any, Setup] | None = None
        self._last: tuple[Any, Setup] | None = None

    def settle(self, config: Config) -> Config:
        """The configuration with everything that depends on its data: its id is final."""
        refuse_unbuildable(config.recipe)
        stream, data, further = self._outline(config)
        stages, every = config.request.stages, len(stream.stages)
        settled = replace(
            config,
            training=tuple(trained(stage.training) for stage in config.stream(stream).stages),
            data=data,
            weights=config.recipe.source(),
            further=further,
            stages=stages if stages is not None and stages < every else None,
        )
        return settled.frozen()

    def stream(self, config: Config) -> Stream:
        """The stream that a run learns."""
        return config.stream(self._outline(config)[0])

    def of(self, config: Config) -> Setup:
        """Everything that a run learns from and is scored on, as its model sees it."""
        setup = self._seen(config)
        return replace(setup, stream=config.stream(setup.stream))

    def _outline(self, config: Config) -> tuple[Stream, str, Mapping[str, int | str]]:
        key = config.benchmark, config.recipe.wants()
        if key not in self._known:
            setup = self._read(config)
            self._known[key] = setup.stream, setup.data.fingerprint(), parts.of_setup(setup)
        return self._known[key]

    def _read(self, config: Config) -> Setup:
        """The benchmark's own set-up, before the model's frozen front is applied."""
        wants = config.recipe.wants()
        key = config.source, wants
        if self._shared is None or self._shared[0] != key:
            self._shared = self._last = None  # two at once may not fit into memory
            self._shared = key, config.source.setup(wants)
        return config.benchmark.narrow(self._shared[1])

    def _seen(self, config: Config) -> Setup:
        key = config.benchmark, config.recipe, config.request.threads
        if self._last is None or self._last[0] != key:
            self._last = None
            setup = self._read(config)
            if (front := config.recipe.front()) is not None:
                with threads(config.request.threads):
                    setup = through(setup, front)
            self._last = key, setup
        return self._last[1]
