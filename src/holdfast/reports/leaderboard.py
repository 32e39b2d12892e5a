"""A page that ranks the rows of several stores and exported files, and says which of them are comparable.

Rows are comparable if they agree in everything but the algorithm and its settings: the benchmark with its settings and
version, the data, the model, the versions of all shared parts, the stages learned, the budget, the start, precision,
epochs, threads, and the number of trials with which settings were chosen. Each group of comparable rows has a letter;
tests and marks stay within a group.
"""

from __future__ import annotations

import json
import string
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.benchmarks.base import Measure
from holdfast.benchmarks.versions import OLDEST, shared
from holdfast.errors import UserError, printable
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Cell
from holdfast.reports.groups import SEEDS, baselines, experiments, is_bound, of_papers
from holdfast.reports.marks import mark_best, measured
from holdfast.reports.overview import WORLD
from holdfast.reports.render import asset, render
from holdfast.reports.runs import Runs, on_world
from holdfast.reports.sections import stands_alone
from holdfast.reports.sentences import FORGETTING, conclude
from holdfast.reports.tables import headline, shown_measures, units
from holdfast.version import __version__

MOST = 4
"""The maximum number of differences that are listed for a row."""
CONDITIONS = {"stages": "all", "budget": "none", "start": "none"}
"""Entries of a configuration that are there only if they are not as usual, and what they are then."""
Facts = Mapping[str, str]


@dataclass(frozen=True)
class Standing:
    """A row of the page: its cells, the letter of its group, and the rows with which it is comparable."""

    name: str
    letter: str
    cells: tuple[Cell, ...]
    """The headline measure and forgetting."""
    comparable: str
    """The rows with which it is comparable, and why not with the first group."""
    seeds: str
    facts: Facts
    sources: str
    command: str


@dataclass(frozen=True)
class Board:
    """A benchmark's rows, the first group first and in each the best mean first."""

    title: str
    key: str
    columns: tuple[str, ...]
    rows: tuple[Standing, ...]
    sentence: str
    notes: tuple[str, ...]
    warning: str


@dataclass(frozen=True)
class _Contender:
    name: str
    records: tuple[Record, ...]
    facts: Facts
    data: Mapping[str, str]


