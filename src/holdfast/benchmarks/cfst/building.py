"""`holdfast data build`: this benchmark's datasets, built from the official files of other datasets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import SkipBad
from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.benchmarks.cfst.build import Report
    from holdfast.reports.tables import Grid

REASONS = 5
"""How many combinations are named for each split; `--json` lists all of them."""
SOURCES = {"cgqa": "GQA", "cobj": "Objects365", "cpin": "PartImageNet"}


def register_build(group: typer.Typer) -> None:
    """Add the commands."""
    for name, source in SOURCES.items():
        group.command(name, help=f"Build {name} from {source}, and check the result.")(build)


def build(
    context: typer.Context,
    source: Annotated[Path, typer.Option("--from", metavar="DIR", help="The folder of official files.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write, in the published layout.")],
    per_combination: Annotated[
        str, typer.Option(metavar="N,N,N", help="Pictures of each combination for training, validation and each test.")
    ] = "1000,50,100",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed; another one makes another dataset.")] = 0,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use N processes. Default: one for each core.")
    ] = None,
    smallest: Annotated[
        int, typer.Option(metavar="PIXELS", min=1, help="The least width and height of an object.")
    ] = 30,
    skip_bad: SkipBad = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was built as JSON.")] = False,
) -> None:
    """Build a dataset, and verify the result. If interrupted, repeat the command to continue."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from holdfast.benchmarks.cfst.build import build as make
    from holdfast.cli.screen import print_grid, print_json

    name, counts = str(context.info_name), _counts(per_combination)
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"reading {source}", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, description=f"drawing {name}", completed=done, total=total)

        report = make(
            name,
            source,
            out,
            per_combination=counts,
            seed=seed,
            workers=workers,
            smallest=smallest,
            skip_bad=skip_bad,
            progress=progress,
        )
    if as_json:
        print_json(asdict(report))
    else:
        print_grid(_grid(report))


def _counts(text: str) -> tuple[int, int, int]:
    """Three numbers separated by commas.

    >>> _counts("1000,50,100")
    (1000, 50, 100)
    """
    try:
        train, val, test = (int(number) for number in text.split(","))
    except ValueError:
        raise UserError(f"--per-combination is {text!r}: use three whole numbers, as in 1000,50,100") from None
    return train, val, test


def _grid(report: Report) -> Grid:
    from holdfast.reports.tables import Grid

    rows = tuple(
        (
            row.split,
            f"{row.present} of {row.listed}",
            f"{row.pictures:,}",
            f"{row.listed * row.wanted:,}",
            str(len(row.reasons) - (row.listed - row.present)),
        )
        for row in report.rows
    )
    notes = []
    for row in report.rows:
        named = [f"({each}): {why}" for each, why in list(row.reasons.items())[:REASONS]]
        more = len(row.reasons) - len(named)
        if named:
            notes.append(f"{row.split}: {'; '.join(named)}" + (f"; and {more} more" if more else "") + ".")
    columns = ("split", "combinations", "pictures", "wanted", "combinations with fewer")
    return Grid(f"{report.name} in {report.folder}", columns, rows, tuple(notes))
