"""Score matrices of a store: for each row of an experiment, the mean score on each set after each stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.benchmarks.base import score_matrix
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Cell, TableBlock, mean_cell
from holdfast.reports.groups import experiments
from holdfast.reports.overview import Matrix, are_shares, learned_matrix
from holdfast.reports.runs import Runs

BEFORE = "before"


def matrices(runs: Runs) -> list[TableBlock]:
    """The score matrices of all experiments, a table for each row; runs that were scored at the end only have none."""
    found = [
        matrix_table(f"{experiment.title}: {title}", group)
        for experiment in experiments(runs.records)
        for title, group in experiment.rows.items()
    ]
    return [table for table in found if table is not None]


def matrix_table(title: str, records: Sequence[Record]) -> TableBlock | None:
    """Means over seeds with 95 % t-intervals: a row for each stage, a column for each evaluation set."""
    names, _ = learned_matrix(records[0])
    found = [_with_before(record, names) for record in records]
    if not names or any(each is None or each.shape != found[0].shape for each in found):  # type: ignore[union-attr]
        return None
    several = np.stack(found)  # type: ignore[arg-type]
    factor = 100.0 if are_shares(several) else 1.0
    heads = [BEFORE, *(f"after {stage + 1}" for stage in range(several.shape[1] - 1))]
    rows = [
        (Cell(head), *(_cell(several[:, row, column], factor) for column in range(len(names))))
        for row, head in enumerate(heads)
        if head != BEFORE or np.isfinite(several[:, row]).any()
    ]
    if chances := records[0].chance:
        rows.append((Cell("guessing"), *(mean_cell([chances.get(name)], factor) for name in names)))
    seeds = len(records)
    counted = f"the mean of {seeds} seeds, ± its 95 % t-interval." if seeds > 1 else "one seed, so without an interval."
    note = f"In percent; {counted}" if factor > 1 else counted.capitalize()
    return TableBlock(title, ("stage", *names), tuple(rows), (note,))


def _with_before(record: Record, names: Sequence[str]) -> Matrix | None:
    """The score matrix below the scores before training; None if its sets have other names."""
    own, before, matrix = score_matrix(record.scores)
    if not set(names) <= set(own):
        return None
    places = [own.index(name) for name in names]
    return np.vstack([before[places], matrix[:, places]])


def _cell(values: Matrix, factor: float) -> Cell:
    return mean_cell([float(value) if np.isfinite(value) else None for value in values], factor)