def write(runs: Runs, out: Path, title: str = "") -> Path:
    """Write the page into the folder `out`."""
    if out.is_file():
        raise UserError(f"{out} is a file, and a leaderboard is a folder: give another name with --out")
    found = boards(runs)
    if not found:
        raise UserError(f"{runs.path} has no finished run to rank")
    left = sum(run.record is None for run in runs)
    page = render(
        "leaderboard.html",
        title=title or "Holdfast: leaderboard",
        boards=found,
        left=left,
        css=asset("report.css"),
        js=asset("report.js"),
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        version=__version__,
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.html").write_text(page, encoding="utf-8")
    return out / "index.html"


def boards(runs: Runs) -> list[Board]:
    """A board for each benchmark, without the runs that others only compare with."""
    found = experiments(runs.records)
    others = {each.key for each in baselines(found)}
    sources = {run.id: run.path.name if run.path.is_file() else run.path.parent.name for run in runs}
    entries: dict[str, list[_Contender]] = {}
    for each in found:
        if each.key not in others and stands_alone(each.benchmark):
            own = [_Contender(name, group, facts(group), data_of(group)) for name, group in each.rows.items()]
            entries.setdefault(each.benchmark, []).extend(own)
    return [_board(benchmark, group, sources) for benchmark, group in entries.items()]


def _board(benchmark: str, entries: Sequence[_Contender], sources: Mapping[str, str]) -> Board:
    records = [record for each in entries for record in each.records]
    measures = _measures(records)
    groups: list[list[_Contender]] = []
    for each in entries:
        for group in groups:
            if not any(differences(each, other) for other in group):
                group.append(each)
                break
        else:
            groups.append([each])
    groups.sort(key=lambda group: (-len(group), -sum(len(each.records) for each in group)))
    cells, letters, ordered = list[tuple[Cell, ...]](), list[str](), list[_Contender]()
    for number, group in enumerate(groups):
        shown = {id(e): tuple(measured(e.records, name, m) for name, m in measures.items()) for e in group}
        sign = 1.0 if next(iter(measures.values())).higher is False else -1.0
        for each in sorted(group, key=lambda e: _place(shown[id(e)][0], sign)):
            cells.append((Cell(each.name), *shown[id(each)]))
            letters.append(letter(number))
            ordered.append(each)
    ranks = [None if is_bound(e.records[0]) else at for e, at in zip(ordered, letters, strict=True)]
    marked = mark_best(cells, [m.title for m in measures.values()], [m.higher for m in measures.values()], ranks)
    first = groups[0][0]
    rows = tuple(
        Standing(
            each.name,
            at,
            own[1:],
            _comparable(each, at, first, letters),
            _seeds(each.records),
            each.facts,
            ", ".join(dict.fromkeys(sources.get(record.id, "") for record in each.records)),
            str(each.records[0].environment.get("command", "")),
        )
        for each, at, own in zip(ordered, letters, marked.rows, strict=True)
    )
    world = any(on_world(r.environment) for r in records) and of_papers(benchmark)
    said = conclude({each.name: each.records for each in groups[0]}) if len(groups[0]) > 1 else None
    what = f"{units(list(measures.values()))}means over the seeds, ± their 95 % t-interval."
    notes = (f"{what[0].upper()}{what[1:]}", *marked.notes)
    notes += (f"Bold: {marked.marks}, within rows of one letter.",) if marked.marks else ()
    heads = tuple(measure.head for measure in measures.values())
    told = f"{f'Group {letters[0]}: ' if len(groups) > 1 else ''}{said.text}" if said else ""
    return Board(benchmark, f"board-{benchmark.replace(':', '-')}", heads, rows, told, notes, WORLD if world else "")


def _measures(records: Sequence[Record]) -> dict[str, Measure]:
    """The headline measure, and forgetting if the benchmark measures it."""
    shown, first = shown_measures(records), headline(records)
    names = [*([first[0]] if first else []), *(name for name in FORGETTING if name in shown)][:2]
    return {name: shown[name] for name in dict.fromkeys(names)} or {"": Measure("score")}


def facts(group: Sequence[Record]) -> Facts:
    """The properties that must be equal for two rows to be comparable, except the data: by name, as text."""
    found: dict[str, list[str]] = {}
    for record in group:
        config = record.config
        own = {
            **{name: value for name, value in config["benchmark"].items() if name not in (*SEEDS, "name")},
            "model": config["model"]["name"],
            **{f"model.{name}": value for name, value in config["model"].items() if name != "name"},
            **(shared(config) or {"engine": f"unknown ({OLDEST})"}),
            **{name: config.get(name, usual) for name, usual in CONDITIONS.items()},
            "precision": config.get("precision", "float32"),
            "epochs": ", ".join(sorted({str(each.get("epochs")) for each in config["training"]})),
            "threads": record.environment.get("threads", 1),
            "tuning": f"best of {record.tuning['trials']}" if "trials" in record.tuning else "none",
        }
        for name, value in own.items():
            text = _text(value)
            if text not in found.setdefault(name, []):
                found[name].append(text)
    return {name: " or ".join(sorted(values)) for name, values in found.items()}


def data_of(group: Sequence[Record]) -> dict[str, str]:
    """The data's fingerprint for each seed."""
    return {str(r.config["seed"]): printable(str(r.config.get("data"))[:8]) for r in group}


def differences(first: _Contender, second: _Contender) -> list[str]:
    """Why two rows are not comparable; empty if they are.

    Versions are compared for the parts that both have: a part that only one has follows from its model or settings.
    """
    a, b = first.facts, second.facts
    found = []
    parts = {name for each in (first, second) for record in each.records for name in shared(record.config)}
    for name in [name for name in {**a, **b} if name not in parts or (name in a and name in b)]:
        follows = name.startswith("model") and name != "model" and a.get("model") != b.get("model")
        if a.get(name) != b.get(name) and not follows:
            found.append(f"{name}: {a.get(name, 'not given')} instead of {b.get(name, 'not given')}")
    seeds = first.data.keys() & second.data.keys()
    apart = any(first.data[s] != second.data[s] for s in seeds)
    if apart or (not seeds and not set(first.data.values()) & set(second.data.values())):
        ours, theirs = (", ".join(sorted(set(each.data.values()))[:2]) for each in (first, second))
        found.insert(0, f"data: {ours} instead of {theirs}")
    return found


def letter(number: int) -> str:
    """A group's letter.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'AA')
    """
    letters = string.ascii_uppercase
    return letters[number] if number < len(letters) else letter(number // 26 - 1) + letters[number % 26]


def _place(cell: Cell, sign: float) -> tuple[bool, float]:
    return cell.number is None, 0.0 if cell.number is None else sign * cell.number


def _comparable(entry: _Contender, at: str, first: _Contender, letters: Sequence[str]) -> str:
    """The rows with which a row is comparable, and its differences from the first group."""
    others = letters.count(at) - 1
    count = f"{others} other row{'s' * (others != 1)}"
    if at == letters[0]:
        return f"with {f'the {count}' if others else 'no other row'}{f' of {at}' if len(letters) > others + 1 else ''}"
    own = f"with the {count} of {at}; not" if others else "not"
    return f"{own} with {letters[0]}: {'; '.join(_few(differences(entry, first)))}"


def _few(found: Sequence[str]) -> list[str]:
    return [*found[:MOST], f"{len(found) - MOST} more"] if len(found) > MOST + 1 else list(found)


def _seeds(group: Sequence[Record]) -> str:
    return str(len({record.config["seed"] for record in group}))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        plain = ", ".join(f"{name}={_text(each)}" for name, each in value.items())
    else:
        plain = value if isinstance(value, str) else json.dumps(value)
    return printable(plain if len(plain) <= 60 else f"{plain[:59]}…")
