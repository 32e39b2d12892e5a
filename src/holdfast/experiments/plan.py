"""The plan: the runs that an experiment asks for, those that they need, and the order between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from holdfast.benchmarks.base import Benchmark, Need
from holdfast.engine.loop import refuse
from holdfast.errors import UserError
from holdfast.experiments.config import Config, needed, resolve
from holdfast.experiments.made import made
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from holdfast.models.base import Model
from holdfast.models.weights import from_cache_alone
from holdfast.settings import fields
from holdfast.types import Wants


@dataclass(frozen=True)
class Plan:
    """Runs by id, in an order in which one process can execute them."""

    configs: Mapping[str, Config]
    labels: Mapping[str, str]
    """A readable name for each run: its row in a table and its seed, and for a run that is only needed, its purpose."""
    needs: Mapping[str, Mapping[str, str]]
    """The ids of the runs that a run's measures compare with, by the benchmark's names. They may come later."""
    wanted: tuple[str, ...] = ()
    """The ids of the requested runs; the others are included because one of these needs them."""
    requests: tuple[Request, ...] = ()
    """The requests for the wanted runs."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The id of the run for each request, by the request's text."""

    @property
    def threads(self) -> int:
        """The largest number of threads that one of its runs uses."""
        return max((config.request.threads for config in self.configs.values()), default=1)

    @property
    def settled(self) -> bool:
        """Whether the data of all runs was read, so that all ids are final."""
        return all(config.settled for config in self.configs.values())

    def run(self, request: Request) -> str:
        """The id of the run for one of the plan's requests."""
        return self.runs[request.text()]

    def asked(self) -> list[Config]:
        """The requested runs, in the order of the requests."""
        return [self.configs[run] for run in self.wanted]

    def done(self, store: Store) -> set[str]:
        """The ids of the runs that are done in the store; raises an error for a record that cannot be read.

        A run whose data was not read counts as done if the store has one with the same settings.
        """
        found = {run for run, config in self.configs.items() if config.settled and store.folder(run).record()}
        return found if self.settled else found | (made(store) & self.configs.keys())


def graph(requests: Iterable[Request], needs: bool = True, setups: Setups | None = None, read: bool = True) -> Plan:
    """The plan of some requests, with every run that they need, directly or indirectly.

    Mistakes in any of them raise an error now, before the first run. Requests for the same run are one run, which has
    the needs of all of them. Without `read`, no file of data or weights is read: the ids then only distinguish the runs
    of this plan, except for benchmarks that draw their data in memory.

    >>> plan = graph([Request("patterns", word, scale="tiny") for word in ("er", "replay", "joint")])
    >>> list(plan.labels.values())
    ['replay, seed 0', 'joint, seed 0']
    """
    drafts, setups, requests = _Drafts(needs), setups or Setups(), tuple(requests)
    resolved = [(resolve(request), request.text()) for request in requests]
    asked = {text: drafts.add(config) for config, text in resolved}
    final: dict[str, str] = {}
    configs: dict[str, Config] = {}
    for draft in drafts.order:
        config = _started(drafts.configs[draft], final)
        in_memory = "data" not in fields(type(config.benchmark)) and (config.after is None or config.after in configs)
        if read or (in_memory and (config.after is None or configs[config.after].settled)):
            config = setups.settle(replace(config, source=config.benchmark.joined(drafts.alike(config))))
            refuse(config.algorithms, setups.stream(config), config.budget)
        final[draft] = config.id
        configs.setdefault(config.id, config)
    merged: dict[str, dict[str, str]] = {run: {} for run in configs}
    for draft, others in drafts.needs.items():
        merged[final[draft]] |= {name: final[other] for name, other in others.items()}
    labels = {run: drafts.labels[draft] for draft, run in reversed(final.items())}
    runs = {text: final[draft] for text, draft in asked.items()}
    labels = {run: labels[run] for run in configs}
    return Plan(configs, labels, merged, tuple(dict.fromkeys(runs.values())), requests, runs)


def refused(plan: Plan) -> dict[str, str]:
    """The runs that cannot be made, each with the reason, for a plan that was made without reading data.

    Checked are settings, the names of files, the first example of each split, and whether weights exist.
    """
    found: dict[str, str] = {}
    wants: dict[str, Wants | UserError] = {}  # once for each model: it may have to ask the hub
    for run, config in plan.configs.items():
        if not config.settled:
            if (model := repr(config.recipe)) not in wants:
                wants[model] = _wants(config.recipe)
            own = wants[model]
            try:
                if isinstance(own, UserError):
                    raise own
                config.benchmark.check(own)
            except UserError as error:
                found[run] = str(error)
    return found


def _wants(recipe: Model) -> Wants | UserError:
    try:
        with from_cache_alone():
            return recipe.wants()
    except UserError as error:
        return error


def _started(config: Config, final: Mapping[str, str]) -> Config:
    """The configuration with the final id of the run that it starts from."""
    run, at, stage = config.request.start.partition("@")
    return replace(config, request=replace(config.request, start=f"{final.get(run, run)}{at}{stage}"))


class _Drafts:
    """A plan whose data was not read: independent runs come before the run that needs them, and runs that start from it
    come after it.
    """

    def __init__(self, with_needs: bool) -> None:
        self.with_needs = with_needs
        self.configs: dict[str, Config] = {}
        self.labels: dict[str, str] = {}
        self.needs: dict[str, dict[str, str]] = {}
        self.order: list[str] = []
        self.seen: set[tuple[str, Benchmark]] = set()

    def add(self, config: Config, purpose: str = "") -> str:
        """Add a run and the runs that it needs, and return the id of its draft."""
        run = config.id
        if (run, config.benchmark) in self.seen:
            return run
        self.seen.add((run, config.benchmark))
        # A setting that is not part of the id may add needs, as `downstream` does.
        others, new = self.needs.setdefault(run, {}), run not in self.configs
        if new:
            self.configs[run], self.labels[run] = config, f"{purpose}{config.title}, seed {config.seed}"
        wanted = _wanted(config) if self.with_needs else {}
        for name, need in wanted.items():
            if need.after is None:
                others[name] = self.add(resolve(needed(config, need, run)), f"{name}: ")
        if new:
            self.order.append(run)
        for name, need in wanted.items():
            if need.after is not None:
                others[name] = self.add(resolve(needed(config, need, run)), f"{name}: ")
        return run

    def alike(self, config: Config) -> list[Benchmark]:
        """The benchmarks of the plan that could share a set-up with this run's, including its own."""
        kind, wants = type(config.benchmark), config.recipe.wants()
        others = (other for other in self.configs.values() if type(other.benchmark) is kind)
        return list(dict.fromkeys(other.benchmark for other in others if other.recipe.wants() == wants))


def _wanted(config: Config) -> dict[str, Need]:
    """The runs that the measures of a run need, for the stages that it learns."""
    stages, found = config.request.stages, config.benchmark.needs(config.title)
    return {n: need for n, need in found.items() if stages is None or max(need.stage, need.after or 1) <= stages}
