"""The parts of a report that any benchmark has: measures, score matrices, curves, cost, significance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast import metrics
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Block, Cell, Curves, Heatmap, Note, Point, Scatter, Series, TableBlock, mean_cell
from holdfast.reports.groups import Experiment, is_bound, of_papers
from holdfast.reports.marks import by_seed, mark_best, measured
from holdfast.reports.significance import LEAST, LEVEL, pairs
from holdfast.reports.tables import (
    axis_label,
    budget_note,
    headline,
    shown_measures,
    threads_note,
    training_note,
    tuning_note,
    units,
    why_missing,
)

Matrix = NDArray[np.float64]
WORLD = "On small synthetic data: this does not reproduce the paper's results."
SEEDS = 10
"""The maximum number of seeds of a row that have links."""
HEATMAPS = 8
"""The maximum number of rows with a heat map; each run's page has its own."""
LINES = 16
"""The maximum number of rows drawn as lines or points and tested in pairs: neither the eye nor tests distinguish
more."""
WIDEST = 30
"""The maximum number of columns of a heat map."""
COSTS = {
    "seconds": ("seconds of training", "seconds"),
    "passes": ("examples passed forward and backward", "passes"),
    "flops": ("floating-point operations of training", "operations"),
    "memory_bytes": ("bytes kept by the algorithm", "bytes of memory"),
}
FRONT = "The dashed line is the Pareto front of the means: no other algorithm is both cheaper and better."


def comparison(experiment: Experiment, names: Sequence[str] = ()) -> TableBlock:
    """A row for each algorithm, a column for each measure: the mean over seeds with its 95 % t-interval.

    With `names`, only these measures. See `marks.mark_best` for the rules.
    """
    known = shown_measures(experiment.records)
    shown = {name: known[name] for name in names or known}
    rows, missing = [], dict[tuple[str, str], list[str]]()
    for title, group in experiment.rows.items():
        rows.append((row_head(title, group), *(measured(group, name, measure) for name, measure in shown.items())))
        for name in (name for name in shown if any(r.summary.get(name) is None for r in group)):
            reason = why_missing(next(r for r in group if r.summary.get(name) is None), name, shown[name])
            missing.setdefault((title, reason), []).append(shown[name].title)
    ranks = [None if is_bound(group[0]) else "" for group in experiment.rows.values()]
    marked = mark_best(rows, [m.title for m in shown.values()], [m.higher for m in shown.values()], ranks)
    rows = marked.rows
    if guessed := {name: experiment.records[0].chance[name] for name in shown if name in experiment.records[0].chance}:
        cells = [mean_cell([guessed.get(name)], m.factor, m.decimals) for name, m in shown.items()]
        rows.append((Cell("guessing"), *cells))
    seeds = sorted({len(group) for group in experiment.rows.values()})
    several = f"the mean of {_spans(seeds)} seeds, ± its 95 % t-interval."
    counted, unit = several if seeds[-1] > 1 else "one seed, so without an interval.", units(list(shown.values()))
    notes = [unit + counted if unit else counted.capitalize()]
    notes += [f"{a}: no {', '.join(titles)}: {reason}." for (a, reason), titles in missing.items()]
    notes += experiment.notes
    for note in (training_note, tuning_note, threads_note, budget_note):
        notes += note(experiment.rows)
    if None in ranks:
        notes.append("Joint, offline and cumulative see all data: they are a bound, and are never marked.")
    warning = WORLD if experiment.world and of_papers(experiment.benchmark) else ""
    columns = ("algorithm", *(measure.head for measure in shown.values()))
    return TableBlock(experiment.title, columns, tuple(rows), (*notes, *marked.notes), warning, marked.marks)


def row_head(title: str, group: Sequence[Record]) -> Cell:
    """The first cell of a row, with links to the runs behind it."""
    if len(group) == 1:
        return Cell(title, run=group[0].id)
    linked = tuple((record.config["seed"], record.id) for record in group[:SEEDS])
    return Cell(title, seeds=linked, more=len(group) - len(linked))


