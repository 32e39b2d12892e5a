"""Scores against the resources spent: the rows of a run, and a figure of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast import metrics
from holdfast.experiments.store import Record
from holdfast.metrics.anytime import anytime_curve
from holdfast.reports.blocks import Curves, Series
from holdfast.reports.groups import Experiment
from holdfast.reports.measures import scores_are_shares
from holdfast.reports.overview import drawn, left_out
from holdfast.reports.significance import LEAST
from holdfast.reports.tables import Grid

UNITS = {"flops": "floating-point operations", "passes": "examples passed forward and backward"}


def unit_of(record: Record) -> str:
    """The resource that the run's budget limits; without a budget, floating-point operations."""
    return next((name for name in UNITS if name in budget_of(record)), "flops")


def budget_of(record: Record) -> Mapping[str, float]:
    """The amount that the run was allowed to spend."""
    found: Mapping[str, float] = record.config.get("budget") or {}
    return found


def over_budget(record: Record) -> Grid | None:
    """A row for each round of scores: the amount spent by then, and the mean score; None if these are unknown."""
    unit, factor = unit_of(record), 100.0 if scores_are_shares(record) else 1.0
    spent, scores = anytime_curve(record.scores, record.spent, unit)
    if len(spent) < 2:
        return None
    allowed = budget_of(record).get(unit)
    whole = allowed or spent[-1] or 1
    rows = tuple(
        (f"{each:.3g}", f"{100 * each / whole:.0f} %", f"{factor * score:.{1 if factor == 100 else 3}f}")
        for each, score in zip(spent, scores, strict=True)
    )
    notes = ["The mean over the test sets scored at that time" + (", in percent." if factor == 100 else ".")]
    if skipped := record.cost.get("skipped"):
        notes.append(f"{skipped:.0f} of {record.cost['steps']:.0f} steps were skipped to keep within the budget.")
    share = "share of the budget" if allowed else "share of all"
    return Grid("score against what was spent", (UNITS[unit], share, "score"), rows, tuple(notes))


def figures(experiment: Experiment) -> list[Curves]:
    """The curve of each row of an experiment: means over seeds, at the mean amount that they had spent."""
    rows, factor = drawn(experiment), 100.0 if all(map(scores_are_shares, experiment.records)) else 1.0
    series = [found for title, group in rows if (found := _series(title, group, factor)) is not None]
    if not series:
        return []
    unit = UNITS[unit_of(experiment.records[0])]
    title, label = "Scores against what training had spent", "mean score, %" if factor == 100 else "mean score"
    told = "The mean over the test sets that were scored at that time; evaluations cost nothing here."
    return [Curves(title, unit, label, tuple(series), notes=(told, *left_out(experiment)))]


def _series(title: str, group: Sequence[Record], factor: float) -> Series | None:
    unit = unit_of(group[0])
    found = [anytime_curve(record.scores, record.spent, unit) for record in group]
    points = {len(scores) for _, scores in found}
    if len(points) != 1 or points == {0} or points == {1}:
        return None
    spent = [metrics.mean([curve[0][place] for curve in found]) for place in range(points.pop())]
    scores = [metrics.summary([factor * curve[1][place] for curve in found]) for place in range(len(spent))]
    band = tuple(each.half_width if each.count >= LEAST else None for each in scores)
    return Series(title, tuple(spent), tuple(each.mean for each in scores), band)
