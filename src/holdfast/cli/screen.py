"""What a person sees: tables; and JSON for machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from holdfast.errors import printable

if TYPE_CHECKING:
    from holdfast.reports.tables import Grid

WIDE = 250


def print_json(value: Any) -> None:
    """JSON on standard output."""
    print(json.dumps(value, indent=1))


def print_grid(grid: Grid) -> None:
    """A table on standard output, with its notes."""
    # Into a file or a pipe, a row is a line: nothing is folded to a width that nobody has.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
    table = Table(title=grid.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for index, column in enumerate(grid.columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=index == 0, overflow="fold")
    for row in grid.rows:
        table.add_row(*map(printable, row))
    console.print(table)
    for note in grid.notes:
        console.print(note, style="dim")
