"""Executing a plan: when each run starts, which are retried, and what is reported at the end."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from holdfast.experiments.config import Config
from holdfast.experiments.plan import Plan
from holdfast.experiments.runner import complete
from holdfast.experiments.store import Record, Store

TRIES = 3
"""How often a run is started or resumed before it counts as failed."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one try of a run.

    `failed` is an error within it, and `died` the end of its process: both are retried. `refused` is a mistake in
    the call or its data, and `broken` an error that retries would not fix: both are reported at once.
    """

    id: str
    status: Literal["done", "failed", "died", "refused", "broken", "stopped", "left"]
    reason: str = ""
    seconds: float = 0.0
    error: Exception | None = field(default=None, compare=False)
    """The exception with its traceback, if the run was tried in this process: for `told`, and not kept."""

    def __getstate__(self) -> dict[str, Any]:
        """All but the error, which may hold anything and may not survive pickling."""
        return {**vars(self), "error": None}


@dataclass
class PlanResult:
    """The outcome of a plan."""

    plan: Plan
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def failed(self) -> list[Outcome]:
        """The runs that are not done: they failed, or start from one that did."""
        return [outcome for outcome in self.outcomes.values() if outcome.status not in ("done", "stopped")]

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop before everything was done."""
        return len(self.outcomes) < len(self.plan.configs) or any(o.status == "stopped" for o in self.outcomes.values())


class Engine(ABC):
    """An engine, which executes runs."""

    places: int
    """How many runs it executes at once."""

    @abstractmethod
    def begin(self, config: Config) -> None:
        """Start a run; there is a free slot."""

    @abstractmethod
    def wait(self, seconds: float) -> Iterable[Outcome]:
        """The runs that ended since the last call; wait for the first one up to the given seconds."""

    @abstractmethod
    def stop(self) -> None:
        """Ask all active runs to save and stop."""

    @abstractmethod
    def runs(self) -> list[str]:
        """The ids of the active runs."""


def carry_out(
    plan: Plan,
    store: Store,
    engine: Engine,
    *,
    done: set[str] | None = None,
    completing: bool = True,
    tries: int = TRIES,
    stopping: Callable[[], bool] = lambda: False,
    told: Callable[[Config, Outcome, bool], None] = lambda config, outcome, again: None,
) -> PlanResult:
    """Execute every run of a plan that is not done in the store, and complete the measures that need other runs.

    A failed run only prevents those that start from its weights. Ranks are passed what is `done`, so that they
    agree on it, and only the first of them is `completing` records. `told` is called with the outcome of each try, and
    whether there will be another.
    """
    began = time.monotonic()
    result, done = PlanResult(plan), plan.done(store) if done is None else done
    result.outcomes = {name: Outcome(name, "done") for name in done}
    waiting = {run: config for run, config in plan.configs.items() if run not in done}
    children: dict[str, list[str]] = {}
    for run, config in waiting.items():
        if config.after in waiting:
            children.setdefault(config.after, []).append(run)
    ready = deque(run for run, config in waiting.items() if config.after not in waiting)
    incomplete = _Incomplete(plan if completing else Plan({}, {}, {}), store)
    for name in done:
        incomplete.settled(name)
    running, asked = 0, False
    while running or (ready and not asked):
        if not asked and stopping():
            asked = True
            engine.stop()
        while ready and running < engine.places and not asked:
            name = ready.popleft()
            result.tries[name] = result.tries.get(name, 0) + 1
            engine.begin(plan.configs[name])
            running += 1
        for outcome in engine.wait(0.2):
            running -= 1
            config = plan.configs[outcome.id]
            again = outcome.status in ("failed", "died") and result.tries[config.id] < tries and not asked
            told(config, outcome, again)
            if again:
                ready.append(config.id)
                continue
            result.outcomes[config.id] = replace(outcome, error=None)  # its traceback holds a model and data
            incomplete.settled(config.id)
            if outcome.status == "done":
                ready.extend(children.get(config.id, ()))
            elif outcome.status != "stopped":
                _leave(config, children, plan, result, told, incomplete)
    result.seconds = time.monotonic() - began
    return result


def _leave(
    config: Config,
    children: Mapping[str, list[str]],
    plan: Plan,
    result: PlanResult,
    told: Callable[[Config, Outcome, bool], None],
    incomplete: _Incomplete,
) -> None:
    """Mark the runs that start from a failed run's weights: they cannot start."""
    for name in children.get(config.id, ()):
        outcome = Outcome(name, "left", f"it starts from the weights of run {config.id}, which failed")
        result.outcomes[name] = outcome
        told(plan.configs[name], outcome, False)
        incomplete.settled(name)
        _leave(plan.configs[name], children, plan, result, told, incomplete)


class _Incomplete:
    """Completes a run's measures once it and all runs that it needs have ended, successfully or not."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self.plan, self.store = plan, store
        self.open = {run: {run, *needs.values()} for run, needs in plan.needs.items() if needs}
        self.users: dict[str, list[str]] = {}
        for name, needed in self.open.items():
            for other in needed:
                self.users.setdefault(other, []).append(name)

    def settled(self, run: str) -> None:
        for name in self.users.get(run, ()):
            self.open[name].discard(run)
            if not self.open[name]:
                finish(self.plan, name, self.store)


def finish(plan: Plan, run: str, store: Store) -> Record | None:
    """The record of a run with all measures for which the needed runs are done; None if the run is not done."""
    record = store.folder(run).record()
    return None if record is None else complete(record, plan.configs[run].benchmark, plan.needs[run], store)
