"""Runs that a program requested: planned, inspected, executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.experiments.carry import carry
from holdfast.experiments.local import Options
from holdfast.experiments.plan import Plan, graph
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Record, Store

if TYPE_CHECKING:
    from holdfast.reports.runs import Runs


class PlannedRuns:
    """The runs of an experiment, with those that their measures need. Print it to list them; `run` executes them."""

    def __init__(
        self,
        requests: Sequence[Request],
        store: Store,
        options: Options,
        needs: bool,
        gather: Callable[[Store, Sequence[str]], Runs],
    ) -> None:
        self.requests, self.store, self.options, self.needs = tuple(requests), store, options, needs
        self._gather, self._setups = gather, Setups()

    @cached_property
    def plan(self) -> Plan:
        """The plan, created on first access, since ids depend on the data."""
        return graph(self.requests, self.needs, self._setups)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the requested runs."""
        return self.plan.wanted

    @property
    def done(self) -> set[str]:
        """The ids of the runs that are done in the store."""
        return self.plan.done(self.store)

    def __len__(self) -> int:
        return len(self.plan.configs)

    def __repr__(self) -> str:
        done, labels = self.done, self.plan.labels
        lines = [f"{len(self)} run{'s' * (len(self) != 1)} in {self.store.path}, {len(done)} of them done"]
        lines += [f"  {run}  {'done' if run in done else 'to do'}  {labels[run]}" for run in self.plan.configs]
        return "\n".join(lines)

    def carry_out(self, jobs: int = 1, ranks: int = 1) -> list[Record]:
        """Execute the runs that are not done, and return the records of the requested ones."""
        return carry(self.plan, self.store, self.options, self._setups, needs=self.needs, jobs=jobs, ranks=ranks)

    def run(self, jobs: int = 1, ranks: int = 1) -> Runs:
        """Execute the runs that are not done, `jobs` at once or each on `ranks` processes; return the records."""
        self.carry_out(jobs, ranks)
        return self._gather(self.store, self.ids)
