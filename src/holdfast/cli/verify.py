"""`holdfast verify`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


def verify(
    store: Annotated[Path, typer.Argument(help="The folder of runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """Verify the checksums of all stored files of a store: which are damaged, and how to repair them.

    The exit status is 1 if one is damaged. Files from holdfast 0.1 have no checksums.
    """
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.store import Store
    from holdfast.experiments.verify import damaged
    from holdfast.experiments.verify import verify as checked
    from holdfast.reports.tables import Grid

    if not store.is_dir():
        raise UserError(f"there is no store at {store}: give the folder of runs")
    found = checked(Store(store))
    bad = damaged(found)
    counts = Counter(each.state for each in found)
    if as_json:
        print_json({"files": dict(counts), "damaged": [asdict(each) for each in bad]})
    else:
        if bad:
            rows = tuple((each.run, each.name, each.problem, each.remedy) for each in bad)
            print_grid(Grid(f"damaged files in {store}", ("run", "file", "problem", "what to do"), rows))
        runs = len({each.run for each in found})
        typer.echo(f"{runs} runs: " + ", ".join(f"{count} files {state}" for state, count in sorted(counts.items())))
    if bad:
        sys.exit(1)
