"""The charts of an experiment: the picture at its top, and the spread of its measures over the seeds."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.benchmarks.base import Measure
from holdfast.reports.blocks import POINTS, Cell, Curves, Distribution, Point, Scatter, TableBlock
from holdfast.reports.groups import Experiment
from holdfast.reports.marks import measured
from holdfast.reports.overview import LINES, capital, left_out, over_stages, row_head
from holdfast.reports.sentences import compared_measures
from holdfast.reports.significance import LEAST
from holdfast.reports.tables import axis_label, headline, shown_measures

FEW = 8
"""The maximum number of rows drawn as lines in the picture at the top: more are points, of score and forgetting."""
MAIN = 4
"""The maximum number of measures of the table at the top."""


def main_measures(experiment: Experiment) -> list[str]:
    """The measures of the table at the top: the headline, forgetting, then those of the whole stream."""
    shown = shown_measures(experiment.records)
    first = list(compared_measures(experiment.records))[::-1]
    of_stream = [n for n, m in shown.items() if m.mean_of or m.relies_on or m.pooled]
    return list(dict.fromkeys([*first, *of_stream, *shown]))[:MAIN]


def picture(experiment: Experiment) -> Curves | Scatter | Distribution | None:
    """The picture at the top: score over the stages or, with many rows or without stages, score against forgetting."""
    curves = over_stages(experiment)[:1]
    if curves and len(experiment.rows) <= FEW:
        return curves[0]
    others: list[Curves | Scatter | Distribution] = [*_against_forgetting(experiment), *curves]
    return next(iter([*others, *distributions(experiment)]), None)


def _against_forgetting(experiment: Experiment) -> list[Scatter]:
    """The headline measure against forgetting, a point for each row that has both."""
    measures = compared_measures(experiment.records)
    if len(measures) < 2:
        return []
    (lost, forgetting), (name, measure) = measures.items()
    points = []
    for title, group in list(experiment.rows.items())[:LINES]:
        x, y = measured(group, lost, forgetting), measured(group, name, measure)
        if x.number is None or y.number is None:
            continue
        told = f"{title}: {measure.title} {y.plain}, {forgetting.title} {x.plain}"
        widths = (x.interval, y.interval) if len(group) >= LEAST else (None, None)
        points.append(Point(title, x.number, y.number, told, *widths))
    if len(points) < 2:
        return []
    title = f"{capital(measure)} against {forgetting.title}"
    return [Scatter(title, axis_label(forgetting), axis_label(measure), tuple(points), notes=left_out(experiment))]


def distributions(experiment: Experiment) -> list[Distribution]:
    """The values of the main measures by seed, a line for each row."""
    shown = shown_measures(experiment.records)
    charts = []
    for name in main_measures(experiment):
        measure = shown[name]
        cells = {title: measured(group, name, measure) for title, group in list(experiment.rows.items())[:LINES]}
        known = {title: cell for title, cell in cells.items() if cell.number is not None and cell.values}
        if known and (len(known) > 1 or len(next(iter(known.values())).values) > 1):
            widths = tuple(cell.interval if len(cell.values) >= LEAST else None for cell in known.values())
            values = tuple(cell.values for cell in known.values())
            many = max(len(cell.values) for cell in known.values()) > POINTS
            few = (f"The first {POINTS} seeds of each row are drawn; all count in the means.",) * many
            notes = (*few, *left_out(experiment))
            charts.append(Distribution(capital(measure), axis_label(measure), tuple(known), values, widths, notes))
    return charts


def baselines_table(found: Sequence[Experiment]) -> TableBlock:
    """The runs that the measures of an experiment compare with, by their experiment's settings."""
    rows = []
    for each in found:
        for title, group in each.rows.items():
            name, measure = headline(group) or ("", Measure("score"))
            told = each.title if len(each.rows) == 1 else f"{each.title}: {title}"
            head = row_head(told, group)
            rows.append((head, Cell(title), measured(group, name, measure) if name else Cell()))
    notes = ("Some measures of the table above compare with these runs, which do not compete.",)
    return TableBlock("Baselines", ("run of", "algorithm", "score"), tuple(rows), notes)
