"""`holdfast verify`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import typer

from holdfast.cli.options import Json, Store
from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


def verify(
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Verify the checksums of all files in a store.

    Lists the damaged files and how to repair them; the exit status is 1 if any file is. Files written by holdfast 0.1
    have no checksums.
    """
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.store import Store as Folder
    from holdfast.experiments.verify import damaged
    from holdfast.experiments.verify import verify as checked
    from holdfast.reports.tables import Grid

    if not store.is_dir():
        raise UserError(f"no store exists at {store}: give the folder of runs")
    found = checked(Folder(store))
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
