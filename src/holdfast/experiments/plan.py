"""The plan: the runs that an experiment asks for, those that they need, and which must come before which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.benchmarks.base import Benchmark, Need
from holdfast.engine.loop import refuse
from holdfast.experiments.config import Checked, Preparation, Request, check, needed
from holdfast.experiments.store import Store
from holdfast.experiments.unread import Unread, made


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
    read: bool = True
    """Whether its data was looked at; where not, its id stands for it in this plan alone (see `unread`)."""


@dataclass(frozen=True)
class Plan:
    """Runs by id, in an order in which one process can carry them out."""

    nodes: Mapping[str, Node]
    wanted: tuple[str, ...] = ()
    """The ids of the runs that were asked for; the others are there because one of these needs them."""

    @property
    def threads(self) -> int:
        """The most threads that one of its runs computes with."""
        return max((node.request.threads for node in self.nodes.values()), default=1)

    def asked(self) -> list[Node]:
        """The runs that were asked for, in the order in which they were."""
        return [self.nodes[name] for name in self.wanted]

    def done(self, store: Store) -> set[str]:
        """The ids of the runs that the store has done; a record that cannot be read is told, before anything begins.

        A run whose data was not looked at is done where one was made with the same settings.
        """
        found = {name for name, node in self.nodes.items() if node.read and store.folder(name).record() is not None}
        return found if all(node.read for node in self.nodes.values()) else found | (made(store) & self.nodes.keys())


def graph(requests: Iterable[Request], needs: bool = True, preparation: Preparation | Unread | None = None) -> Plan:
    """The plan of some requests, with every run that they need, and what these need in turn.

    A mistake in any of them is told now, before the first run; with `Unread`, one that shows without data. Requests for
    the same run are one run, which has the needs of all of them.

    >>> plan = graph([Request("patterns", word, scale="tiny") for word in ("er", "replay", "joint")])
    >>> [node.label for node in plan.nodes.values()]
    ['replay, seed 0', 'joint, seed 0']
    """
    growing = _Growing(preparation or Preparation(), needs)
    asked = [growing.add(checked) for checked in [check(request) for request in requests]]
    return Plan({name: growing.nodes[name] for name in growing.order}, tuple(dict.fromkeys(asked)))


class _Growing:
    """A plan while it is made: what stands alone comes before the run that needs it, what begins with it after."""

    def __init__(self, preparation: Preparation | Unread, needs: bool) -> None:
        self.nodes: dict[str, Node] = {}
        self.order: list[str] = []
        self.others: dict[str, dict[str, str]] = {}
        self.seen: set[tuple[str, Benchmark]] = set()
        self.preparation, self.needs = preparation, needs

    def add(self, checked: Checked, purpose: str = "") -> str:
        """Add a run and what it needs, and give its id."""
        config, stream = self.preparation.named(checked)
        if (config.id, checked.benchmark) in self.seen:
            return config.id
        self.seen.add((config.id, checked.benchmark))
        # A setting that is no part of the id may ask for more needs, as `downstream` does.
        others, new = self.others.setdefault(config.id, {}), config.id not in self.nodes
        if new:
            if stream is not None:
                refuse(checked.algorithms, stream)
            label = f"{purpose}{checked.title}, seed {checked.request.seed}"
            after, read = config.start.partition("@")[0] or None, stream is not None
            self.nodes[config.id] = Node(config.id, checked.request, label, checked.benchmark, others, after, read)
        wanted = _wanted(checked) if self.needs else {}
        for name, need in wanted.items():
            if need.after is None:
                others[name] = self.add(check(needed(checked, need, config.id)), f"{name}: ")
        if new:
            self.order.append(config.id)
        for name, need in wanted.items():
            if need.after is not None:
                others[name] = self.add(check(needed(checked, need, config.id)), f"{name}: ")
        return config.id


def _wanted(checked: Checked) -> dict[str, Need]:
    """What the measures of a run need, of the stages that it learns."""
    stages, found = checked.request.stages, checked.benchmark.needs(checked.title)
    return {n: need for n, need in found.items() if stages is None or max(need.stage, need.after or 1) <= stages}
