"""Which records belong together: runs that differ only in the seed are a row; rows of one benchmark under the same
conditions are an experiment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast import registry
from holdfast.benchmarks.versions import OLDEST, shared
from holdfast.experiments.store import Record
from holdfast.reports.pooled import pooled
from holdfast.reports.runs import SETTINGS, on_world

BOUNDS = ("joint", "offline", "cumulative")
"""Transforms that give the learner all data at once: their results are a bound, and never the best of a table."""
SEEDS = ("seed", "sample")
"""Settings of a benchmark that only affect random draws: a row is the mean over them."""
OWN = ("patterns", "folder", "table")
"""The benchmarks that are not those of a paper."""
MOST = 3
"""The maximum number of settings that a title lists; if more differ, it names the run."""


@dataclass(frozen=True)
class Experiment:
    """The rows of one table: what they have in common, and the records of each row by title."""

    title: str
    benchmark: str
    world: bool
    """Whether the data is synthetic."""
    rows: Mapping[str, tuple[Record, ...]]
    notes: tuple[str, ...] = ()
    """The tasks that its pooled measures leave out."""

    @property
    def records(self) -> list[Record]:
        """All records of all rows."""
        return [record for row in self.rows.values() for record in row]

    @property
    def key(self) -> str:
        """The name in links."""
        return "-".join(re.findall("[a-z0-9]+", self.title.lower()))


def experiments(records: Sequence[Record]) -> list[Experiment]:
    """All experiments among the records, by benchmark, those with the most rows first."""
    known = {record.id: record.config for record in records}
    ordered = sorted(records, key=lambda record: str(record.config["benchmark"]["name"]))
    conditions, groups = _alike((_conditions(record), record) for record in ordered)
    if all("by" in each for each in conditions):  # there are no others to distinguish them from
        conditions = [{name: value for name, value in each.items() if name != "by"} for each in conditions]
    titles = distinct([_title(each) for each in conditions], conditions, list(range(len(conditions))))
    found = [
        Experiment(title, group[0].config["benchmark"]["name"], _on_world(group[0]), *pooled(rows_of(group, known)))
        for title, group in zip(titles, groups, strict=True)
    ]
    return sorted(found, key=lambda each: (each.benchmark, -len(each.rows)))


def of_papers(benchmark: str) -> bool:
    """Whether papers report results of a built-in benchmark, for which those on synthetic data could be mistaken.

    >>> of_papers("patterns")
    False
    """
    family = benchmark.partition(":")[0]
    return family not in OWN and any(name.partition(":")[0] == family for name in registry.BENCHMARKS)


def is_bound(record: Record) -> bool:
    """Whether a run saw all data at once: its result is a bound."""
    return any(name in BOUNDS for name in record.config["transforms"])


def baselines(found: Sequence[Experiment]) -> list[Experiment]:
    """The experiments all of whose runs are there because the measures of another one compare with them."""
    owner = {record.id: each.key for each in found for record in each.records}
    needed: dict[str, set[str]] = {}
    for each in found:
        for record in each.records:
            for other in record.others.values():
                if owner.get(other, each.key) != each.key:
                    needed.setdefault(owner[other], set()).add(other)
    return [each for each in found if {record.id for record in each.records} <= needed.get(each.key, set())]


def rows_of(
    records: Sequence[Record], known: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, tuple[Record, ...]]:
    """Records that differ only in the seed, by a title that distinguishes them from the others.

    `known` has the configurations of other runs by id: a run that another starts from counts by its configuration, not
    by its seed.
    """
    settings, groups = _alike((without_seed(record.config, known or {}), record) for record in _once(records))
    found = [sorted(group, key=lambda record: record.config["seed"]) for group in groups]
    titles = distinct([group[0].algorithm for group in found], settings, [group[0].id[:6] for group in found])
    return {title: tuple(group) for title, group in zip(titles, found, strict=True)}


def _once(records: Iterable[Record]) -> list[Record]:
    """The records without those that differ from an earlier one only in what they keep."""
    found: dict[str, Record] = {}
    for record in records:
        plain = {name: value for name, value in record.config.items() if name != "predictions"}
        found.setdefault(_text(plain), record)
    return list(found.values())


def without_seed(config: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A configuration without anything that depends on the seed."""
    benchmark = {name: value for name, value in config["benchmark"].items() if name not in SEEDS}
    plain = {**config, "benchmark": benchmark, "seed": None, "data": None, "threads": config.get("threads", 1)}
    plain.pop("predictions", None)  # these settings affect what is kept of a run, not its result
    run, at, stage = str(config.get("start", "")).partition("@")
    if run in known:
        plain["start"] = f"{_text(without_seed(known[run], known))}{at}{stage}"
    return plain


