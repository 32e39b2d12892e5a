"""`holdfast run`."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import (
    Compiled,
    Data,
    Device,
    Jobs,
    Json,
    Model,
    Needs,
    Out,
    Precision,
    SaveSeconds,
    Scale,
    Seed,
    Seeds,
    SkipBad,
    Threads,
)
from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.experiments.local import Options
    from holdfast.experiments.request import Request
    from holdfast.experiments.store import Store

FEW = 4
"""With up to this many runs, print the command that shows each one."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)


def run(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="What to learn: see `holdfast list benchmarks`.")
    ] = "patterns",
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAME",
            help="How to learn: see `holdfast list algorithms`. A,B runs both; A+B combines; file.py:Name is yours.",
        ),
    ] = "finetune",
    model: Model = None,
    scale: Scale = None,
    setting: Annotated[
        str | None, typer.Option(metavar="WORD", help="The benchmark's setting, such as class or task.")
    ] = None,
    order: Annotated[str | None, typer.Option(metavar="ORDER", help="The order of the stages.")] = None,
    data: Data = None,
    skip_bad: SkipBad = 0,
    seed: Seed = 0,
    seeds: Seeds = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SETTING=VALUE",
            help="Change a setting, as in replay.capacity=200, train.epochs=3 or model.width=64; repeat for more.",
        ),
    ] = None,
    out: Out = Path("runs"),
    device: Device = "auto",
    ranks: Annotated[int, typer.Option(metavar="N", min=1, help="Train each run with N processes.")] = 1,
    jobs: Jobs = 0,
    threads: Threads = 1,
    precision: Precision = "float32",
    compiled: Compiled = False,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Keep the predictions behind every score.")
    ] = False,
    start: Annotated[
        str, typer.Option(metavar="RUN@STAGE", help="Start from the weights that a run had after a stage.")
    ] = "",
    stages: Annotated[int | None, typer.Option(metavar="N", min=1, help="Learn only the first N stages.")] = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="KIND=N",
            help="End training when this is spent, evenly along the stream: flops=1e13, passes=20000 or bytes=1e6.",
        ),
    ] = "",
    needs: Needs = True,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Also make the runs that start from the weights after each stage.")
    ] = False,
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="NAME", help="Also log to tensorboard, wandb or mlflow.")
    ] = None,
    save_steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Save a checkpoint every N steps.")] = None,
    save_seconds: SaveSeconds = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Set up the data and show the size of each run, but train nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a benchmark with each algorithm and seed.

    Prints a table of the results. Interrupted runs resume; finished runs are not repeated.
    """
    algorithms = [word.strip() for word in algorithm.split(",") if word.strip()]
    if not algorithms:
        raise UserError("--algorithm is empty: name one, such as finetune; `holdfast list algorithms` shows all")
    if len(algorithms) * seeds > 1 and jobs != 1 and ranks == 1 and not dry_run:
        from holdfast.experiments import warm

        warm.server()  # workers import torch while this process does
    from holdfast.experiments.local import Options
    from holdfast.experiments.request import Request, settings_for

    follows = {"benchmark.downstream": True} if downstream else {}
    values = settings_for(algorithms, parse_settings(settings or []) | follows)
    requests = [
        Request(
            benchmark,
            name,
            model,
            scale,
            setting,
            order,
            s,
            precision,  # type: ignore[arg-type]
            predictions,
            values[name],
            data,
            skip_bad,
            start,
            stages,
            threads,
            budget,
        )
        for name in algorithms
        for s in range(seed, seed + seeds)
    ]
    options = Options(device, save_steps, save_seconds, compiled, tuple(log or ()))
    if dry_run:
        _show_sizes(requests, out, needs, as_json)
    else:
        _run_all(requests, out, options, ranks, jobs, needs, as_json)


def _run_all(
    requests: list[Request], out: Path, options: Options, ranks: int, jobs: int, needs: bool, as_json: bool
) -> None:
    from rich.console import Console

    from holdfast.cli.carry import carry, end
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.engine.ranks import join, leave
    from holdfast.experiments.config import resolve
    from holdfast.experiments.launch import launch
    from holdfast.experiments.plan import graph
    from holdfast.experiments.runner import find_device
    from holdfast.experiments.schedule import finish
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store
    from holdfast.reports.ending import ending
    from holdfast.reports.tables import comparison

    place, store, setups = find_device(options.device), Store(out), Setups()
    requests = [replace(request, start=whole_start(request.start, store)) for request in requests]
    if ranks > 1 and "RANK" not in os.environ:
        for request in requests:
            resolve(request)  # so that a mistake is reported once, not by every process
        sys.exit(launch(ranks, ["-m", "holdfast", *sys.argv[1:]]))
    plan = graph(requests, needs, setups)
    group = join()
    if group.size > 1 and place.type == "cuda":
        options = replace(options, device=f"cuda:{os.environ.get('LOCAL_RANK', '0')}")
    result = carry(plan, store, options, setups, group, jobs)
    leave()
    if not group.first:
        return
    found = [finish(plan, run, store) for run in plan.wanted]
    records = [record for record in found if record is not None]
    if as_json:
        print_json([record.to_json() for record in records])
    elif records:
        print_grid(comparison(records))
        if last := ending(records):
            typer.echo(f"\n{last}\n")
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        store_flag = "" if out == Path("runs") else f" --out {shlex.quote(str(out))}"
        if len(records) > FEW:
            console.print(f"[dim]{len(records)} runs: holdfast list runs{store_flag}[/dim]")
        for record in records if len(records) <= FEW else []:
            name = f"{record.algorithm}, seed {record.config['seed']}"
            console.print(f"[dim]{name}: holdfast show {record.id}{store_flag}[/dim]")
    end(result)


def _show_sizes(requests: list[Request], out: Path, needs: bool, as_json: bool) -> None:
    """The size that each run would have."""
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.errors import in_bytes
    from holdfast.experiments.frozen import most_bytes
    from holdfast.experiments.plan import graph
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.size import estimate, free_memory, parameters_outside
    from holdfast.experiments.store import Store
    from holdfast.reports.tables import Grid

    setups, store = Setups(), Store(out)
    requests = [replace(request, start=whole_start(request.start, store)) for request in requests]
    plan = graph(requests, needs, setups)
    ready = {run: (config, setups.of(config)) for run, config in plan.configs.items()}
    sizes = {run: estimate(*each, parameters_outside(*each)) for run, each in ready.items()}
    if as_json:
        print_json({run: None if size is None else asdict(size) for run, size in sizes.items()})
        return
    rows = tuple(
        (run, plan.labels[run], *(("–",) * 3 if size is None else _size(size.parameters, size.memory, size.disk)))
        for run, size in sizes.items()
    )
    notes = (
        "Memory: weights, gradients and moments, if all of the model is trained; a batch's activations come on top.",
        "Disk: two checkpoints and the final weights. The cache keeps the outputs of frozen layers, if a run has "
        f"any: at most {in_bytes(most_bytes())}.",
        f"This machine has {in_bytes(free_memory())} of memory free.",
    )
    print_grid(Grid("what would be run", ("id", "run", "parameters", "memory", "disk"), rows, notes))


def _size(parameters: int, memory: int, disk: int) -> tuple[str, str, str]:
    from holdfast.errors import in_bytes

    return f"{parameters:,}", in_bytes(memory), in_bytes(disk)


def whole_start(start: str, store: Store) -> str:
    """A start with the full id of its run, which a user may abbreviate."""
    run, at, stage = start.partition("@")
    return f"{store.find(run).id}@{stage}" if at and len(run) < 12 else start


def parse_settings(words: list[str], option: str = "--set") -> dict[str, str]:
    """Read settings such as `train.epochs=3`, given after an option."""
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "." not in name:
            raise UserError(f"{option} {word!r}: write it as owner.name=value, such as train.epochs=3")
        values[name.strip()] = value.strip()
    return values
