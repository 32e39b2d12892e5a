"""Plans as files: an experiment described in TOML, or a Python file that creates requests."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from holdfast import registry
from holdfast.errors import UserError, nearest
from holdfast.experiments.objects import SLOTS, named
from holdfast.experiments.planned import PlannedRuns
from holdfast.experiments.request import Request, settings_for
from holdfast.settings import shown
from holdfast.usercode import load

LISTS = {
    "benchmarks": "benchmark",
    "models": "model",
    "algorithms": "algorithm",
    "orders": "order",
    "settings": "setting",
    "scales": "scale",
}
"""The keys that may be lists in a file, in the plural, and the request's field that each fills."""
ONE = ("precision", "predictions", "data", "skip_bad", "stages", "threads", "budget")
"""The keys that all runs of an experiment share."""


def shipped() -> dict[str, Path]:
    """The plans that come with the library, by name: one in the folder of each benchmark with a paper.

    >>> {path.name for path in shipped().values()}
    {'plan.toml'}
    """
    folders = {name: Path(*package.split(".")[1:]) for name, package in registry.families().items()}
    plans = {name: Path(__file__).parents[1] / folder / "plan.toml" for name, folder in folders.items()}
    return {name: path for name, path in plans.items() if path.exists()}


def read_plan(name: str, scale: str | None = None) -> list[Request]:
    """The requests of a plan file, or of a plan that comes with the library, by name; optionally at another scale."""
    path = Path(name)
    if not path.exists():
        path = shipped().get(name, path)
    if not path.is_file():
        raise UserError(f"unknown plan {name!r}: give a .toml or .py file, or a name; {nearest(name, shipped())}")
    if path.suffix == ".py":
        return changed(_from_python(path), scale=scale)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    return from_tables(found, str(path), scale)


@dataclass(frozen=True)
class PlanSearch:
    """Runs of an experiment that differ in some settings, whose values are chosen by a measure on validation data."""

    by: str
    names: tuple[str, ...]
    requests: tuple[Request, ...]

    def groups(self) -> list[list[tuple[dict[str, Any], list[Request]]]]:
        """The candidates for each method, order and so on: points with their runs, one for each seed."""
        found: dict[str, dict[str, tuple[dict[str, Any], list[Request]]]] = {}
        for request in self.requests:
            point = {name: request.settings[name] for name in self.names if name in request.settings}
            others = {name: value for name, value in request.settings.items() if name not in self.names}
            alike = replace(request, seed=0, settings=others).text()
            found.setdefault(alike, {}).setdefault(repr(point), (point, []))[1].append(request)
        return [list(points.values()) for points in found.values() if len(points) > 1]


def read_searches(name: str, scale: str | None = None, **change: Any) -> list[PlanSearch]:
    """The searches of a plan file: those of its experiments with `choose`; `change` is as for `changed`."""
    path = Path(name)
    path = path if path.exists() else shipped().get(name, path)
    if path.suffix == ".py":
        return []
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["experiment"]
    found = []
    for number, table in enumerate([tables] if isinstance(tables, Mapping) else tables, 1):
        whole = _at_scale(table, scale)
        if "choose" in whole:
            requests = changed(_experiment(whole, f"{path}, experiment {number}"), **change)
            found.append(PlanSearch(whole["choose"], tuple(whole.get("set", {})), tuple(requests)))
    return found


def from_tables(found: Mapping[str, Any], where: str, scale: str | None = None) -> list[Request]:
    """The requests of `[[experiment]]` tables: every combination of the values in each table's lists.

    At the paper's scale, an experiment's `paper` table replaces other entries: larger models and memories.

    >>> two = {"benchmarks": ["patterns"], "algorithms": ["er", "joint"], "set": {"er.capacity": [50, 100]}}
    >>> for request in from_tables({"experiment": [two]}, "here"):
    ...     print(request.text())
    holdfast run patterns --algorithm er --set er.capacity=50
    holdfast run patterns --algorithm joint
    holdfast run patterns --algorithm er --set er.capacity=100
    """
    if unknown := sorted(set(found) - {"experiment", "title"}):
        raise UserError(f"{where} has {unknown[0]!r}: {nearest(unknown[0], ['experiment', 'title'])}")
    tables = found.get("experiment", [])
    tables = [tables] if isinstance(tables, Mapping) else tables
    if not isinstance(tables, list) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise UserError(f"{where} describes no experiment: begin one with [[experiment]]")
    requests = [
        each
        for number, table in enumerate(tables, 1)
        for each in _experiment(_at_scale(table, scale), f"{where}, experiment {number}")
    ]
    return list({request.text(): request for request in requests}.values())


