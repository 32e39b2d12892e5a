"""`holdfast climb`: runs in the layout of the paper's tables and figures, and image placeholders for text tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from holdfast.benchmarks.climb.runs import RunsAtScale
    from holdfast.benchmarks.climb.tables import Sheet
    from holdfast.reports.tables import Grid

Store = Annotated[Path, typer.Argument(help="The store: the folder of all runs.")]
Scale = Annotated[str, typer.Option(help="Show runs at this scale; default: the one with the most runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON to standard output.")]

VARIANTS = (("none", False), ("zero", False), ("mean", False), ("mean", True))
"""Table 5: the image beside a text, and whether positions of the image are reallocated to the text."""
LEVELS = {"tiny": ("16", "32", "64")}
"""The shots of Table 5, if a scale has fewer than the paper's."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Analyse runs of climb.", no_args_is_help=True)
    group.command()(tables)
    group.command()(figures)
    group.command()(vacuous)
    app.add_typer(group, name="climb")


def tables(
    store: Store = Path("runs"),
    table: Annotated[
        list[str] | None, typer.Option(help="3, 5 to 8, 9a, 9b, 10 to 13; default: all with runs.")
    ] = None,
    scale: Scale = "",
    as_json: AsJson = False,
) -> None:
    """Print the paper's tables, with our rows above the paper's. Synthetic data is marked as no reproduction."""
    from holdfast.benchmarks.climb.tables import BUILDERS, filled, sheet

    runs = _runs(store, scale)
    found = [sheet(number.lower(), runs) for number in table or BUILDERS]
    _show([each for each in found if table or filled(each)], as_json)


def figures(
    store: Store = Path("runs"),
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("figures"),
    scale: Scale = "",
) -> None:
    """Draw the paper's Figures 3 to 6 and 8 to 10 from the runs, with the paper's own values as dashed lines."""
    from holdfast.benchmarks.climb.figures import draw

    for path in draw(_runs(store, scale), out):
        typer.echo(str(path))


def vacuous(
    scale: Annotated[str, typer.Option(help="How much data: tiny, small, large, paper.")] = "small",
    data: Annotated[str | None, typer.Option(help="The folder of the official files; default: synthetic.")] = None,
    model: Annotated[str | None, typer.Option(help="The model; vilt-tiny, or vilt at the paper's scale.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting, such as train.epochs=20.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of sub-samples of the training data.")] = 3,
    shots: Annotated[list[str] | None, typer.Option(help="Examples per class; default: 16, 32 and 128.")] = None,
    out: Annotated[Path, typer.Option(help="The store: the folder of all runs.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", "--workers", min=0, help="Number of parallel runs; 0: one per core, or per GPU."),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Run all of Table 5 and print it: IMDb with no image, a black one, the mean image, and more room for text."""
    from holdfast.benchmarks.climb.tables import sheet
    from holdfast.cli.carry import carry, end
    from holdfast.cli.run import parse_settings
    from holdfast.engine.ranks import Ranks
    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import graph
    from holdfast.experiments.request import Request
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store as Folder

    asked = [
        {"task": "imdb", "image": image, "reallocate": more, "shots": level, "sample": sample}
        for image, more in VARIANTS
        for level in shots or LEVELS.get(scale, ("16", "32", "128"))
        for sample in range(samples)
    ]
    given = parse_settings(settings or [])
    requests = [
        Request(
            "climb:lowshot",
            model=model,
            scale=scale,
            data=data,
            settings={**given, **{f"benchmark.{name}": value for name, value in each.items()}},
        )
        for each in asked
    ]
    setups = Setups()
    plan = graph(requests, needs=False, setups=setups)
    result = carry(plan, Folder(out), Options(device), setups, Ranks(), jobs)
    _show([sheet("5", _runs(out, scale))], as_json)
    end(result)


def _runs(store: Path, scale: str) -> RunsAtScale:
    from holdfast.benchmarks.climb.runs import RunsAtScale
    from holdfast.reports.runs import load

    runs = load(store)
    for run in runs:
        if run.status == "broken":
            typer.echo(f"{run.id} is broken, and left out: {run.problem}", err=True)
    return RunsAtScale(runs.records, scale)


def _show(sheets: list[Sheet], as_json: bool) -> None:
    from dataclasses import asdict

    from holdfast.cli.screen import print_grid, print_json

    if as_json:
        found: list[dict[str, Any]] = [asdict(sheet) for sheet in sheets]
        print_json(found)
        return
    for sheet in sheets:
        print_grid(_grid(sheet))


def _grid(sheet: Sheet) -> Grid:
    """Two lines for each row: our runs, and the paper's values below."""
    from holdfast.benchmarks.climb.tables import ScoreCell
    from holdfast.reports.tables import Grid

    lines: list[tuple[str, ...]] = []
    for row in sheet.rows:
        if any(cell != ScoreCell() for cell in row.ours):
            lines.append((row.title, *map(str, row.ours)))
            lines.append(("  the paper", *map(str, row.paper)))
        else:
            lines.append((f"{row.title}, the paper", *map(str, row.paper)))
    notes = (
        "In percent: a change with its score in brackets, or a score; ± is a 95 % interval, the paper's a deviation.",
    )
    return Grid(f"Table {sheet.number}: {sheet.title}", ("", *sheet.columns), tuple(lines), (*notes, *sheet.notes))
