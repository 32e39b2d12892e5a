"""`holdfast run`."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.experiments.local import Options
    from holdfast.experiments.request import Request
    from holdfast.experiments.store import Store

FEW = 4
"""Up to so many runs, each is told how to be shown."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)


def run(
    benchmark: Annotated[str, typer.Argument(help="What to learn; `holdfast list benchmarks`.")] = "patterns",
    algorithm: Annotated[
        str,
        typer.Option("--algorithm", "-a", help="How to learn: A,B runs each, A+B combines; file.py:Class is yours."),
    ] = "finetune",
    model: Annotated[str | None, typer.Option(help="The model; the benchmark's own by default.")] = None,
    scale: Annotated[str | None, typer.Option(help="How much data: tiny, small, large, paper.")] = None,
    setting: Annotated[str | None, typer.Option(help="The benchmark's setting, such as class or task.")] = None,
    order: Annotated[str | None, typer.Option(help="The order of the stages.")] = None,
    data: Annotated[str | None, typer.Option(help="The folder of the official files; else the world's.")] = None,
    skip_bad: Annotated[int, typer.Option(min=0, help="Drop at most so many bad records, and tell them.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, counted from the first.")] = 1,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting: replay.capacity=200, train.epochs=3, model.width=64.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The store: the folder of all runs.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    ranks: Annotated[int, typer.Option(min=1, help="How many processes train one run together.")] = 1,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", "--workers", min=0, help="How many runs at once; 0: as many as cores, or as GPUs."
        ),
    ] = 0,
    threads: Annotated[
        int, typer.Option(min=1, help="How many threads compute a run on the CPU; another number is another run.")
    ] = 1,
    precision: Annotated[str, typer.Option(help="float32, float64 or bfloat16.")] = "float32",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the shapes that come often; on a GPU, as CUDA graphs.")
    ] = False,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Keep every prediction behind every score.")
    ] = False,
    start: Annotated[str, typer.Option(help="RUN@STAGE: begin with that run's weights after that stage.")] = "",
    stages: Annotated[int | None, typer.Option(min=1, help="Learn only so many stages, the first.")] = None,
    needs: Annotated[
        bool, typer.Option("--needs/--no-needs", help="Also make the runs that some measures are taken against.")
    ] = True,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Also make the runs that follow from the weights after each stage.")
    ] = False,
    log: Annotated[list[str] | None, typer.Option("--log", help="Also log to: tensorboard.")] = None,
    save_steps: Annotated[int | None, typer.Option(min=1, help="Save a checkpoint each so many steps.")] = None,
    save_seconds: Annotated[float, typer.Option(min=0, help="Save a checkpoint each so many seconds.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Records as JSON on standard output.")] = False,
) -> None:
    """Run a benchmark with each algorithm and seed, and print its table. A run that was stopped goes on; one that is
    done is not run again.
    """
    from holdfast.experiments.local import Options
    from holdfast.experiments.request import Request, settings_for

    algorithms = [word.strip() for word in algorithm.split(",") if word.strip()]
    if not algorithms:
        raise UserError("--algorithm is empty: name one, such as finetune; `holdfast list algorithms` shows all")
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
        )
        for name in algorithms
        for s in range(seed, seed + seeds)
    ]
    options = Options(device, save_steps, save_seconds, compiled, tuple(log or ()))
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
    from holdfast.reports.tables import comparison

    place, store, setups = find_device(options.device), Store(out), Setups()
    requests = [replace(request, start=whole_start(request.start, store)) for request in requests]
    if ranks > 1 and "RANK" not in os.environ:
        for request in requests:
            resolve(request)  # a mistake is reported once, before there are several processes
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
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        store_flag = "" if out == Path("runs") else f" --out {shlex.quote(str(out))}"
        if len(records) > FEW:
            console.print(f"[dim]{len(records)} runs: holdfast list runs{store_flag}[/dim]")
        for record in records if len(records) <= FEW else []:
            name = f"{record.algorithm}, seed {record.config['seed']}"
            console.print(f"[dim]{name}: holdfast show {record.id}{store_flag}[/dim]")
    end(result)


def whole_start(start: str, store: Store) -> str:
    """A start with the whole id of its run, of which a user may give the beginning."""
    run, at, stage = start.partition("@")
    return f"{store.find(run).id}@{stage}" if at and len(run) < 12 else start


def parse_settings(words: list[str], option: str = "--set") -> dict[str, str]:
    """Settings by name, from words such as `train.epochs=3` after an option."""
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "." not in name:
            raise UserError(f"{option} {word!r}: write it as owner.name=value, such as train.epochs=3")
        values[name.strip()] = value.strip()
    return values
