"""`holdfast plan`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import RunError, UserError, nearest

if TYPE_CHECKING:
    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import Plan
    from holdfast.experiments.ray import RunResources
    from holdfast.experiments.remote import Remote
    from holdfast.experiments.schedule import PlanResult
    from holdfast.experiments.store import Store

ENGINES = ("local", "ray")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    file: Annotated[str, typer.Argument(help="A plan in TOML or Python, or the name of a benchmark that ships one.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell which runs there are, and what they cost; no data is made.")
    ] = False,
    scale: Annotated[str | None, typer.Option(help="Another scale than the plan's: tiny, small, large, paper.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Another number of seeds than the plan's.")] = None,
    data: Annotated[str | None, typer.Option(help="The folder of the official files; else the world's.")] = None,
    out: Annotated[str, typer.Option(help="The store: a folder, for Ray one that all nodes see; or s3://...")] = "runs",
    engine: Annotated[str, typer.Option(help="local, or ray.")] = "local",
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", "--workers", min=0, help="How many runs at once; 0: as many as cores, or as GPUs."
        ),
    ] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Another number of threads a run than the plan's; by default 1.")
    ] = None,
    tries: Annotated[int, typer.Option(min=1, help="How often a run that fails or dies is tried.")] = 3,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    address: Annotated[str, typer.Option(help="The Ray cluster; without it, a local one is started.")] = "",
    cpus: Annotated[
        float | None, typer.Option(min=0, help="CPUs that Ray gives each run; by default its threads.")
    ] = None,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that Ray gives each run; a fraction shares one.")] = 0,
    memory: Annotated[float, typer.Option(min=0, help="Memory that Ray sets aside for each run, in GB.")] = 0,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the shapes that come often.")] = False,
    needs: Annotated[
        bool, typer.Option("--needs/--no-needs", help="Also make the runs that some measures are taken against.")
    ] = True,
    save_seconds: Annotated[float, typer.Option(min=0, help="Save a checkpoint each so many seconds.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """Carry out a whole experiment: every run of a plan, and what they need. What is done is not run again."""
    from rich.console import Console

    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import graph
    from holdfast.experiments.planfile import changed, read_plan
    from holdfast.experiments.remote import Remote, is_remote, local_copy
    from holdfast.experiments.store import Store

    if engine not in ENGINES:
        raise UserError(f"there is no engine {engine!r}: {nearest(engine, ENGINES)}")
    requests = changed(read_plan(file, scale), seeds, data=data, threads=threads)
    remote = Remote(out) if is_remote(out) else None
    store = local_copy(out) if remote else Store(out)
    with Console(stderr=True, highlight=False).status(f"planning {len(requests)} runs"):
        found = graph(requests, needs, read=not dry_run)
    if dry_run:
        if remote:
            from holdfast.experiments.remote import LIGHT

            for run in remote.done():
                remote.down(run, store, LIGHT)
        _print_plan(found, store, as_json)
        return
    options = Options(device, save_seconds=save_seconds, compiled=compiled, remote=out if remote else "")
    if engine == "ray":
        from holdfast.experiments.ray import RunResources

        share = RunResources(found.threads if cpus is None else cpus, gpus, memory)
        result = _on_ray(found, store, options, address, share, tries, remote)
    else:
        result = _local(found, store, options, jobs, tries, remote)
    _tell(result, store, out, as_json)


def _local(plan: Plan, store: Store, options: Options, jobs: int, tries: int, remote: Remote | None) -> PlanResult:
    from holdfast.cli.carry import follow
    from holdfast.experiments.local import Workers, devices

    with Workers(store, options, jobs or len(devices(options.device, threads=plan.threads))) as workers:
        return follow(plan, store, workers, tries, remote)


def _print_plan(plan: Plan, store: Store, as_json: bool) -> None:
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.cost import kind_of, lines
    from holdfast.reports.tables import Grid

    found = lines(plan, store)
    known = {line.kind: line.seconds for line in found}
    left = [(line, line.runs - line.done) for line in found if line.runs > line.done]
    unknown = sum(count for line, count in left if line.seconds is None)
    seconds = sum(count * line.seconds for line, count in left if line.seconds is not None)
    unread = {run for run, config in plan.configs.items() if not config.settled}
    if as_json:
        done = plan.done(store)
        print_json(
            {
                "runs": len(plan.configs),
                "done": len(done),
                "seconds": seconds,
                "runs_of_unknown_cost": unknown,
                "nodes": [
                    {
                        "id": run,
                        "id_is_final": config.settled,
                        "command": None if config.after in unread else config.request.command() or None,
                        "asked": run in plan.wanted,
                        "needs": dict(plan.needs[run]),
                        "after": config.after,
                        "done": run in done,
                        "seconds": known[kind_of(config)],
                    }
                    for run, config in plan.configs.items()
                ],
            }
        )
        return
    rows = tuple(
        (
            f"{line.kind[0]} {line.kind[1]}".strip(),
            line.kind[2],
            line.kind[3],
            f"{line.runs:,}",
            f"{line.done:,}",
            "unknown" if line.seconds is None else _time(line.seconds),
        )
        for line in found
    )
    needed = len(plan.configs) - len(plan.wanted)
    begin = sum(config.after is not None for config in plan.configs.values())
    notes = [f"{len(plan.configs):,} runs: {len(plan.wanted):,} asked for, and {needed:,} that these need."]
    if begin:
        notes.append(f"{begin:,} of them begin with the weights of another.")
    ready = sum(line.done for line in found)
    if ready == len(plan.configs):
        notes.append("All are done.")
    elif unknown < len(plan.configs) - ready:
        notes.append(f"{ready:,} are done; the others take about {_time(seconds)} of one process.")
    if unknown:
        notes.append(f"What {unknown:,} of them take is unknown: no like run is in {store.path}.")
    if unread:
        notes.append(
            f"The data of {len(unread):,} of them was not looked at: their ids are not known yet, and those count as "
            "done that were made with the same settings, on data of the same folder or the world's."
        )
    print_grid(Grid("plan", ("benchmark", "model", "algorithm", "runs", "done", "each"), rows, tuple(notes)))


def _tell(result: PlanResult, store: Store, out: str, as_json: bool) -> None:
    """What was done, what failed, and the command that repeats it."""
    from rich.console import Console

    from holdfast.cli.screen import print_json

    failed, plan = result.failed(), result.plan
    if as_json:
        print_json(
            {
                "runs": len(plan.configs),
                "tried": len(result.tries),
                "seconds": result.seconds,
                "failed": [
                    {
                        "id": each.id,
                        "run": plan.labels[each.id],
                        "reason": each.reason,
                        "tries": result.tries.get(each.id, 0),
                        "command": _repeat(result, each.id, store),
                    }
                    for each in failed
                ],
            }
        )
    else:
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        done = sum(outcome.status == "done" for outcome in result.outcomes.values())
        console.print(f"{done} of {len(plan.configs)} runs are done, {len(result.tries)} of them now, in {out}")
        for each in failed:
            console.print(f"failed: {plan.labels[each.id]}: {each.reason}", markup=False)
            console.print(f"  again: {_repeat(result, each.id, store)}", markup=False)
    if failed:
        same = shlex.join(["holdfast", *sys.argv[1:]])
        raise RunError(f"{len(failed)} of {len(plan.configs)} runs failed; all of them again: {same}")


def _repeat(result: PlanResult, run: str, store: Store) -> str:
    request = result.plan.configs[run].request
    if not (command := request.command()):
        return request.again()
    return command if store.path == Path("runs") else f"{command} --out {shlex.quote(str(store.path))}"


def _on_ray(
    plan: Plan, store: Store, options: Options, address: str, share: RunResources, tries: int, remote: Remote | None
) -> PlanResult:
    from holdfast.cli.carry import follow
    from holdfast.experiments.ray import Cluster

    with Cluster(store, options, address, share) as cluster:
        return follow(plan, store, cluster, tries, remote)


def _time(seconds: float) -> str:
    """A time for people.

    >>> _time(4000), _time(75), _time(0.25)
    ('1 h 6 min', '1 min 15 s', '0.2 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
