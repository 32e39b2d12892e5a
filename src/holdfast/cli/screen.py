"""Output for people, as tables, and for programs, as JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from holdfast.reports.terminal import WIDE, table_of, tables_of

if TYPE_CHECKING:
    from holdfast.reports.tables import Grid


def print_json(value: Any) -> None:
    """JSON on standard output."""
    print(json.dumps(value, indent=1))


def print_grid(grid: Grid) -> None:
    """A table on standard output, with its notes; in a terminal, in blocks of columns that fit."""
    if sys.stdout.isatty():
        console = Console(highlight=False)
        tables = tables_of(grid, console.width)
    else:
        console = Console(highlight=False, width=WIDE)
        tables = [table_of(grid)]
    for table in tables:
        console.print(table)
    for note in grid.notes:
        console.print(note, style="dim")
