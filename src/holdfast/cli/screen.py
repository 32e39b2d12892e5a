"""What a person sees: tables; and JSON for machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from holdfast.reports.terminal import WIDE, table_of

if TYPE_CHECKING:
    from holdfast.reports.tables import Grid


def print_json(value: Any) -> None:
    """JSON on standard output."""
    print(json.dumps(value, indent=1))


def print_grid(grid: Grid) -> None:
    """A table on standard output, with its notes."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
    console.print(table_of(grid))
    for note in grid.notes:
        console.print(note, style="dim")
