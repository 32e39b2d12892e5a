"""Progress bars in terminals and notebooks, for work of any part of the library that takes more than a moment."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

SECONDS = 0.2
"""The minimum seconds between two drawings of a notebook's bars, each of which is a message to the browser."""


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar in a notebook, or on standard error if that is a terminal.

    Call the result with the amount done and the total.

    >>> with progress_bar("reading") as progress:
    ...     progress(1, 2)
    """
    if in_notebook():
        with notebook_bars() as show:
            show([NotebookBar(title)])
            yield lambda done, total: show([NotebookBar(title, done / max(total, 1), f"{done:,} of {total:,}")])
        return
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@dataclass(frozen=True)
class NotebookBar:
    """One bar of a notebook."""

    title: str
    share: float | None = None
    """The share that is done, from 0 to 1; None if unknown."""
    note: str = ""


class NotebookBars:
    """The HTML of bars.

    >>> NotebookBars([NotebookBar("reading", 0.5, "1 of 2")])
    reading  50 %  1 of 2
    """

    def __init__(self, bars: Sequence[NotebookBar]) -> None:
        self.bars = tuple(bars)

    def __repr__(self) -> str:
        shares = ("" if bar.share is None else f"{100 * bar.share:.0f} %" for bar in self.bars)
        rows = zip(self.bars, shares, strict=True)
        return "\n".join("  ".join(filter(None, (bar.title, share, bar.note))) for bar, share in rows)

    def _repr_html_(self) -> str:
        return "".join(
            f"<div><progress{'' if bar.share is None else f' value={bar.share:.3f}'}></progress> "
            f"{html.escape(bar.title)} <small>{html.escape(bar.note)}</small></div>"
            for bar in self.bars
        )


def in_notebook() -> bool:
    """Whether this runs in a Jupyter notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def notebook_bars() -> Iterator[Callable[[Sequence[NotebookBar]], None]]:
    """Show bars below a notebook's cell, which vanish in the end. No extension of the browser is needed."""
    display: Any = sys.modules["IPython"].display.display
    handle, last = display(NotebookBars([]), display_id=True), 0.0

    def show(bars: Sequence[NotebookBar]) -> None:
        nonlocal last
        if time.monotonic() >= last + SECONDS:
            last = time.monotonic()
            handle.update(NotebookBars(bars))

    try:
        yield show
    finally:
        handle.update(NotebookBars([]))
