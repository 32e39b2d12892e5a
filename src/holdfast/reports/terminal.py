"""A table as a terminal shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from holdfast.errors import printable

if TYPE_CHECKING:
    from holdfast.reports.tables import Grid

WIDE = 250
"""Where the output is no terminal, a row is a line: nothing is folded to a width that nobody has."""


def table_of(grid: Grid) -> Table:
    """The table, without its notes."""
    table = Table(title=grid.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for index, column in enumerate(grid.columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=index == 0, overflow="fold")
    for row in grid.rows:
        table.add_row(*map(printable, row))
    return table
