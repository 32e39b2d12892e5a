"""`holdfast figures`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Json, Sources


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(figures)


def figures(
    stores: Sources = [Path("runs")],  # noqa: B006
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write figures to.")] = Path("figures"),
    benchmark: Annotated[
        str, typer.Option(metavar="PREFIX", help="Only benchmarks whose name begins with PREFIX.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Write figures for a paper.

    Each figure is a PDF and an SVG at the width of one column (3.25 inches) and of two (6.75), with its caption as text
    and as LaTeX. Needs matplotlib: pip install "holdfast[pictures]".
    """
    from holdfast.reports.exchange import load_all
    from holdfast.reports.figures import write
    from holdfast.reports.runs import Runs

    chosen = ["--benchmark", benchmark] if benchmark else []
    command = shlex.join(["holdfast", "figures", *map(str, stores), "--out", str(out), *chosen])
    runs = load_all(stores)
    written = write(Runs([run for run in runs if run.benchmark.startswith(benchmark)], runs.path), out, command)
    if as_json:
        typer.echo(json.dumps([str(path) for path in written], indent=1))
        return
    for folder in dict.fromkeys(path.parent for path in written):
        typer.echo(f"{folder}:")
        for path in (path for path in written if path.parent == folder):
            typer.echo(f"  {path.name}")
    typer.echo(f"{len(written)} figures: NAME-single and NAME-double (.pdf, .svg), NAME.txt, NAME.tex")