def distinct(titles: Sequence[str], settings: Sequence[Mapping[str, Any]], names: Sequence[object]) -> list[str]:
    """Distinct titles: equal ones are extended by the settings in which they differ, or by a name.

    >>> distinct(["er", "er", "lwf"], [{"capacity": 50}, {"capacity": 80}, {}], "abc")
    ['er (capacity=50)', 'er (capacity=80)', 'lwf']
    """
    found = list(titles)
    alike: dict[str, list[int]] = {}
    for place, title in enumerate(titles):
        alike.setdefault(title, []).append(place)
    for title, places in ((title, places) for title, places in alike.items() if len(places) > 1):
        flat = [dict(_flat(settings[place])) for place in places]
        names_of = {name for each in flat for name in each}
        differing = [name for name in sorted(names_of) if len({_text(each.get(name)) for each in flat}) > 1]
        chosen = [name for name in differing if not name.startswith("parts.")]
        if len({_text([each.get(name) for name in chosen]) for each in flat}) == len(flat):
            differing = chosen  # the versions of parts follow from these
        for place, each in zip(places, flat, strict=True):
            told = ", ".join(_setting(name, each.get(name)) for name in differing)
            short = 0 < len(differing) <= MOST and len(told) <= 60
            found[place] = f"{title} ({told if short else names[place]})"
    return found if len(set(found)) == len(found) else [f"{t} ({n})" for t, n in zip(titles, names, strict=True)]


def _alike(records: Iterable[tuple[dict[str, Any], Record]]) -> tuple[list[dict[str, Any]], list[list[Record]]]:
    """Groups of records with equal settings, with these settings.

    Data may depend on the seed. If runs of one seed used different data, they are grouped by data.
    """
    groups: dict[str, list[Record]] = {}
    for settings, record in records:
        groups.setdefault(_text(settings), []).append(record)
    apart: dict[tuple[str, str | None], list[Record]] = {}
    for text, group in groups.items():
        data: dict[str, set[str]] = {}
        for record in group:
            data.setdefault(_seeds(record), set()).add(_data(record))
        several = any(len(each) > 1 for each in data.values())
        for record in group:
            apart.setdefault((text, _data(record) if several else None), []).append(record)
    found = [{**json.loads(text), **({} if each is None else {"data": each})} for text, each in apart]
    return found, list(apart.values())


def _seeds(record: Record) -> str:
    benchmark = record.config["benchmark"]
    return _text([record.config["seed"], *(benchmark.get(name) for name in SEEDS)])


def _data(record: Record) -> str:
    return str(record.config.get("data"))[:8]


def _conditions(record: Record) -> dict[str, Any]:
    config = record.config
    benchmark = {name: value for name, value in config["benchmark"].items() if name not in SEEDS}
    plain = {"benchmark": benchmark, "model": config["model"], "precision": config.get("precision", "float32")}
    plain |= {name: config[name] for name in ("budget", "stages") if name in config}
    if "parts" not in config:  # the versions of its parts are unknown
        plain["by"] = OLDEST
    return plain | {"data": "the world's" if _on_world(record) else "given", "parts": shared(config)}


def _title(conditions: Mapping[str, Any]) -> str:
    benchmark = conditions["benchmark"]
    words = [benchmark["name"], *(benchmark.get(name) for name in SETTINGS), conditions["model"]["name"]]
    words += [f"{name}={value:g}" for name, value in conditions.get("budget", {}).items()]
    words.append(conditions.get("by", ""))
    return " · ".join(str(word) for word in words if word)


def _on_world(record: Record) -> bool:
    return on_world(record.environment)


def _flat(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """Settings by their dotted names; stages with the same training count once."""
    if isinstance(value, list) and value and all(each == value[0] for each in value):
        value = value[0]
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, each in enumerate(value):
            yield from _flat(each, f"{name}.{number}")
    else:
        yield name, value


def _setting(name: str, value: Any) -> str:
    """A setting as it appears in a title."""
    if name.startswith("budget."):
        return "no budget" if value is None else f"{_last(name)}={value:g}"
    if name == "stages":
        return "all stages" if value is None else f"{value} stage{'s' * (value != 1)}"
    return f"{_last(name)}={value}"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
