"""A progress bar for one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from holdfast.engine.watch import Watch
from holdfast.types import Stage

if TYPE_CHECKING:
    from torch import Tensor

SECONDS = 0.2
"""The seconds between updates of the bar: reading the loss waits for the device."""


class ProgressBar(Watch):
    """A progress bar on standard error with the run, the stage, the progress, the loss and the speed."""

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
        """Whether the run was asked to stop."""
        return self._stopping()

    def __enter__(self) -> ProgressBar:
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

    def observing(self) -> None:
        """Each example is seen once more."""
        self._progress.update(self._task, note="collecting statistics")

    def evaluating(self, name: str) -> None:
        """An evaluation begins."""
        self._progress.update(self._task, note=f"evaluating {name}")
