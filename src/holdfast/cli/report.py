"""`holdfast report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Sources


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    stores: Sources = [Path("runs")],  # noqa: B006
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write the report to.")] = Path("report"),
    title: Annotated[str, typer.Option(metavar="TEXT", help="The report's title.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write an HTML report of stores.

    It has tables beside the papers' values, learning curves, costs, significance tests and a page for each run.
    """
    from holdfast.reports.exchange import load_all
    from holdfast.reports.report import write

    runs = load_all(stores)
    written = write(runs, out, title)
    broken = {run.id: run.problem for run in runs if run.status == "broken"}
    if as_json:
        told = {"index": str(written.index), "pages": written.pages, "bytes": written.bytes, "broken": broken}
        typer.echo(json.dumps(told, indent=1))
        return
    typer.echo(f"{len(runs)} runs in {written.pages} pages, {written.bytes / 1e6:.1f} MB: open {written.index}")
    for run, problem in broken.items():
        typer.echo(f"{run} is broken, and is shown as broken: {problem}", err=True)
