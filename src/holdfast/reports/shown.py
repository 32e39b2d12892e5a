"""Records and runs as text tables, and as HTML tables in a notebook."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from shutil import get_terminal_size
from typing import Any

from rich.console import Console

from holdfast.errors import printable
from holdfast.experiments.store import Record
from holdfast.reports.blocks import TableBlock
from holdfast.reports.formats import grid
from holdfast.reports.groups import experiments
from holdfast.reports.overview import comparison
from holdfast.reports.runs import Runs
from holdfast.reports.terminal import WIDE, table_of

MOST = 10
"""The maximum number of unfinished runs that are listed."""


def as_text(found: Any) -> str:
    """A record or runs as text."""
    file = io.StringIO()
    width = get_terminal_size().columns if sys.stdout.isatty() else WIDE
    console = Console(file=file, width=width, highlight=False, markup=False, no_color=True, force_jupyter=False)
    tables, lines = _parts(found)
    for table in tables:
        shown = grid(table)
        console.print(table_of(shown))
        for note in shown.notes:
            console.print(printable(note), soft_wrap=not sys.stdout.isatty())
    for line in lines:
        console.print(printable(line), soft_wrap=True)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def as_html(found: Any) -> str:
    """A record or runs as HTML."""
    from holdfast.reports.render import render

    tables, lines = _parts(found)
    return render("notebook.html", tables=[_without_links(table) for table in tables], lines=lines)


def _parts(found: Any) -> tuple[Sequence[TableBlock], Sequence[str]]:
    """The tables, and the lines below them."""
    if isinstance(found, Record):
        again = found.environment.get("command") or found.environment.get("again")
        lines = [f"run {found.id}, seed {found.config['seed']}", *([f"again: {again}"] if again else [])]
        return [comparison(each) for each in experiments([found])], lines
    assert isinstance(found, Runs)
    rest = [run for run in found if run.record is None]
    lines = [
        f"{run.id} is {run.status}{': ' * bool(run.problem)}{run.problem} ({run.algorithm}, seed {run.seed})"
        for run in rest[:MOST]
    ]
    lines += [f"{len(rest) - MOST} more are not done"] if len(rest) > MOST else []
    return [comparison(each) for each in experiments(found.records)], [
        *lines,
        f"{len(found)} run{'s' * (len(found) != 1)} in {found.path}",
    ]


def _without_links(table: TableBlock) -> TableBlock:
    rows = tuple(tuple(replace(cell, run="", seeds=()) for cell in row) for row in table.rows)
    return replace(table, rows=rows)
