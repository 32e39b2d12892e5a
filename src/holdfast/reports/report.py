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
from holdfast.reports import anytime, charts, claims, overview
from holdfast.reports.attached import attached
from holdfast.reports.beside import caution
from holdfast.reports.blocks import Block, Cell, Curves, Note, Series, TableBlock, mean_cell
from holdfast.reports.groups import Experiment, baselines, experiments, of_papers
from holdfast.reports.render import asset, page_name, render
from holdfast.reports.runs import SETTINGS, Run, Runs, on_world
from holdfast.reports.sections import section, stands_alone
from holdfast.reports.sentences import Conclusion, conclude
from holdfast.reports.tables import headline, shown_measures, units
from holdfast.version import __version__

MANY = 1000
"""The number of runs above which the list of all runs is a page of its own."""
LEAD = 12
"""The maximum number of rows of an experiment's top table: the best means of the headline measure, if there are
more."""
DRAWN = 8
"""The number of a benchmark's experiments, those with the most runs, that have figures; the others are tables."""
LINES = 12
"""The maximum number of curves on a run's page."""


@dataclass(frozen=True)
class WrittenReport:
    """A written report: its first page, and the number of pages and bytes."""

    index: Path
    pages: int
    bytes: int


@dataclass(frozen=True)
class BlockGroup:
    """Blocks under one heading, collapsed unless `open`."""

    title: str
    blocks: Sequence[Block]
    open: bool = False


@dataclass(frozen=True)
class ExperimentSection:
    """An experiment on the page: its sentence, its picture and table, then what is collapsed."""

    title: str
    key: str
    where: str
    answer: Conclusion
    lead: Sequence[Block]
    groups: Sequence[BlockGroup]


@dataclass(frozen=True)
class BenchmarkSection:
    """A benchmark: its main experiment, its own section with the paper's tables, then its other experiments."""

    title: str
    key: str
    main: ExperimentSection | None
    own: Sequence[Block]
    others: Sequence[ExperimentSection]
    left: str = ""


def write(runs: Runs, out: Path, title: str = "") -> WrittenReport:
    """Write the report of these runs into the folder `out`: index.html and runs/<id>.html."""
    if out.is_file():
        raise UserError(f"{out} is a file, and a report is a folder: give another name with --out")
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    shared = {"made": made, "version": __version__}
    tested = claims.pages(runs.path, shared)
    pages = {"index.html": _index(runs, title, shared, [*tested]), **tested}
    for run in runs:
        pages[f"runs/{page_name(run.id)}"] = _run_page(run, shared)
    if len(runs) > MANY:
        heading = f"All {len(runs):,} runs"
        pages["all-runs.html"] = render("runs.html", title=heading, runs=[runs_table(runs)], **shared)
    pages |= {name: str(asset(name)) for name in ("report.css", "report.js")}
    (out / "runs").mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    made_pages = sum(name.endswith(".html") for name in pages)
    return WrittenReport(out / "index.html", made_pages, sum(len(text.encode()) for text in pages.values()))


def _index(runs: Runs, title: str, shared: Mapping[str, str], further: Sequence[str] = ()) -> str:
    found = experiments(runs.records)
    families: dict[str, list[Experiment]] = {}
    for each in found:
        families.setdefault(each.benchmark.partition(":")[0], []).append(each)
    store = runs.path.name or "store"
    parts = [_part(name, group) for name, group in families.items()]
    return render(
        "index.html",
        title=title or f"Holdfast: {store}",
        subtitle=_subtitle(runs, store if title else ""),
        store=store,
        claims=claims.NAME if claims.NAME in further else "",
        parts=parts,
        answers=[(part.title, part.key, part.main.answer.text) for part in parts if part.main],
        problems=_problems(runs),
        failures=_failures(runs),
        runs=[runs_table(runs)] if len(runs) <= MANY else [],
        count=len(runs),
        css=asset("report.css"),
        js=asset("report.js"),
        **shared,
    )


def _part(family: str, found: Sequence[Experiment]) -> BenchmarkSection:
    own = section(family, [record for each in found for record in each.records])
    needed = baselines(found)
    whole = [each for each in found if stands_alone(each.benchmark) and each not in needed]
    ranked = sorted(whole, key=lambda each: (len(each.rows) == 1, -len(each.records)))
    shown = [_section(each, found, needed) for each in ranked[:DRAWN]]
    left = len(whole) - len(shown)
    told = f"{left} more experiments, with fewer runs each, are not drawn: their runs are in the list of all runs."
    main, others = (shown[0], shown[1:]) if shown else (None, [])
    return BenchmarkSection(family, f"benchmark-{family}", main, own, others, told if left else "")


def _section(experiment: Experiment, found: Sequence[Experiment], needed: Sequence[Experiment]) -> ExperimentSection:
    main = charts.main_measures(experiment)
    table = _best_rows(replace(overview.comparison(experiment, main), title="Main measures"), experiment)
    drawn = charts.picture(experiment)
    compared = {other for record in experiment.records for other in record.others.values()}
    below = [each for each in needed if compared & {record.id for record in each.records}]
    more = len(main) < len(shown_measures(experiment.records)) or len(experiment.rows) > LEAD
    groups = _groups(experiment, drawn, more)
    groups += [BlockGroup("Baselines", [charts.baselines_table(below)])] if below else []
    lead = [table] if drawn is None else [drawn, table]
    answer = conclude(experiment.rows)
    return ExperimentSection(experiment.title, experiment.key, _where(experiment), answer, lead, groups)


