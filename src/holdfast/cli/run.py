"""`holdfast run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.errors import RunError, UserError

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
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, counted from the first.")] = 1,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting: replay.capacity=200, train.epochs=3, model.width=64.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The store: the folder of all runs.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    ranks: Annotated[int, typer.Option(min=1, help="How many processes train one run together.")] = 1,
    precision: Annotated[str, typer.Option(help="float32, float64 or bfloat16.")] = "float32",
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
    if ranks > 1:
        _again_with_ranks(ranks)
    from holdfast.experiments.config import Request, settings_for

    algorithms = [word.strip() for word in algorithm.split(",") if word.strip()]
    if not algorithms:
        raise UserError("--algorithm is empty: name one, such as finetune; `holdfast list algorithms` shows all")
    values = settings_for(algorithms, _settings(settings or []))
    requests = [
        Request(benchmark, name, model, scale, setting, order, s, precision, predictions, values[name])  # type: ignore[arg-type]
        for name in algorithms
        for s in range(seed, seed + seeds)
    ]
    _run_all(requests, out, device, save_steps, save_seconds, as_json)


def _run_all(
    requests: list[Any], out: Path, device: str, save_steps: int | None, save_seconds: float, as_json: bool
) -> None:
    import torch
    from rich.console import Console

    from holdfast.cli import INTERRUPTED
    from holdfast.cli.screen import Bar, print_grid, print_json
    from holdfast.engine.loop import Stopped
    from holdfast.engine.ranks import join, leave
    from holdfast.experiments.config import prepare
    from holdfast.experiments.runner import interruptible, run
    from holdfast.experiments.store import Store
    from holdfast.reports.tables import comparison

    device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    store, group = Store(out), join()
    if group.size > 1 and device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    console = Console(stderr=True, quiet=not group.first, highlight=False)
    prepared = [prepare(request) for request in requests]  # a mistake in the last request is told before the first run
    records, failed = [], []
    for number, ready in enumerate(prepared, 1):
        title = f"{ready.config.algorithm}, seed {ready.config.seed}"
        if len(prepared) > 1:
            title = f"[{number}/{len(prepared)}] {title}"
        found = store.folder(ready.config.id)
        bar = Bar(title.replace("[", r"\["), console)
        try:
            with bar, interruptible(bar):
                records.append(
                    run(
                        ready,
                        store,
                        device=device,
                        every_steps=save_steps,
                        every_seconds=save_seconds,
                        watch=bar,
                        waiting=lambda holder: console.print(f"this run is being worked on by {holder}: waiting"),
                        ranks=group,
                    )
                )
        except Stopped:
            console.print(f"stopped and saved in {found.path}: run the same command to go on", soft_wrap=True)
            sys.exit(INTERRUPTED)
        except UserError:
            raise
        except RunError as error:
            failed.append(f"{title}: {error}")
            console.print(f"failed: {failed[-1]}", soft_wrap=True, markup=False)
        except Exception as error:
            failed.append(f"{title}: {type(error).__name__}: {error}")
            console.print(
                f"failed: {failed[-1]} (traceback in {found.path / 'failure.txt'})", soft_wrap=True, markup=False
            )
    leave()
    if not group.first:
        return
    if as_json:
        print_json([record.to_json() for record in records])
    elif records:
        print_grid(comparison(records))
        store_flag = "" if out == Path("runs") else f" --out {out}"
        if len(records) > FEW:
            console.print(f"[dim]{len(records)} runs: holdfast list runs{store_flag}[/dim]", soft_wrap=True)
        for record in records if len(records) <= FEW else []:
            name = f"{record.algorithm}, seed {record.config['seed']}"
            console.print(f"[dim]{name}: holdfast show {record.id}{store_flag}[/dim]", soft_wrap=True)
    if failed:
        raise RunError(f"{len(failed)} of {len(prepared)} runs failed; run the same command to try them again")


def _settings(words: list[str]) -> dict[str, str]:
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "." not in name:
            raise UserError(f"--set {word!r}: write it as owner.name=value, such as train.epochs=3")
        values[name.strip()] = value.strip()
    return values


def _again_with_ranks(ranks: int) -> None:
    """Become `torchrun`, which starts this command once for each rank."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if not skip and not word.startswith("--ranks="):
            skip = word == "--ranks"
            if skip:
                continue
            words.append(word)
        else:
            skip = False
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "-m", "holdfast"]
    threads = max((os.cpu_count() or 1) // ranks, 1)
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *launcher, *words], {"OMP_NUM_THREADS": str(threads), **os.environ})
