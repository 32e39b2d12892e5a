"""The HTML report of a store: a self-contained index, and a small page for each run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import UserError
from holdfast.experiments.store import Record, RunFolder
from holdfast.reports import overview
from holdfast.reports.attached import attached
from holdfast.reports.beside import caution
from holdfast.reports.blocks import Block, Cell, Curves, Note, Series, TableBlock, mean_cell
from holdfast.reports.groups import Experiment, experiments, is_bound
from holdfast.reports.marks import measured
from holdfast.reports.render import asset, page_name, render
from holdfast.reports.runs import Run, Runs
from holdfast.reports.sections import section, stands_alone
from holdfast.reports.significance import leaders
from holdfast.reports.tables import headline, shown_measures
from holdfast.version import __version__

DRAWN = 8
"""The number of a benchmark's experiments, those with the most runs, that have figures; the others are tables."""
NAMED = 3
"""The most algorithms that are listed as the best of an experiment."""
LINES = 12
"""The most curves on a run's page."""


@dataclass(frozen=True)
class Written:
    """A written report: its first page, and the number of pages and bytes."""

    index: Path
    pages: int
    bytes: int


@dataclass(frozen=True)
class BlockGroup:
    """Blocks under one heading, collapsed unless `open`."""

    title: str
    blocks: Sequence[Block]
    open: bool = True


@dataclass(frozen=True)
class ExperimentSection:
    """An experiment on the page; one with a single row, among others, is collapsed."""

    title: str
    key: str
    groups: Sequence[BlockGroup]
    open: bool


@dataclass(frozen=True)
class BenchmarkSection:
    """A benchmark: its own section, then its experiments."""

    title: str
    key: str
    own: Sequence[Block]
    experiments: Sequence[ExperimentSection]
    left: str = ""


def write(runs: Runs, out: Path, title: str = "") -> Written:
    """Write the report of these runs into the folder `out`: index.html and runs/<id>.html."""
    if out.is_file():
        raise UserError(f"{out} is a file, and a report is a folder: give another name with --out")
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    shared = {"made": made, "version": __version__}
    pages = {"index.html": _index(runs, title, shared)}
    for run in runs:
        pages[f"runs/{page_name(run.id)}"] = _run_page(run, shared)
    pages |= {name: str(asset(name)) for name in ("report.css", "report.js")}
    (out / "runs").mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    return Written(out / "index.html", len(runs) + 1, sum(len(text.encode()) for text in pages.values()))


def _index(runs: Runs, title: str, shared: Mapping[str, str]) -> str:
    records = runs.records
    found = experiments(records)
    families: dict[str, list[Experiment]] = {}
    for each in found:
        families.setdefault(each.benchmark.partition(":")[0], []).append(each)
    store = runs.path.name or "store"
    return render(
        "index.html",
        title=title or f"Holdfast: {store}",
        subtitle=f"{len(runs)} runs" + (f" in {store}" if title else ""),
        store=store,
        tiles=_tiles(runs),
        glance=[_glance([each for each in found if stands_alone(each.benchmark)])] if found else [],
        parts=[_part(name, group) for name, group in families.items()],
        problems=_problems(runs),
        runs=[runs_table(runs)],
        css=asset("report.css"),
        js=asset("report.js"),
        **shared,
    )


def _part(family: str, found: Sequence[Experiment]) -> BenchmarkSection:
    own = section(family, [record for each in found for record in each.records])
    whole = [each for each in found if stands_alone(each.benchmark)]
    most = {each.title for each in sorted(whole, key=lambda each: -len(each.records))[:DRAWN]}
    drawn = [each for each in whole if each.title in most]
    alone = all(len(each.rows) == 1 for each in drawn)
    shown = [ExperimentSection(each.title, each.key, _groups(each), alone or len(each.rows) > 1) for each in drawn]
    left = len(whole) - len(shown)
    told = f"{left} more experiments, with fewer runs each, are not drawn: their runs are in the list of all runs."
    return BenchmarkSection(family, f"benchmark-{family}", own, shown, told if left else "")