def capital(measure: Measure) -> str:
    """A measure's title at the start of a line."""
    return measure.title[:1].upper() + measure.title[1:]


def learned_matrix(record: Record) -> tuple[list[str], Matrix]:
    """The score matrix without sets that were scored only once, at the end: few-shot tests belong to no stage."""
    names, _, matrix = score_matrix(record.scores)
    if matrix.shape[0] != matrix.shape[1] and len(matrix) > 1:
        kept = [column for column in range(len(names)) if np.isfinite(matrix[:, column]).sum() > 1]
        names, matrix = [names[column] for column in kept], matrix[:, kept]
    return names, matrix


def heatmap(records: Sequence[Record], title: str) -> Heatmap | None:
    """The mean score matrix of a row: a row for each stage, a column for each evaluation set."""
    found = [learned_matrix(record) for record in records]
    names = found[0][0]
    if not names or any(each[0] != names or each[1].shape != found[0][1].shape for each in found):
        return None
    matrix = np.mean([each[1] for each in found], axis=0)
    share = are_shares(matrix)
    numbers = matrix[:, :WIDEST] * (100 if share else 1)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None
    low, high = (0.0, 100.0) if share else (float(finite.min()), float(finite.max()))
    notes = (f"The first {WIDEST} of {len(names)} evaluation sets.",) if len(names) > WIDEST else ()
    return Heatmap(
        title,
        tuple(f"after {stage + 1}" for stage in range(len(matrix))),
        tuple(names[:WIDEST]),
        tuple(tuple(float(v) if np.isfinite(v) else None for v in row) for row in numbers),
        low,
        high,
        1 if len(names) <= 6 or not share else 0,
        "stage",
        notes,
    )


def over_stages(experiment: Experiment) -> list[Curves]:
    """Three curves over the stages: the score on what was learned, how much was forgotten, and transfer to the next."""
    found = {title: [learned_matrix(r)[1] for r in group] for title, group in drawn(experiment)}
    square = {t: m for t, m in found.items() if all(len(x) > 1 and x.shape == (len(x), len(x)) for x in m)}
    if not square:
        return []
    longest = max(len(each[0]) for each in square.values())
    share = all(are_shares(matrix) for each in square.values() for matrix in each)
    ticks, unit = tuple(str(stage + 1) for stage in range(longest)), ", %" if share else ""
    curves = []
    for title, label, of_stage in (
        ("Mean score on the tasks learned so far", "mean score", lambda m, i: m[i, : i + 1].mean()),
        ("Forgetting: the mean drop from the best score", "mean drop", _dropped),
        ("Transfer: the score on the next task before it is learned", "score", _ahead),
    ):
        series = []
        for name, matrices in square.items():
            values = np.array([[of_stage(m, stage) for stage in range(len(m))] for m in matrices])
            series.append(line(name, list(range(values.shape[1])), values * (100 if share else 1)))
        known = [[y for y in each.y if y is not None] for each in series]
        if max(map(len, known)) > 1 and any(y for each in known for y in each):  # a growing head scores zero there
            curves.append(Curves(title, "after stage", label + unit, tuple(series), ticks, left_out(experiment)))
    return curves


def line(name: str, x: Sequence[float], values: Matrix) -> Series:
    """A line through the means of several runs (rows), with their 95 % t-interval as a band; none for two runs.

    >>> line("er", [1, 2], np.array([[1.0, 4.0], [3.0, 4.0]])).y
    (2.0, 4.0)
    """
    means: list[float | None] = []
    widths: list[float | None] = []
    for column in values.T:
        if not len(column) or not np.isfinite(column).all():
            means.append(None)
            widths.append(None)
        else:
            means.append(float(column.mean()))
            widths.append(metrics.t_interval(column) if len(column) >= LEAST else None)
    return Series(name, tuple(x), tuple(means), tuple(widths) if len(values) >= LEAST else ())


