"""`holdfast tune`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import Stopped, UserError

if TYPE_CHECKING:
    from holdfast.experiments.config import Request
    from holdfast.experiments.store import Record


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tune)


def tune(
    benchmark: Annotated[str, typer.Argument(help="What to learn.")],
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help="How to learn; A+B combines.")],
    grid: Annotated[
        list[str], typer.Option("--grid", help="A setting and its values: ewc.strength=100,1000; several make a grid.")
    ],
    by: Annotated[str, typer.Option(help="The measure to choose by, on validation data, such as cl_score.")],
    model: Annotated[str | None, typer.Option(help="The model; the benchmark's own by default.")] = None,
    scale: Annotated[str | None, typer.Option(help="How much data: tiny, small, large, paper.")] = None,
    setting: Annotated[str | None, typer.Option(help="The benchmark's setting.")] = None,
    order: Annotated[str | None, typer.Option(help="The order of the stages.")] = None,
    data: Annotated[str | None, typer.Option(help="The folder of the official files; else the world's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, counted from the first.")] = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting that all runs have.")] = None,
    out: Annotated[Path, typer.Option(help="The store: the folder of all runs.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """Run an algorithm at each point of a grid, and choose by a measure on validation data, never on the test data."""
    from holdfast.cli.run import parse_settings
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.config import Request, check
    from holdfast.experiments.tune import tune as search
    from holdfast.reports.tables import Grid, measures

    request = Request(
        benchmark, algorithm, model, scale, setting, order, data=data, settings=parse_settings(settings or [])
    )
    wanted = {name: value.split(",") for name, value in parse_settings(grid).items()}
    known = measures(check(request).names["benchmark"])
    trials = search(request, wanted, by, range(seed, seed + seeds), _runner(out, device), list(known))
    shown = known[by]
    ranked = sorted((t for t in trials if not math.isnan(t.mean)), key=lambda t: t.mean, reverse=shown.higher)
    if not ranked:
        raise UserError(f"no run of the grid has a {by} on validation data")
    best = ranked[0]
    if as_json:
        found = [{"settings": t.settings, by: t.values, "runs": [r.id for r in t.records]} for t in trials]
        print_json({"by": by, "split": "validation", "trials": found, "best": best.settings})
        return
    rows = tuple(
        (
            ", ".join(f"{name}={value}" for name, value in t.settings.items()),
            "–" if math.isnan(t.mean) else f"{shown.factor * t.mean:.1f}",
            "best" if t is best else "",
        )
        for t in trials
    )
    chosen = replace(request, seed=seed, settings={**request.settings, **best.settings})
    notes = (
        f"{len(trials)} points, {seeds} seed{'s' if seeds > 1 else ''}; chosen on validation data alone.",
        f"On the test data: {chosen.command()}",
    )
    print_grid(Grid(f"{shown.title} on validation data", ("settings", shown.title, ""), rows, notes))


def _runner(out: Path, device: str) -> Callable[[Request], Record]:
    from rich.console import Console

    from holdfast.cli import INTERRUPTED
    from holdfast.cli.screen import Bar
    from holdfast.experiments.config import check, prepare
    from holdfast.experiments.runner import interruptible, run
    from holdfast.experiments.store import Store

    console, store = Console(stderr=True, highlight=False, soft_wrap=True), Store(out)

    def carry_out(request: Request) -> Record:
        checked = check(request)
        own = ", ".join(f"{name}={value}" for name, value in request.settings.items())
        with interruptible() as interrupt:
            try:
                with Bar(f"{checked.title} {own} seed {request.seed}", console, lambda: interrupt.asked) as bar:
                    return run(prepare(checked), store, device=device, watch=bar)
            except Stopped:
                console.print("stopped and saved: run the same command to go on")
                raise typer.Exit(INTERRUPTED) from None

    return carry_out
