"""`holdfast report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    store: Annotated[Path, typer.Argument(help="The store: the folder of all runs; or the folder of one run.")] = Path(
        "runs"
    ),
    out: Annotated[Path, typer.Option(help="The folder to write the report to.")] = Path("report"),
    title: Annotated[str, typer.Option(help="What the report is called.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="What was written, as JSON.")] = False,
) -> None:
    """Write an HTML report of a store: tables beside the papers', curves, cost, significance, a page for each run."""
    from holdfast.reports.report import write
    from holdfast.reports.runs import load

    runs = load(store)
    written = write(runs, out, title)
    broken = {run.id: run.problem for run in runs if run.status == "broken"}
    if as_json:
        told = {"index": str(written.index), "pages": written.pages, "bytes": written.bytes, "broken": broken}
        typer.echo(json.dumps(told, indent=1))
        return
    typer.echo(f"{len(runs)} runs in {written.pages} pages, {written.bytes / 1e6:.1f} MB: open {written.index}")
    for run, problem in broken.items():
        typer.echo(f"{run} is broken, and shown as such: {problem}", err=True)