def cost_table(experiment: Experiment) -> TableBlock:
    """The cost of each algorithm, as means over its seeds."""
    columns = {
        "steps": "steps",
        "seconds": "seconds",
        "examples_forward": "forward passes",
        "examples_backward": "backward passes",
        "flops": "operations",
        "memory_bytes": "memory, bytes",
        "parameters": "parameters",
        "trained": "trained",
        "added": "added",
    }
    known = {name for record in experiment.records for name in record.cost}
    columns = {name: head for name, head in columns.items() if name in known}
    rows = tuple(
        (
            Cell(title),
            *(
                _whole_cell([r.cost.get(name) for r in group], 1 if name == "seconds" else 0)
                for name in columns
            ),
        )
        for title, group in experiment.rows.items()
    )  # fmt: skip
    notes = ["Passes count examples. Memory is what the algorithm keeps in addition to the model."]
    if "flops" in columns:
        notes.append("Operations are floating-point operations of training, without evaluations.")
    return TableBlock("What it cost", ("algorithm", *columns.values()), rows, tuple(notes))


def cost_plots(experiment: Experiment) -> list[Scatter]:
    """Scatter plots of score against cost: passes, seconds, bytes."""
    if (found := headline(experiment.records)) is None:
        return []
    name, measure = found
    plots = []
    for key, (label, short) in COSTS.items():
        points, bounds = [], set[str]()
        for title, group in drawn(experiment):
            costs, scores = [_cost(r, key) for r in group], [r.summary.get(name) for r in group]
            if all(c is not None for c in costs) and all(s is not None for s in scores):
                x, cell = float(np.mean(np.array(costs, float))), measured(group, name, measure)
                y, width = cell.number or 0.0, cell.interval if len(group) >= LEAST else None
                told = f"{title}: {y:.{measure.decimals}f} for {x:,.0f} {short}"
                points.append(Point(title, x, y, told, y_width=width))
                bounds |= {title} if is_bound(group[0]) else set()
        if len({point.x for point in points}) > 1:
            positive = min(point.x for point in points) > 0
            spread = positive and max(p.x for p in points) / min(p.x for p in points) > 20
            front = pareto(points, measure.higher, bounds)
            notes = (FRONT, *left_out(experiment)) if front else left_out(experiment)
            title = f"{capital(measure)} against {short}"
            plots.append(Scatter(title, label, axis_label(measure), tuple(points), spread, notes, front))
    return plots


def pareto(points: Sequence[Point], higher: bool | None, without: Collection[str] = ()) -> tuple[int, ...]:
    """The points that no other beats in both cost (x) and score (y), from left to right.

    >>> pareto([Point("a", 1, 50), Point("b", 3, 60), Point("c", 2, 40)], higher=True)
    (0, 1)
    """
    if higher is None:
        return ()
    sign = 1.0 if higher else -1.0
    found: list[int] = []
    for place in sorted(range(len(points)), key=lambda n: (points[n].x, -sign * points[n].y)):
        own = points[place]
        if own.name not in without and (not found or sign * own.y > sign * points[found[-1]].y):
            found.append(place)
    return tuple(found) if len(found) > 1 else ()


