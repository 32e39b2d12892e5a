"""`holdfast bench`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Speed, as ratios within one run.")
    group.command()(overhead)
    app.add_typer(group, name="bench")


def overhead(
    steps: Annotated[int, typer.Option(min=1, help="Steps of each loop in a repeat.")] = 256,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats, of which the median counts.")] = 25,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """Compare our loop with the barest PyTorch loop on the same model and data."""
    from holdfast.bench.overhead import LIMIT_MS
    from holdfast.bench.overhead import overhead as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(steps, repeats, find_device(device))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            f.case,
            f"{f.bare_ms:.3f}",
            f"{f.ours_ms:.3f}",
            f"{f.extra_ms:+.3f}",
            f"{f.ours_ms / f.bare_ms:.2f}",
            "yes" if f.extra_ms <= f.limit_ms else "NO",
        )
        for f in found
    )
    columns = ("case", "bare ms", "ours ms", "extra ms", "ratio", f"within {LIMIT_MS:g} ms")
    print_grid(Grid("milliseconds a step", columns, rows, ("For replay, the bare loop has the larger batch.",)))
