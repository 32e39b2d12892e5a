"""What a person sees: tables, a progress bar, and JSON for machines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from holdfast.engine.loop import Watch
from holdfast.types import Stage

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.reports.tables import Grid

WIDE = 250
SECONDS = 0.2
"""How often the bar is drawn anew: reading the loss waits for the device."""


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
        table.add_row(*row)
    console.print(table)
    for note in grid.notes:
        console.print(note, style="dim")


class Bar(Watch):
    """A progress bar on standard error: which run, which stage, how far, the loss, and the speed."""

    def __init__(self, title: str, console: Console, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._title = title
        self._task = self._progress.add_task(title, note="", total=None)
        self._next = 0.0
        self._from = (0, 0.0)

    @property
    def stopping(self) -> bool:  # type: ignore[override]
        """Whether someone asked for a stop."""
        return self._stopping()

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins."""
        title = f"{self._title} · {stage.name} ({index + 1} of {stages})"
        self._progress.reset(self._task, description=title, total=steps, note="")
        self._from = (0, time.monotonic())

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done; the bar moves a few times a second."""
        now = time.monotonic()
        if now < self._next or self._progress.disable:
            return
        done, since = self._from
        speed = (stage_step - done) / max(now - since, 1e-9)
        self._progress.update(self._task, completed=stage_step, note=f"loss {float(loss):.3f} · {speed:.0f} steps/s")
        self._next, self._from = now + SECONDS, (stage_step, now)

    def evaluating(self, name: str) -> None:
        """An evaluation begins."""
        self._progress.update(self._task, note=f"evaluating {name}")