def _groups(experiment: Experiment) -> list[BlockGroup]:
    heatmaps = [
        block
        for title, rows in list(experiment.rows.items())[: overview.HEATMAPS]
        if (block := overview.heatmap(rows, title)) is not None
    ]
    if all(len(block.rows) == 1 for block in heatmaps):
        heatmaps = []  # with one stage, the table above has everything
    if len(experiment.rows) > overview.HEATMAPS and heatmaps:
        told = (
            f"The first {overview.HEATMAPS} of {len(experiment.rows)} algorithms; the others are on their runs' pages."
        )
        heatmaps.append(Note(told))  # type: ignore[arg-type]
    groups = [
        BlockGroup(
            "Measures", [replace(overview.comparison(experiment), title="Measures"), *overview.over_stages(experiment)]
        ),
        BlockGroup("Scores after each stage, as heat maps", heatmaps, open=False),
        BlockGroup("Cost", [*overview.cost_plots(experiment), overview.cost_table(experiment)], open=False),
        BlockGroup("Significance", overview.significance(experiment), open=False),
    ]
    return [group for group in groups if group.blocks]


def _tiles(runs: Runs) -> list[tuple[str, str]]:
    statuses = [run.status for run in runs]
    seconds = sum(record.cost.get("seconds", 0.0) for record in runs.records)
    tiles = [("runs", str(len(runs))), ("done", str(statuses.count("done")))]
    tiles += [
        (name, str(statuses.count(name))) for name in ("running", "stopped", "failed", "broken") if name in statuses
    ]
    tiles.append(("benchmarks", str(len({run.benchmark for run in runs if run.benchmark}))))
    tiles.append(("algorithms", str(len({run.algorithm for run in runs if run.algorithm}))))
    return [*tiles, ("of training", duration(seconds))]


