"""`holdfast leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Sources


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(leaderboard)


def leaderboard(
    stores: Sources = [Path("runs")],  # noqa: B006
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write the page to.")] = Path("leaderboard"),
    title: Annotated[str, typer.Option(metavar="TEXT", help="The page's title.")] = "",
) -> None:
    """Rank the results of several people on one page.

    Takes any number of stores and exported files. The page says of each row what it is comparable with, and why not
    with others: another version, data, model, number of epochs, threads or trials of tuning.
    """
    from holdfast.reports.exchange import load_all
    from holdfast.reports.leaderboard import write

    typer.echo(f"open {write(load_all(stores), out, title)}")