def _at_scale(table: Mapping[str, Any], scale: str | None) -> dict[str, Any]:
    """An experiment at a scale, or at its own if None is given."""
    found = {name: value for name, value in table.items() if name != "paper"}
    if scale is not None:
        found = {name: value for name, value in found.items() if name != "scales"} | {"scale": scale}
    scales = found.get("scales")
    if isinstance(scales, list) and "paper" in scales and "paper" in table:
        raise UserError(
            "an experiment with [experiment.paper] has one scale: write a separate one for the paper's scale"
        )
    if found.get("scale") == "paper" and isinstance(own := table.get("paper"), Mapping):
        plurals = {many for many, one in LISTS.items() if many in own or one in own}
        found = {n: v for n, v in found.items() if n not in plurals and n not in {LISTS[many] for many in plurals}}
        found |= {**own, "set": {**table.get("set", {}), **own.get("set", {})}}
    return found


def _experiment(table: Mapping[str, Any], where: str) -> Iterator[Request]:
    known = [*LISTS, *LISTS.values(), *ONE, "seeds", "seed", "set", "choose"]
    for name in table:
        if name not in known:
            raise UserError(f"{where}: {name!r} is not a key of an experiment: {nearest(name, known)}")
    for many, one in LISTS.items():
        if many in table and one in table:
            raise UserError(f"{where}: it has both {many!r} and {one!r}: give one of them")
    axes = {one: _values(table.get(many, table.get(one, getattr(Request, one)))) for many, one in LISTS.items()}
    for slot, (_, example) in SLOTS.items():
        for value in axes[slot]:
            if not isinstance(value, str) and not (slot == "model" and value is None):
                raise UserError(f"{where}: {slot} is {shown(value)}, and must be text: give a name, such as {example}")
    settings = table.get("set", {})
    if not isinstance(table.get("choose", ""), str):
        raise UserError(f"{where}: choose is {shown(table['choose'])}: give the name of a measure, such as cl_score")
    if not isinstance(settings, Mapping) or not all("." in name for name in settings):
        raise UserError(f'{where}: write settings as [experiment.set] and "owner.name" = value')
    points = [dict(zip(settings, point, strict=True)) for point in product(*map(_values, settings.values()))]
    shared = {name: table[name] for name in ONE if name in table}
    for point in points:
        own = settings_for(axes["algorithm"], point)
        for values in product(*axes.values()):
            asked = dict(zip(axes, values, strict=True))
            for seed in _seeds(table, where):
                yield Request(**asked, **shared, seed=seed, settings=own[asked["algorithm"]])


def _values(given: Any) -> Sequence[Any]:
    """A list of values; a single value becomes a list of one. To pass a list as a value, wrap it in another list."""
    if isinstance(given, list) and not given:
        raise UserError("a list of a plan is empty: give at least one value, or leave it out")
    return given if isinstance(given, list) else [given]


def _seeds(table: Mapping[str, Any], where: str) -> Sequence[int]:
    given = table.get("seeds", [table.get("seed", 0)])
    seeds = list(range(given)) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(seeds, list) or not seeds or not all(isinstance(seed, int) for seed in seeds):
        raise UserError(f"{where}: seeds is {given!r}: give the number of seeds, or a list of them")
    return seeds


def _from_python(path: Path) -> list[Request]:
    """The requests from a Python file's `requests()`, which returns what `holdfast.plan` returns, or a list of them."""
    module = load(path).module
    if not callable(make := vars(module).get("requests")):
        raise UserError(f"{path} has no function requests(): define one that returns holdfast.plan(...), or several")
    try:
        given = make()
        found = [given] if isinstance(given, PlannedRuns) else list(given)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: {type(error).__name__}: {error}") from error
    if not found or not all(isinstance(each, Request | PlannedRuns) for each in found):
        raise UserError(f"{path}: requests() does not return plans: return holdfast.plan(...), or a list of them")
    return [named(each) for plan in found for each in (plan.requests if isinstance(plan, PlannedRuns) else [plan])]


def changed(requests: Iterable[Request], seeds: int | None = None, **change: Any) -> list[Request]:
    """The same plan with another model, on other data, or with another number of seeds."""
    given = {name: value for name, value in change.items() if value is not None}
    found = [replace(request, **given) for request in requests]
    if seeds is not None:
        found = [replace(request, seed=seed) for request in found for seed in range(seeds)]
    return list({request.text(): request for request in found}.values())