def _best_rows(table: TableBlock, experiment: Experiment) -> TableBlock:
    """A table with its first rows, by the mean of its first measure; the note says so."""
    if len(table.rows) <= LEAD:
        return table
    found = headline(experiment.records)
    sign = -1.0 if found and found[1].higher is False else 1.0
    known = sorted(
        (row for row in table.rows if row[1].number is not None), key=lambda row: -sign * (row[1].number or 0.0)
    )
    title = found[1].title if found else ""
    note = f"The {LEAD} best means of {title} among {len(table.rows)} rows; all of them are in All measures."
    return replace(table, rows=tuple(known[:LEAD]), notes=(note, *table.notes))


def _where(experiment: Experiment) -> str:
    """The conditions of an experiment, and how much was run."""
    seeds, rows = {len(group) for group in experiment.rows.values()}, len(experiment.rows)
    names = len({group[0].algorithm for group in experiment.rows.values()})
    what = _count(names, "algorithm") if names == rows else f"{rows} settings of {_count(names, 'algorithm')}"
    data = ["synthetic data"] if experiment.world and experiment.benchmark != "patterns" else []
    spans = f"{min(seeds)} to {max(seeds)} seeds" if len(seeds) > 1 else _count(max(seeds), "seed")
    plain = ":" not in experiment.benchmark  # the heading already names it
    title = experiment.title.removeprefix(f"{experiment.benchmark} · ") if plain else experiment.title
    return " · ".join([title, *data, what, spans])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _groups(experiment: Experiment, drawn: Block | None, more: bool) -> list[BlockGroup]:
    heatmaps = [
        block
        for title, rows in list(experiment.rows.items())[: overview.HEATMAPS]
        if (block := overview.heatmap(rows, title)) is not None
    ]
    if all(len(block.rows) == 1 for block in heatmaps):
        heatmaps = []  # with one stage, the tables have everything
    notes = []
    if len(experiment.rows) > overview.HEATMAPS and heatmaps:
        told = f"The first {overview.HEATMAPS} of {len(experiment.rows)} rows; the others are on their runs' pages."
        notes.append(Note(told))
    stages = [each for each in overview.over_stages(experiment) if each != drawn]
    everything = [replace(overview.comparison(experiment), title="All measures")] if more else []
    spread = [each for each in charts.distributions(experiment) if each != drawn]
    groups = [
        BlockGroup("All measures", everything),
        BlockGroup("Forgetting and transfer over the stages", stages),
        BlockGroup("Scores after each stage", [*heatmaps, *notes]),
        BlockGroup(
            "Cost against score",
            [*overview.cost_plots(experiment), *anytime.figures(experiment), overview.cost_table(experiment)],
        ),
        BlockGroup("Spread over the seeds", spread),
        BlockGroup("Significance of differences", overview.significance(experiment)),
    ]
    return [group for group in groups if group.blocks]


def _subtitle(runs: Runs, store: str) -> str:
    """The contents of the store, in one line."""
    statuses = [run.status for run in runs]
    states = [f"{statuses.count(name)} {name}" for name in dict.fromkeys(sorted(statuses)) if name != "done"]
    seconds = sum(record.cost.get("seconds", 0.0) for record in runs.records)
    told = [f"{len(runs)} run{'s' * (len(runs) != 1)}{f' in {store}' * bool(store)}", *states]
    return " · ".join([*told, *([f"{duration(seconds)} of training"] if runs.records else [])])


def _failures(runs: Runs) -> list[Run]:
    """Runs that failed or are broken: the first few are shown in a prominent place."""
    return [run for run in runs if run.status in ("failed", "broken")]


def duration(seconds: float) -> str:
    """Seconds as short text.

    >>> duration(12), duration(90), duration(5400), duration(200_000)
    ('12 s', '1.5 min', '1.5 h', '2.3 d')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def runs_table(runs: Sequence[Run]) -> TableBlock:
    """All runs, each with a link to its page."""
    columns = ("run", "algorithm", "seed", "measure", "status", "benchmark", "model", *SETTINGS, "seconds")
    rows = []
    for run in runs:
        named, record = run.config.get("benchmark", {}), run.record
        name, measure = (headline([record]) if record else None) or ("", None)
        value = record.summary.get(name) if record else None
        first = Cell(run.id, run=run.id, hint=run.problem)
        words = [run.status, run.benchmark, run.model, *(str(named.get(setting) or "") for setting in SETTINGS)]
        seconds = record.cost.get("seconds") if record else None
        seed = Cell() if run.seed is None else Cell(str(run.seed), run.seed, decimals=0)
        scored = Cell(hint=measure.title if measure else "")
        if measure is not None and value is not None:
            scored = Cell(number=value * measure.factor, decimals=measure.decimals, hint=measure.title)
        rows.append((first, Cell(run.algorithm), seed, scored, *map(Cell, words), Cell(number=seconds, decimals=1)))
    return TableBlock("Every run of the store", columns, tuple(rows), ("Point at a measure to see its name.",))


def _problems(runs: Runs) -> list[Block]:
    rows = [
        (Cell(run.id, run=run.id), Cell(run.problem), Cell(run.status), Cell(run.benchmark), Cell(run.algorithm))
        for run in runs
        if run.status != "done"
    ]
    columns = ("run", "why", "status", "benchmark", "algorithm")
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
    warned = on_world(record.environment) and of_papers(record.config["benchmark"]["name"])
    unit = units(list(shown.values())).removesuffix("; ")
    notes, warning = (f"{unit}.",) if unit else (), overview.WORLD if warned else ""
    blocks: list[Block] = [TableBlock("Measures", columns, tuple(row[: len(columns)] for row in rows), notes, warning)]
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