def duration(seconds: float) -> str:
    """Seconds as short text.

    >>> duration(12), duration(90), duration(5400), duration(200_000)
    ('12 s', '1.5 min', '1.5 h', '2.3 d')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _glance(found: Sequence[Experiment]) -> TableBlock:
    rows = []
    for each in found:
        told = _best_of(each)
        seeds = max(len(group) for group in each.rows.values())
        data = "generated" if each.benchmark == "patterns" else "synthetic" if each.world else "given"
        cells = [Cell(each.title), Cell(data), Cell(str(len(each.rows)), len(each.rows), decimals=0)]
        rows.append((*cells, Cell(str(seeds), seeds, decimals=0), Cell(told)))
    notes = ["Best: the highest or lowest mean, and those not distinguishable from it."]
    if any(e.world and e.benchmark != "patterns" for e in found):
        data = "Synthetic data is small and generated by Holdfast; results on it do not reproduce a paper."
        notes.insert(0, data)
    columns = ("experiment", "data", "algorithms", "seeds", "best")
    return TableBlock("What was run, and on what", columns, tuple(rows), tuple(notes))


def _best_of(experiment: Experiment) -> str:
    """The best algorithms of an experiment by its headline measure, or why none are listed."""
    if (found := headline(experiment.records)) is None:
        return ""
    name, measure = found
    cells = {
        title: cell
        for title, group in experiment.rows.items()
        if not is_bound(group[0]) and (cell := measured(group, name, measure)).number is not None
    }
    guessed = {title: cell.chance for title, cell in cells.items() if cell.chance is not None}
    chosen = leaders({title: cell.values for title, cell in cells.items()}, measure.higher, guessed)
    best = [title for title in cells if title in chosen.names]
    if not best:
        return f"none named: {chosen.why}"
    if len(best) == len(cells):
        return f"not distinguishable ({measure.title})"
    shown = ", ".join(best[:NAMED]) + (f" and {len(best) - NAMED} more" if len(best) > NAMED else "")
    return f"{shown} ({measure.title})"


def runs_table(runs: Sequence[Run]) -> TableBlock:
    """All runs, each with a link to its page."""
    columns = (
        "run",
        "status",
        "benchmark",
        "algorithm",
        "model",
        "scale",
        "setting",
        "order",
        "seed",
        "measure",
        "seconds",
    )
    rows = []
    for run in runs:
        named, record = run.config.get("benchmark", {}), run.record
        name, measure = (headline([record]) if record else None) or ("", None)
        value = record.summary.get(name) if record else None
        first = Cell(run.id, run=run.id, hint=run.problem)
        words = [run.status, run.benchmark, run.algorithm, run.model]
        words += [str(named.get(setting) or "") for setting in ("scale", "setting", "order")]
        seconds = record.cost.get("seconds") if record else None
        seed = Cell() if run.seed is None else Cell(str(run.seed), run.seed, decimals=0)
        scored = Cell(hint=measure.title if measure else "")
        if measure is not None and value is not None:
            scored = Cell(number=value * measure.factor, decimals=measure.decimals, hint=measure.title)
        rows.append((first, *map(Cell, words), seed, scored, Cell(number=seconds, decimals=1)))
    return TableBlock("Every run of the store", columns, tuple(rows), ("Point at a measure to see its name.",))


def _problems(runs: Runs) -> list[Block]:
    rows = [
        (Cell(run.id, run=run.id), Cell(run.status), Cell(run.benchmark), Cell(run.algorithm), Cell(run.problem))
        for run in runs
        if run.status != "done"
    ]
    columns = ("run", "status", "benchmark", "algorithm", "why")
    return [TableBlock("Runs without a record", columns, tuple(rows))] if rows else []


def _run_page(run: Run, shared: Mapping[str, str]) -> str:
    seed = "" if run.seed is None else f", seed {run.seed}"
    heading = f"{run.algorithm} on {run.benchmark}{seed}" if run.config else run.id
    return render(
        "run.html",
        title=f"{heading} · {run.id}",
        heading=heading,
        run=run,
        blocks=_run_blocks(run.record) if run.record else [],
        failure=RunFolder(run.path).failure() if run.status == "failed" else "",
        details=_details(run),
        attached=attached(run.path, caution(run.record) if run.record else ""),
        **shared,
    )


def _run_blocks(record: Record) -> list[Block]:
    shown = shown_measures([record])
    rows = []
    for name, measure in shown.items():
        cell = mean_cell([record.summary.get(name)], measure.factor, measure.decimals)
        reason = record.reasons.get(name, "")
        rows.append((Cell(measure.head), cell, Cell(reason)))
    columns = ("measure", "value", "remark") if record.reasons else ("measure", "value")
    blocks: list[Block] = [TableBlock("Measures", columns, tuple(row[: len(columns)] for row in rows))]
    if (heat := overview.heatmap([record], "Scores on test data after each stage")) is not None:
        blocks.append(heat)
    if (lines := _over_steps(record)) is not None:
        blocks.append(lines)
    if record.dropped:
        blocks.append(Note(f"{record.dropped} bad records of the data were left out: {'; '.join(record.problems)}"))
    return blocks


def _over_steps(record: Record) -> Curves | None:
    """Curves of each evaluation set over the steps, if scored within stages; otherwise the heat map has everything."""
    found: dict[str, dict[int, float]] = {}
    for score in record.scores:
        if score.split == "test" and "/" not in score.name:
            found.setdefault(score.name, {})[score.step] = score.score
    ends = {score.stage for score in record.scores}
    series = [
        Series(name, tuple(map(float, sorted(points))), tuple(points[step] for step in sorted(points)))
        for name, points in found.items()
        if len(points) > len(ends)
    ]
    if not series:
        return None
    notes = (f"The first {LINES} of {len(series)} evaluation sets.",) if len(series) > LINES else ()
    return Curves("Scores over the steps of training", "step", "score", tuple(series[:LINES]), notes=notes)


def _details(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """The configuration of the run, part by part."""
    config = run.config
    if not config:
        return []
    training = config["training"]
    alike = all(each == training[0] for each in training)
    parts = [("Benchmark", _entries(config["benchmark"])), ("Model", _entries(config["model"]))]
    parts += [("Algorithm", [("name", run.algorithm)] if not config["algorithms"] else [])]
    parts += [(f"Algorithm: {each['name']}", _entries(each)) for each in config["algorithms"]]
    for number, each in enumerate(training[:1] if alike else training, 1):
        stages = (
            f"Training ({len(training)} stages alike)" if alike and len(training) > 1 else f"Training, stage {number}"
        )
        parts.append((stages if len(training) > 1 else "Training", _entries(each)))
    rest = {name: value for name, value in config.items() if not isinstance(value, dict | list)}
    parts.append(("Run", _entries(rest)))
    if run.record:
        parts.append(("Cost", [(name.replace("_", " "), f"{value:,.10g}") for name, value in run.record.cost.items()]))
        where = {name: value for name, value in run.record.environment.items() if name != "command"}
        parts.append(("Where it ran", _entries(where)))
    return [part for part in parts if part[1]]


def _entries(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _text(value)) for name, value in values.items()]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else json.dumps(value)
