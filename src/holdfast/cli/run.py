"""`holdfast run`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import RunError, Stopped, UserError

if TYPE_CHECKING:
    from holdfast.experiments.config import Request

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
    precision: Annotated[str, typer.Option(help="float32, float64 or bfloat16.")] = "float32",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the shapes that come often; on a GPU, as CUDA graphs.")
    ] = False,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Keep every prediction behind every score.")
    ] = False,
    save_steps: Annotated[int | None, typer.Option(min=1, help="Save a checkpoint each so many steps.")] = None,
    save_seconds: Annotated[float, typer.Option(min=0, help="Save a checkpoint each so many seconds.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Records as JSON on standard output.")] = False,
) -> None:
    """Run a benchmark with each algorithm and seed, and print its table. A run that was stopped goes on; one that is
    done is not run again.
    """
    from holdfast.experiments.config import Request, settings_for

    algorithms = [word.strip() for word in algorithm.split(",") if word.strip()]
    if not algorithms:
        raise UserError("--algorithm is empty: name one, such as finetune; `holdfast list algorithms` shows all")
    values = settings_for(algorithms, parse_settings(settings or []))
    requests = [
        Request(benchmark, name, model, scale, setting, order, s, precision, predictions, values[name], data, skip_bad)  # type: ignore[arg-type]
        for name in algorithms
        for s in range(seed, seed + seeds)
    ]
    _run_all(requests, out, device, ranks, save_steps, save_seconds, compiled, as_json)


def _run_all(
    requests: list[Request],
    out: Path,
    device: str,
    ranks: int,
    save_steps: int | None,
    save_seconds: float,
    compiled: bool,
    as_json: bool,
) -> None:
    from rich.console import Console

    from holdfast.cli import INTERRUPTED
    from holdfast.cli.launch import launch
    from holdfast.cli.screen import Bar, print_grid, print_json
    from holdfast.engine.ranks import join, leave
    from holdfast.experiments.config import check, prepare
    from holdfast.experiments.runner import complete, find_device, interruptible, run
    from holdfast.experiments.store import Store
    from holdfast.reports.tables import comparison

    checked = [check(request) for request in requests]  # a mistake in the last request is told before the first run
    place = find_device(device)
    if ranks > 1 and "RANK" not in os.environ:
        sys.exit(launch(ranks, sys.argv[1:]))
    group, store = join(), Store(out)
    if group.size > 1 and place.type == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    console = Console(stderr=True, quiet=not group.first, highlight=False, soft_wrap=True)
    records, failed = {}, []
    with interruptible() as interrupt:
        for number, each in enumerate(checked, 1):
            ready = prepare(each)
            if ready.config.id in records:
                continue  # asked for twice, under two names
            title = f"{each.title}, seed {each.request.seed}"
            found = store.folder(ready.config.id).path
            many = rf"\[{number}/{len(checked)}] " if len(checked) > 1 else ""
            try:
                with Bar(many + title, console, lambda: interrupt.asked) as bar:
                    records[ready.config.id] = run(
                        ready,
                        store,
                        device=device,
                        every_steps=save_steps,
                        every_seconds=save_seconds,
                        watch=bar,
                        waiting=lambda holder: console.print(f"this run is being worked on by {holder}: waiting"),
                        ranks=group,
                        compiled=compiled,
                    )
            except Stopped:
                console.print(f"stopped and saved in {found}: run the same command to go on", markup=False)
                sys.exit(INTERRUPTED)
            except UserError:
                raise
            except Exception as error:
                failed.append(title)
                known = isinstance(error, RunError)
                reason = str(error) if known else f"{type(error).__name__}: {error} (traceback in {found}/failure.txt)"
                console.print(f"failed: {title}: {reason}", markup=False)
                if group.size > 1:  # the other ranks are still in the middle of it
                    sys.exit(1)
            if interrupt.asked:
                console.print("stopped between two runs: run the same command to go on")
                sys.exit(INTERRUPTED)
    leave()
    if not group.first:
        return
    records = {name: complete(record, checked[0].benchmark, store) for name, record in records.items()}
    if as_json:
        print_json([record.to_json() for record in records.values()])
    elif records:
        print_grid(comparison(list(records.values())))
        store_flag = "" if out == Path("runs") else f" --out {shlex.quote(str(out))}"
        if len(records) > FEW:
            console.print(f"[dim]{len(records)} runs: holdfast list runs{store_flag}[/dim]")
        for record in records.values() if len(records) <= FEW else []:
            name = f"{record.algorithm}, seed {record.config['seed']}"
            console.print(f"[dim]{name}: holdfast show {record.id}{store_flag}[/dim]")
    if failed:
        raise RunError(f"{len(failed)} of {len(checked)} runs failed; run the same command to try them again")


def parse_settings(words: list[str]) -> dict[str, str]:
    """Settings by name, from words such as `train.epochs=3`."""
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "." not in name:
            raise UserError(f"--set {word!r}: write it as owner.name=value, such as train.epochs=3")
        values[name.strip()] = value.strip()
    return values