def significance(experiment: Experiment) -> list[Block]:
    """For each measure, every pair of algorithms with enough seeds in common."""
    blocks: list[Block] = []
    for name, measure in shown_measures(experiment.records).items():
        values: dict[str, dict[int, float]] = {}
        for title, group in drawn(experiment):
            if numbers := by_seed(group, name):
                values[title] = {seed: value * measure.factor for seed, value in numbers.items()}
        tested = pairs(values)
        if not tested:
            continue
        rows = tuple(
            (
                Cell(f"{pair.first} − {pair.second}"),
                Cell(number=pair.difference, interval=pair.half_width, decimals=measure.decimals),
                _p_cell(pair.p_value),
                _p_cell(pair.corrected),
                Cell("yes" if pair.significant else "no", best=pair.significant),
                Cell(str(pair.seeds), number=float(pair.seeds), decimals=0),
                Cell(number=pair.detectable, decimals=measure.decimals),
            )
            for pair in sorted(
                tested, key=lambda pair: (np.isnan(pair.corrected), pair.corrected, -abs(pair.difference))
            )
        )
        columns = ("pair", "difference", "p", "p, corrected", f"below {100 * LEVEL:.0f} %", "seeds", "detectable")
        notes = (
            "Paired over the seeds, Student's t, two-sided; corrected by Holm for all pairs of this table.",
            "Detectable: the true difference that these seeds find at 5 %, uncorrected, with a probability of 80 %.",
            *left_out(experiment),
        )
        blocks.append(TableBlock(f"{capital(measure)}: is the difference more than chance?", columns, rows, notes))
    if not blocks and len(experiment.rows) > 1:
        blocks.append(
            Note(f"No pair of algorithms has {LEAST} seeds in common: --seeds {LEAST} makes them comparable.")
        )
    return blocks


def bar_series(title: str, group: Sequence[Record], names: Iterable[str], own: str = "") -> Series | None:
    """A row's measures as bars, in percent, with intervals over three seeds or more, or of the run itself.

    `own` is the ending of a measure's name if it is the half width of one run's own interval.
    """
    cells = [mean_cell([record.summary.get(name) for record in group], 100.0) for name in names]
    if all(cell.number is None for cell in cells):
        return None
    widths: list[float | None] = [cell.interval if len(group) >= LEAST else None for cell in cells]
    if len(group) == 1 and own:
        alone = [group[0].summary.get(name + own) for name in names]
        widths = [None if width is None else 100 * width for width in alone]
    return Series(title, (), tuple(cell.number for cell in cells), tuple(widths))


def drawn(experiment: Experiment) -> list[tuple[str, tuple[Record, ...]]]:
    """The rows that are drawn, with their records."""
    return list(experiment.rows.items())[:LINES]


def left_out(experiment: Experiment) -> tuple[str, ...]:
    """A note if an experiment has more rows than are drawn."""
    return (f"The first {LINES} of {len(experiment.rows)} rows.",) if len(experiment.rows) > LINES else ()


def _cost(record: Record, key: str) -> float | None:
    if key != "passes":
        return record.cost.get(key)
    both = [record.cost.get(f"examples_{way}") for way in ("forward", "backward")]
    return None if None in both else float(sum(b for b in both if b is not None))


def _whole_cell(values: Sequence[float | None], places: int) -> Cell:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return Cell()
    mean = sum(numbers) / len(numbers)
    return Cell(f"{mean:,.{places}f}", number=mean, decimals=places)


def _p_cell(value: float) -> Cell:
    if np.isnan(value):
        return Cell("–", hint=getattr(value, "reason", ""))
    return Cell("< 0.001" if value < 0.001 else f"{value:.3f}", number=value, decimals=3)


def _dropped(matrix: Matrix, stage: int) -> float:
    if not stage:
        return float("nan")
    return float((matrix[:stage, :stage].max(axis=0, initial=-np.inf, where=np.isfinite(matrix[:stage, :stage]))
                  - matrix[stage, :stage]).mean())  # fmt: skip


def _ahead(matrix: Matrix, stage: int) -> float:
    return float(matrix[stage, stage + 1]) if stage + 1 < len(matrix) else float("nan")


def are_shares(matrix: Matrix) -> bool:
    """Whether all scores are between 0 and 1."""
    finite = matrix[np.isfinite(matrix)]
    return bool(len(finite)) and float(finite.min()) >= 0 and float(finite.max()) <= 1


def _spans(seeds: Sequence[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
