"""Our values beside a paper's: the layout that benchmarks' sections share, and its warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.benchmarks.base import Measure, headed
from holdfast.benchmarks.versions import mixed
from holdfast.experiments.store import Record
from holdfast.papers import PublishedTable
from holdfast.reports.blocks import Cell, TableBlock
from holdfast.reports.groups import is_bound, rows_of
from holdfast.reports.marks import mark_best, measured
from holdfast.reports.measures import measures
from holdfast.reports.overview import row_head
from holdfast.reports.runs import on_world

WORLD = "Ours is on small synthetic data, the paper's on real data: this does not reproduce the paper's results."


@dataclass(frozen=True)
class Beside:
    """A column: the cell of the paper's table, the measure of a record, and how it is printed."""

    title: str
    paper: str
    measure: str
    higher: bool = True
    interval: str = ""
    """The paper's column with the half width of its interval."""
    own_interval: str = ""
    """The measure with the half width of one run's own interval, for a row of one seed."""
    factor: float = 100.0
    paper_factor: float = 1.0
    decimals: int = 2


def caution(record: Record) -> str:
    """Why a run's values are not comparable with a paper's; empty if they are.

    Synthetic data is never comparable, nor is real data at another scale than the paper's.
    """
    if on_world(record.environment):
        return WORLD
    scale = record.config["benchmark"].get("scale", "paper")
    if scale != "paper":
        return f"Ours is at the scale {scale}, not the paper's: the values beside each other are not comparable."
    return ""


def side_by_side(
    published: PublishedTable,
    records: Sequence[Record],
    columns: Sequence[Beside],
    key: Callable[[Record], tuple[str, ...]],
    names: Sequence[str],
    title: str = "",
    compete: Callable[[tuple[str, ...]], str] = lambda place: place[-1],
) -> TableBlock:
    """A paper's table in its own order of rows, with our runs in matching rows or below.

    `names` are the columns of the published table that name a row; `key` returns the same for a record. Rows for which
    `compete` is equal, by default their last name, compete for the marks; the paper's values never do. Several
    of our rows may match one of the paper's (another memory, another rate): each is shown beside it.
    """
    ours: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        ours.setdefault(key(record), []).append(record)
    rows, ranks = [], list[str | None]()
    wanted = list(dict.fromkeys(tuple(str(row[name]) for name in names) for row in published))
    for place in [*wanted, *(each for each in ours if each not in wanted)]:
        theirs = published.select(**dict(zip(names, place, strict=True))) if place in wanted else None
        groups = rows_of(ours.get(place, []))
        for name, group in groups.items() or [("", ())]:
            words = [word for word in place if word != str(None)]
            said = " · ".join([*words, name.partition(" ")[2]] if len(groups) > 1 else words)
            cells = [_cell(column, group, theirs) for column in columns]
            rows.append((row_head(said, group) if group else Cell(said, hint="not run here"), *cells))
            ranks.append(compete(place) if group and not is_bound(group[0]) else None)
    marked = mark_best(rows, [column.title for column in columns], [column.higher for column in columns], ranks)
    heads = tuple(headed(column.title, column.higher) for column in columns)
    given = title or f"{published.paper}, table {published.number}: {published.title}"
    warnings = list(dict.fromkeys(filter(None, (caution(record) for record in records))))
    notes = (published.measures, *mixed((record.algorithm, record.config) for record in records), *marked.notes)
    return TableBlock(given, (" · ".join(names), *heads), tuple(marked.rows), notes, " ".join(warnings), marked.marks)


def _cell(column: Beside, group: Sequence[Record], theirs: PublishedTable | None) -> Cell:
    known = measures(group[0]) if group else {}
    measure = known.get(column.measure) or Measure(column.title)
    cell = measured(group, column.measure, replace(measure, factor=column.factor, decimals=column.decimals))
    if len(group) == 1 and cell.number is not None and column.own_interval:
        own = group[0].summary.get(column.own_interval)
        cell = replace(cell, interval=None if own is None else own * column.factor)
    if theirs is None or len(theirs) != 1:
        return cell
    row = next(iter(theirs))
    return replace(
        cell,
        paper=_number(row, column.paper, column.paper_factor),
        paper_interval=_number(row, column.interval, column.paper_factor) if column.interval else None,
    )


def _number(row: Mapping[str, object], name: str, factor: float) -> float | None:
    value = row.get(name)
    return float(value) * factor if isinstance(value, int | float) else None
