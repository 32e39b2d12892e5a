"""`holdfast compare`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import Format, Json, Sources
from holdfast.errors import UserError, nearest

if TYPE_CHECKING:
    from holdfast.reports.blocks import TableBlock
    from holdfast.reports.runs import Run
    from holdfast.reports.tables import Grid


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    stores: Sources = [Path("runs")],  # noqa: B006
    form: Format = "text",
    benchmark: Annotated[
        str, typer.Option(metavar="PREFIX", help="Only benchmarks whose name begins with PREFIX.")
    ] = "",
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Print the scores on each set after each stage instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare algorithms, and results with the papers'.

    Prints a table for each benchmark in the stores, and our values beside those of the papers. With --matrix, prints
    one for each algorithm: the mean score on each evaluation set after each stage, with its interval.
    """
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.compare import tables
    from holdfast.reports.ending import ending
    from holdfast.reports.exchange import load_all
    from holdfast.reports.formats import FORMATS, as_json_values, latex
    from holdfast.reports.matrices import matrices
    from holdfast.reports.runs import Runs

    if form not in ("text", *FORMATS):
        raise UserError(f"unknown format {form!r}: {nearest(form, ('text', *FORMATS))}")
    runs = load_all(stores)
    chosen = Runs([run for run in runs if run.benchmark.startswith(benchmark)], runs.path)
    found = matrices(chosen) if matrix else tables(chosen)
    left_out = [run for run in runs if run.status in ("broken", "failed")]
    if as_json:
        print_json([as_json_values(table) for table in found])
        _say(left_out)
        return
    if not found:
        there = sorted({run.benchmark for run in runs if run.record})
        where = " and ".join(map(str, stores))
        raise UserError(
            f"{where} has no finished run of a benchmark {benchmark!r}, only of {', '.join(there)}"
            if there
            else f"{where} has no finished run: `holdfast run --out {shlex.quote(str(stores[0]))}` makes one"
        )
    only = ["--benchmark", benchmark] if benchmark else []
    only += ["--matrix"] if matrix else []
    command = shlex.join(["holdfast", "compare", *map(str, stores), "--format", form, *only])
    for table in found:
        if form == "text":
            print_grid(_in_terminal(table))
        else:
            typer.echo(latex(table, command) if form == "latex" else FORMATS[form](table))
    if form == "text" and not matrix and (last := ending(chosen.records)):
        typer.echo(f"\n{last}")
    _say(left_out)


def _say(left_out: Sequence[Run]) -> None:
    for run in left_out:
        typer.echo(f"{run.id} is {run.status} and left out: {run.problem}", err=True)


def _in_terminal(table: TableBlock) -> Grid:
    """The table as text: marked values have a star, and our own are bold if the terminal supports it."""
    from rich.markup import escape

    from holdfast.reports.formats import grid

    found = grid(table, escape, lambda text: f"[bold]{text}*[/bold]")
    return replace(found, notes=tuple(map(escape, found.notes)))
