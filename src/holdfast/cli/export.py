"""`holdfast export` and `holdfast merge`: results to share, and results of others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Sources
from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(export)
    app.command()(merge)


def export(
    sources: Sources,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")] = Path("results.json"),
) -> None:
    """Write the results of stores to one file, to share.

    It has the configuration, scores, measures, cost and environment of each finished run, and no paths of this
    machine. `compare`, `report`, `merge` and `holdfast.load` read it.
    """
    from holdfast.reports import exchange

    count = exchange.export(exchange.load_all(sources), out)
    typer.echo(f"{count} finished run{'s' * (count != 1)} in {out}")


def merge(
    sources: Sources,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The store to add the runs to.")],
) -> None:
    """Add the finished runs of stores and exported files to a store.

    Copies the records, with configurations and score logs where there are any; weights and checkpoints stay behind.
    A run that the store already has is kept; the same run with different scores is an error.
    """
    from holdfast.engine.files import write_json
    from holdfast.files import open_inside
    from holdfast.reports import exchange

    there = [out] if out.is_dir() else []
    runs = exchange.load_all([*there, *sources])
    added = 0
    for run in runs:
        target = out / run.id
        if run.record is None or (target / "record.json").exists():
            continue
        if target.exists():
            raise UserError(f"{target} exists, but is not finished: finish or delete it, and merge again")
        target.mkdir(parents=True)
        if run.path.is_dir():
            for name in ("config.json", "environment.json", "scores.jsonl"):
                if (run.path / name).is_file():
                    with open_inside(run.path.parent, run.path / name) as file, (target / name).open("xb") as copy:
                        shutil.copyfileobj(file, copy)
        write_json(target / "record.json", run.record.to_json())
        added += 1
    typer.echo(f"added {added} run{'s' * (added != 1)} to {out}")
