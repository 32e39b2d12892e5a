"""`holdfast watch`."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from holdfast.reports.progress import StoreProgress

WIDE = 200
"""If the output is not a terminal, each row is one line."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store: the folder that holds all runs.")] = Path(
        "runs"
    ),
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Update every SECONDS.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit; the default without a terminal.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print once, as JSON.")] = False,
) -> None:
    """Watch the active runs of a store.

    Shows the stage, step, loss, examples per second and time left of each. Ctrl-C ends it.
    """
    from rich.console import Console
    from rich.live import Live

    from holdfast.experiments.store import local_folder
    from holdfast.reports.progress import look

    console = Console(highlight=False)
    live = console.is_terminal and not (once or as_json)
    if not live:
        now = look(store)
        if as_json:
            running = [asdict(each) for each in now.going]
            typer.echo(json.dumps({"running": running, "runs": now.counts, "broken": now.broken}, indent=1))
        else:
            plain = Console(highlight=False, width=None if console.is_terminal else WIDE)
            plain.print(_table(now, store, plain.width))
        return
    local_folder(store)  # an address would never come to exist
    with suppress(KeyboardInterrupt):
        _wait(store, every, console)
        with Live(_table(look(store), store, console.width), console=console, auto_refresh=False) as screen:
            while True:
                time.sleep(every)
                screen.update(_table(look(store), store, console.width), refresh=True)


def _wait(store: Path, every: float, console: Console) -> None:
    """Wait until a store exists."""
    if not store.exists():
        console.print(f"waiting for the store {store}; Ctrl-C ends it", markup=False)
    while not store.exists():
        time.sleep(every)


def _table(now: StoreProgress, store: Path, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from holdfast.reports.tables import Grid
    from holdfast.reports.terminal import tables_of

    rows = tuple(
        (
            each.id,
            each.title,
            each.stage,
            f"{each.step} of {each.steps}" if each.steps else "",
            "" if each.loss is None else f"{each.loss:.3f}",
            "" if each.examples_per_second is None else f"{each.examples_per_second:,.0f}",
            "" if each.seconds_left is None else f"~{clock(each.seconds_left)}",
            each.doing,
        )
        for each in now.going
    )
    grid = Grid("", ("run", "what", "stage", "step", "loss", "examples/s", "time left", ""), rows, ())
    statuses = ("done", "running", "stopped", "failed", "broken")
    told = ", ".join(f"{now.counts[name]} {name}" for name in statuses if now.counts.get(name))
    lines = [Text(f"{store}: {told or 'no runs yet'}", style="dim")]
    lines += [Text(f"{run} is broken: {problem}", style="dim") for run, problem in now.broken.items()]
    return Group(*(tables_of(grid, width) if rows else [Text("Nothing is running.")]), *lines)


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock(75), clock(7322)
    ('1:15', '2:02:02')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
