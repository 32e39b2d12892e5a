"""`holdfast tune`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.experiments.plan import Plan
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
    precision: Annotated[str, typer.Option(help="float32, float64 or bfloat16.")] = "float32",
    stages: Annotated[
        int | None, typer.Option(min=1, help="Choose on so many stages, the first; what comes later plays no part.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", "--workers", min=0, help="How many runs at once; 0: as many as cores, or as GPUs."
        ),
    ] = 0,
    out: Annotated[Path, typer.Option(help="The store: the folder of all runs.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """Run an algorithm at each point of a grid, and choose by a measure on validation data, never on the test data.

    The chosen runs, of all stages, say in their records by what and among how many they were chosen.
    """
    from holdfast.cli.run import parse_settings
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.config import Request, check
    from holdfast.experiments.store import Store
    from holdfast.experiments.tune import mark, points
    from holdfast.experiments.tune import tune as search
    from holdfast.metrics import Undefined
    from holdfast.reports.tables import Grid, measures

    request = Request(
        benchmark,
        algorithm,
        model,
        scale,
        setting,
        order,
        precision=precision,  # type: ignore[arg-type]
        data=data,
        settings=parse_settings(settings or []),
        stages=stages,
    )
    wanted = {name: value.split(",") for name, value in parse_settings(grid).items()}
    known = measures(check(request).names["benchmark"])
    numbers, carry_out = range(seed, seed + seeds), _carry_out(out, device, jobs)
    trials = search(request, wanted, by, numbers, carry_out, list(known))
    shown = known[by]
    ranked = sorted((t for t in trials if not math.isnan(t.mean)), key=lambda t: t.mean, reverse=shown.higher)
    if not ranked:
        why = next((f": {v.reason}" for t in trials for v in t.values if isinstance(v, Undefined)), "")
        raise UserError(f"no run of the grid has a {by} on validation data{why}")
    best = ranked[0]
    chosen = [replace(request, seed=s, stages=None, settings={**request.settings, **best.settings}) for s in numbers]
    tried = len(list(points(wanted)))
    how = {"by": by, "split": "validation", "stages": stages, "trials": tried, "seeds": seeds, "grid": wanted}
    marked = mark(chosen, how, carry_out, Store(out))
    if as_json:
        found = [{"settings": t.settings, by: t.values, "runs": [r.id for r in t.records]} for t in trials]
        print_json(how | {"points": found, "best": best.settings, "chosen": marked})
        return
    rows = tuple(
        (
            ", ".join(f"{name}={value}" for name, value in t.settings.items()),
            "–" if math.isnan(t.mean) else f"{shown.factor * t.mean:.1f}",
            "best" if t is best else "",
        )
        for t in trials
    )
    first = f", of the first {stages} stage{'s' if stages > 1 else ''}" if stages else ""
    notes = (
        f"{tried} points, {seeds} seed{'s' if seeds > 1 else ''}; chosen on validation data alone{first}.",
        f"On the test data: {chosen[0].command()}{f' --seeds {seeds}' if seeds > 1 else ''}",
    )
    print_grid(Grid(f"{shown.title} on validation data", ("settings", shown.title, ""), rows, notes))


def _carry_out(out: Path, device: str, jobs: int) -> Callable[[Plan], dict[str, Record]]:
    from holdfast.cli.carry import carry
    from holdfast.experiments.config import Preparation
    from holdfast.experiments.local import Options
    from holdfast.experiments.store import Store

    store = Store(out)

    def carry_out(plan: Plan) -> dict[str, Record]:
        carry(plan, store, Options(device), Preparation(), jobs=jobs)
        records = {name: store.folder(name).record() for name in plan.nodes}
        return {name: record for name, record in records.items() if record is not None}

    return carry_out
