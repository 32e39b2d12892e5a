"""`holdfast bench start` and `holdfast bench folder`: how soon a run trains."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from holdfast.cli.options import Json


def register(group: typer.Typer) -> None:
    """Add the commands."""
    group.command()(start)
    group.command()(folder)


def start(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="The benchmark of the second run.")],
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Start N second runs.")] = 5,
    runs: Annotated[int, typer.Option(metavar="N", min=2, help="Make N trivial runs.")] = 100,
    as_json: Json = False,
) -> None:
    """Time the start of runs.

    Measures the process time to the first step of a second run with the same data, and trivial runs in two workers.
    """
    from holdfast.bench.start import first_step, trivial
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    first, many = first_step(benchmark, repeats), trivial(runs)
    if as_json:
        print_json({"first_step": asdict(first), "trivial": asdict(many) | {"limit_s": many.limit_s}})
        return
    slowest = max(first.seconds)
    told = f"process time to the first step of a second run of {benchmark}, slowest of {repeats}"
    rows = [(told, f"{slowest:.2f}", f"{first.limit_s:.2f}", "yes" if slowest <= first.limit_s else "NO")]
    told = f"wall time of {many.runs} trivial runs in two workers, which train for {many.training_s:.2f} s"
    rows.append((told, f"{many.wall_s:.2f}", f"{many.limit_s:.2f}", "yes" if many.wall_s <= many.limit_s else "NO"))
    print_grid(Grid("seconds", ("what", "found", "at most", "within"), tuple(rows)))


def folder(
    pictures: Annotated[int, typer.Option(metavar="N", min=200, help="Write N JPEGs in twenty classes.")] = 10_000,
    as_json: Json = False,
) -> None:
    """Time the start of runs on a folder of JPEGs.

    Measures the time from the command to the first training step, of a first run and of a later one.
    """
    from holdfast.bench.start import folder as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = measure(pictures)
    if as_json:
        print_json(asdict(found))
        return
    both = (("first", found.first_s, found.first_limit_s), ("later", found.later_s, found.later_limit_s))
    rows = tuple((run, f"{s:.1f}", f"{limit:g}", "yes" if s <= limit else "NO") for run, s, limit in both)
    columns = ("run", "first step after", "at most", "within")
    print_grid(Grid(f"seconds, a folder of {pictures:,} JPEGs of 320 x 240 pixels", columns, rows))
