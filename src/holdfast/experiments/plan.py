"""The plan: the runs that an experiment asks for, those that they need, and which must come before which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.benchmarks.base import Benchmark
from holdfast.engine.loop import refuse
from holdfast.experiments.config import Checked, Preparation, Request, check, needed
from holdfast.experiments.store import Store


@dataclass(frozen=True)
class Node:
    """One run of a plan."""

    id: str
    request: Request
    label: str
    """What a person calls it: its row in a table and its seed, and for a run that is only needed, what for."""
    benchmark: Benchmark
    needs: Mapping[str, str]
    """The ids of the runs that its measures are taken against, by the benchmark's names. They may come later."""
    after: str | None = None
    """The id of the run whose weights it begins with, which must be done before."""


@dataclass(frozen=True)
class Plan:
    """Runs by id, in an order in which one process can carry them out."""

    nodes: Mapping[str, Node]
    wanted: tuple[str, ...] = ()
    """The ids of the runs that were asked for; the others are there because one of these needs them."""

    def asked(self) -> list[Node]:
        """The runs that were asked for, in the order in which they were."""
        return [self.nodes[name] for name in self.wanted]

    def done(self, store: Store) -> set[str]:
        """The ids of the runs that the store has done; a record that cannot be read is told, before anything begins."""
        return {name for name in self.nodes if store.folder(name).record() is not None}


def graph(requests: Iterable[Request], needs: bool = True, preparation: Preparation | None = None) -> Plan:
    """The plan of some requests, with every run that they need, and what these need in turn.

    A mistake in any of them is told now, before the first run. Requests for the same run are one run.

    >>> plan = graph([Request("patterns", word, scale="tiny") for word in ("er", "replay", "joint")])
    >>> [node.label for node in plan.nodes.values()]
    ['replay, seed 0', 'joint, seed 0']
    """
    growing = _Growing(preparation or Preparation(), needs)
    asked = [growing.add(checked) for checked in [check(request) for request in requests]]
    return Plan({name: growing.nodes[name] for name in growing.order}, tuple(dict.fromkeys(asked)))


class _Growing:
    """A plan while it is made: what stands alone comes before the run that needs it, what begins with it after."""

    def __init__(self, preparation: Preparation, needs: bool) -> None:
        self.nodes: dict[str, Node] = {}
        self.order: list[str] = []
        self.preparation, self.needs = preparation, needs

    def add(self, checked: Checked, purpose: str = "") -> str:
        """Add a run and what it needs, and give its id."""
        config, stream = self.preparation.named(checked)
        if config.id in self.nodes:
            return config.id
        refuse(checked.algorithms, stream)
        others: dict[str, str] = {}
        label = f"{purpose}{checked.title}, seed {checked.request.seed}"
        after = config.start.partition("@")[0] or None
        self.nodes[config.id] = Node(config.id, checked.request, label, checked.benchmark, others, after)
        wanted = checked.benchmark.needs(checked.title) if self.needs else {}
        for name, need in wanted.items():
            if need.after is None:
                others[name] = self.add(check(needed(checked, need, config.id)), f"{name}: ")
        self.order.append(config.id)
        for name, need in wanted.items():
            if need.after is not None:
                others[name] = self.add(check(needed(checked, need, config.id)), f"{name}: ")
        return config.id
