"""`holdfast watch`."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from holdfast.reports.progress import StoreProgress

WIDE = 200
"""Where the output is no terminal, a row is a line."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(
    store: Annotated[Path, typer.Argument(help="The store: the folder of all runs.")] = Path("runs"),
    every: Annotated[float, typer.Option(min=0.1, help="Look again after so many seconds.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once; so it is where the output is no terminal.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Once, as JSON on standard output.")] = False,
) -> None:
    """Watch the runs of a store that go on now: stage, step, loss, examples per second, time left. Ctrl-C ends it."""
    from rich.console import Console
    from rich.live import Live

    from holdfast.reports.progress import look

    now = look(store)
    if as_json:
        running = [asdict(each) for each in now.going]
        typer.echo(json.dumps({"running": running, "runs": now.counts, "broken": now.broken}, indent=1))
        return
    console = Console(highlight=False)
    if once or not console.is_terminal:
        Console(highlight=False, width=None if console.is_terminal else WIDE).print(_table(now, store))
        return
    try:
        with Live(_table(now, store), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(_table(look(store), store), refresh=True)
    except KeyboardInterrupt:
        return


def _table(now: StoreProgress, store: Path) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for column in ("run", "what", "stage", "step", "loss", "examples/s", "time left", ""):
        table.add_column(column, justify="left" if column in ("run", "what", "stage", "") else "right")
    for each in now.going:
        table.add_row(
            each.id,
            Text(each.title),
            Text(each.stage),
            f"{each.step} of {each.steps}" if each.steps else "",
            "" if each.loss is None else f"{each.loss:.3f}",
            "" if each.examples_per_second is None else f"{each.examples_per_second:,.0f}",
            "" if each.seconds_left is None else f"~{clock(each.seconds_left)}",
            Text(each.doing, style="dim"),
        )
    statuses = ("done", "running", "stopped", "failed", "broken")
    told = ", ".join(f"{now.counts[name]} {name}" for name in statuses if now.counts.get(name))
    lines = [Text(f"{store}: {told or 'no runs yet'}", style="dim")]
    lines += [Text(f"{run} is broken: {problem}", style="dim") for run, problem in now.broken.items()]
    return Group(table if now.going else Text("Nothing is running."), *lines)


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock(75), clock(7322)
    ('1:15', '2:02:02')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
