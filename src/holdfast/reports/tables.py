"""Tables from records, as plain data: a terminal, a page or a file draws them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast import metrics
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.experiments.store import Record


@dataclass(frozen=True)
class Grid:
    """A table as text: a title, column heads, rows, and what a reader must know about them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def measures(benchmark: str) -> Mapping[str, Measure]:
    """How the measures of a benchmark are shown."""
    found: Mapping[str, Measure] = importlib.import_module(f"holdfast.benchmarks.{benchmark}.protocol").MEASURES
    return found


def comparison(records: Sequence[Record]) -> Grid:
    """One row an algorithm, one column a measure: the mean over seeds, and its 95 % t-interval."""
    benchmark = records[0].config["benchmark"]["name"]
    shown = measures(benchmark)
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.algorithm, []).append(record)
    rows = []
    missing: dict[tuple[str, str], list[str]] = {}  # measures without a value, by algorithm and reason
    for algorithm, group in groups.items():
        rows.append((algorithm, *(_mean([r.summary[name] for r in group], m) for name, m in shown.items())))
        for name, reason in group[0].reasons.items():
            missing.setdefault((algorithm, reason), []).append(shown[name].title)
    seeds = max(len(group) for group in groups.values())
    if seeds > 1:
        notes = [f"In percent; the mean of {seeds} seeds, ± its 95 % t-interval."]
    else:
        notes = ["In percent; one seed, so without an interval (--seeds 3 gives one)."]
    notes += [f"{a}: no {', '.join(titles)}: {reason}." for (a, reason), titles in missing.items()]
    titles = (f"{m.title} {'↑' if m.higher else '↓'}" for m in shown.values())
    return Grid(benchmark, ("algorithm", *titles), tuple(rows), tuple(notes))


def matrix(record: Record, split: str = "test") -> Grid:
    """The score matrix of a run: a row for each stage, a column for each evaluation set."""
    names, initial, rows = score_matrix(record.scores, split)
    lines = [("before", *(_percent(v) for v in initial))]
    lines += [(f"after {i + 1}", *(_percent(v) for v in row)) for i, row in enumerate(rows)]
    return Grid(f"scores on {split} data, in percent", ("stages", *names), tuple(lines))


def _mean(values: Sequence[float | None], measure: Measure) -> str:
    numbers = [value * measure.factor for value in values if value is not None]
    if len(numbers) < len(values):
        return "–"
    found = metrics.summary(numbers)
    return f"{found.mean:.1f}" + (f" ±{found.half_width:.1f}" if found.count > 1 else "")


def _percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}"
