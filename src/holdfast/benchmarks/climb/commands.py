"""`holdfast climb`: runs in the layout of the paper's tables and figures, and image placeholders for text tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Data, Device, Jobs, Json, Out, Store

if TYPE_CHECKING:
    from holdfast.benchmarks.climb.runs import RunsAtScale
    from holdfast.benchmarks.climb.tables import Sheet
    from holdfast.reports.tables import Grid

Scale = Annotated[str, typer.Option(metavar="SCALE", help="Show runs at this scale. Default: the one with most runs.")]

VARIANTS = (("none", False), ("zero", False), ("mean", False), ("mean", True))
"""Table 5: the image beside a text, and whether positions of the image are reallocated to the text."""
LEVELS = {"tiny": ("16", "32", "64")}
"""The shots of Table 5, if a scale has fewer than the paper's."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Show runs as in the CLiMB paper.", no_args_is_help=True)
    group.command()(tables)
    group.command()(figures)
    group.command()(vacuous)
    app.add_typer(group, name="climb")


def tables(
    store: Store = Path("runs"),
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER", help="3, 5 to 8, 9a, 9b or 10 to 13; repeat for more. Default: all with runs."),
    ] = None,
    scale: Scale = "",
    as_json: Json = False,
) -> None:
    """Print the paper's tables with our values.

    Values on synthetic data are marked: they do not reproduce the paper's.
    """
    from holdfast.benchmarks.climb.tables import BUILDERS, filled, sheet

    runs = _runs(store, scale)
    found = [sheet(number.lower(), runs) for number in table or BUILDERS]
    _show([each for each in found if table or filled(each)], as_json)


def figures(
    store: Store = Path("runs"),
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write the pictures to.")] = Path("figures"),
    scale: Scale = "",
) -> None:
    """Draw the paper's figures with our values.

    Draws Figures 3 to 6 and 8 to 10; dashed lines are the paper's values.
    """
    from holdfast.benchmarks.climb.figures import draw

    for path in draw(_runs(store, scale), out):
        typer.echo(str(path))


def vacuous(
    scale: Annotated[str, typer.Option(metavar="SCALE", help="tiny, small, large or paper.")] = "small",
    data: Data = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model. Default: vilt-tiny; at the paper's scale, vilt.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SETTING=VALUE", help="Change a setting, as in train.epochs=20."),
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", min=1, help="Draw N sub-samples of the training data.")] = 3,
    shots: Annotated[
        list[str] | None,
        typer.Option(metavar="N", help="Examples of each class; repeat for more. Default: 16, 32 and 128."),
    ] = None,
    out: Out = Path("runs"),
    device: Device = "auto",
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Run and print all of the paper's Table 5.

    It shows IMDb with no image, a black one, the mean image, and more places for text.
    """
    from holdfast.benchmarks.climb.tables import sheet
    from holdfast.cli.carry import carry, end
    from holdfast.cli.run import parse_settings
    from holdfast.engine.ranks import Ranks
    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import graph
    from holdfast.experiments.request import Request
    from holdfast.experiments.runner import find_device
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store as Folder

    find_device(device)  # before anything is planned: with no run there is no store to print from
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
            typer.echo(f"{run.id} is broken and left out: {run.problem}", err=True)
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
