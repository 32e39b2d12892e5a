"""`holdfast plan`."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import Compiled, Data, Device, Jobs, Json, Needs, SaveSeconds
from holdfast.errors import RunError, UserError, nearest

if TYPE_CHECKING:
    from holdfast.benchmarks.base import Measure
    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import Plan
    from holdfast.experiments.planfile import PlanSearch
    from holdfast.experiments.ray import RunResources
    from holdfast.experiments.remote import Remote
    from holdfast.experiments.request import Request
    from holdfast.experiments.schedule import PlanResult
    from holdfast.experiments.store import Store
    from holdfast.experiments.tune import Trial

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Chosen:
    """The choice that a plan's search made among its trials."""

    title: str
    measure: Measure
    trials: Sequence[Trial]
    tied: Sequence[Trial]

    @property
    def settings(self) -> dict[str, str] | None:
        """The settings of the best point; None if no point has a value."""
        return dict(self.tied[0].settings) if self.tied else None

    def sentence(self) -> str:
        """What was chosen, and the scores of the others."""
        values = "; ".join(f"{_words(each.settings)}: {self._shown(each.mean)}" for each in self.trials)
        if not self.tied:
            return f"nothing could be chosen by {self.measure.title} on validation data ({values})"
        others = f" (the first of {len(self.tied)} that tie)" if len(self.tied) > 1 else ""
        return f"{_words(self.tied[0].settings)}{others}, by {self.measure.title} on validation data ({values})"

    def _shown(self, mean: float) -> str:
        return "–" if math.isnan(mean) else f"{self.measure.factor * mean:.{self.measure.decimals}f}"


def _words(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    file: Annotated[
        str, typer.Argument(metavar="PLAN", help="A TOML or Python file, or a benchmark that comes with a plan.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the runs and what they cost; no data is made.")
    ] = False,
    power: Annotated[
        float | None,
        typer.Option(
            metavar="D", min=0, help="Only say how many seeds a difference of D needs, from runs in the store."
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="SCALE", help="In place of the plan's: tiny, small, large or paper.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The number of seeds, in place of the plan's.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="One model, in place of the plan's.")] = None,
    data: Data = None,
    out: Annotated[
        str, typer.Option(metavar="STORE", help="The store: a folder (with Ray, one that all nodes see) or s3://...")
    ] = "runs",
    engine: Annotated[str, typer.Option(metavar="ENGINE", help="local or ray.")] = "local",
    jobs: Jobs = 0,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="CPU threads of each run, in place of the plan's.")
    ] = None,
    tries: Annotated[int, typer.Option(metavar="N", min=1, help="Try a run that fails or dies up to N times.")] = 3,
    device: Device = "auto",
    address: Annotated[str, typer.Option(metavar="ADDRESS", help="The Ray cluster. Default: start a local one.")] = "",
    cpus: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="CPUs that Ray gives each run. Default: its threads.")
    ] = None,
    gpus: Annotated[
        float, typer.Option(metavar="N", min=0, help="GPUs that Ray gives each run; with a fraction, runs share one.")
    ] = 0,
    memory: Annotated[
        float, typer.Option(metavar="GB", min=0, help="Memory that Ray reserves for each run, in GB.")
    ] = 0,
    compiled: Compiled = False,
    needs: Needs = True,
    save_seconds: SaveSeconds = 60.0,
    as_json: Json = False,
) -> None:
    """Run a whole experiment: every run of a plan.

    The runs that these need are included. Interrupted runs resume; finished runs are not repeated. A dry run looks for
    the files of every run, and ends with status 1 if some cannot be run.
    """
    from rich.console import Console

    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import graph, refused
    from holdfast.experiments.planfile import changed, read_plan, read_searches
    from holdfast.experiments.remote import Remote, is_remote, local_copy
    from holdfast.experiments.store import Store

    if engine not in ENGINES:
        raise UserError(f"unknown engine {engine!r}: {nearest(engine, ENGINES)}")
    requests = changed(read_plan(file, scale), seeds, model=model, data=data, threads=threads)
    searches = read_searches(file, scale, seeds=seeds, model=model, data=data, threads=threads)
    _refuse_unknown(searches)
    remote = Remote(out) if is_remote(out) else None
    store = local_copy(out) if remote else Store(out)
    if power is not None:
        _print_power(requests, store, power, as_json)
        return
    with Console(stderr=True, highlight=False).status(f"planning {len(requests)} runs"):
        found = graph(requests, needs, read=not dry_run)
    if dry_run:
        if remote:
            from holdfast.experiments.remote import LIGHT

            for run in remote.done():
                remote.down(run, store, LIGHT)
        with Console(stderr=True, highlight=False).status("looking for files"):
            failing = refused(found)
        _print_plan(found, store, as_json, failing)
        if failing:
            raise typer.Exit(1)
        return
    options = Options(device, save_seconds=save_seconds, compiled=compiled, remote=out if remote else "")
    if engine == "ray":
        from holdfast.experiments.ray import RunResources

        share = RunResources(found.threads if cpus is None else cpus, gpus, memory)
        result = _on_ray(found, store, options, address, share, tries, remote)
    else:
        result = _local(found, store, options, jobs, tries, remote)
    chosen = _choose(searches, found, store, remote)
    _tell(result, store, out, as_json, chosen)


def _print_power(requests: Sequence[Request], store: Store, difference: float, as_json: bool) -> None:
    """Print how many seeds a difference needs, from the runs of the store on the benchmarks of a plan."""
    from dataclasses import asdict

    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.config import resolve
    from holdfast.reports.power import spreads, table
    from holdfast.reports.runs import load

    kinds = {(c.names["benchmark"], getattr(c.benchmark, "scale", None)) for c in map(resolve, requests)}
    records = load(store.path).records if store.path.is_dir() else []
    own = [r for r in records if (r.config["benchmark"]["name"], r.config["benchmark"].get("scale")) in kinds]
    if not spreads(own):
        raise UserError(
            f"{store.path} has no pilot: two algorithms with the same two seeds on a benchmark of this plan and its "
            "scale; run the plan with --seeds 2 first"
        )
    print_json([asdict(each) for each in spreads(own)]) if as_json else print_grid(table(own, difference))


def _refuse_unknown(searches: Sequence[PlanSearch]) -> None:
    """Raise a UserError, before anything is run, if a search chooses by an unknown measure."""
    from holdfast.experiments.config import resolve

    for search in searches:
        known = resolve(search.requests[0]).benchmark.measures
        if search.by not in known:
            raise UserError(f"unknown measure {search.by!r} to choose by: {nearest(search.by, known)}")
        if known[search.by].higher is None:
            raise UserError(f"{search.by!r} cannot be used to choose: it is not known whether more is better")


def _choose(searches: Sequence[PlanSearch], plan: Plan, store: Store, remote: Remote | None) -> list[Chosen]:
    """Choose on validation data, and record how in the runs that were chosen."""
    from holdfast.experiments.remote import LAST
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.tune import best, judged, note

    setups, found = Setups(), []
    for search in searches:
        for points in search.groups():
            own = {run for _, requests in points for run in map(plan.run, requests)}
            needed = own | {other for run in own for other in plan.needs[run].values()}
            records = {run: record for run in needed if (record := store.folder(run).record()) is not None}
            measure = plan.configs[next(iter(own))].benchmark.measures[search.by]
            trials = judged(plan, points, records, search.by, setups)
            tied = best(trials, bool(measure.higher))
            how = {"by": search.by, "split": "validation", "trials": len(trials), "seeds": len(points[0][1])}
            for run in tied[0].runs if tied else ():
                note(records[run], how, store)
                if remote is not None:
                    remote.up(run, store, [LAST])
            first = plan.configs[plan.run(points[0][1][0])]
            title = " ".join([first.title, str(getattr(first.benchmark, "order", "") or "")]).strip()
            found.append(Chosen(title, measure, trials, tied))
    return found


def _local(plan: Plan, store: Store, options: Options, jobs: int, tries: int, remote: Remote | None) -> PlanResult:
    from holdfast.cli.carry import follow
    from holdfast.experiments.local import Workers, devices

    with Workers(store, options, jobs or len(devices(options.device, threads=plan.threads))) as workers:
        return follow(plan, store, workers, tries, remote)


def _print_plan(plan: Plan, store: Store, as_json: bool, failing: Mapping[str, str]) -> None:
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
                        "refused": failing.get(run),
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
            "unknown" if line.seconds is None else duration(line.seconds),
        )
        for line in found
    )
    needed = len(plan.configs) - len(plan.wanted)
    begin = sum(config.after is not None for config in plan.configs.values())
    notes = [f"{len(plan.configs):,} runs: {len(plan.wanted):,} requested and {needed:,} that these need."]
    if begin:
        notes.append(f"{begin:,} of them start from the weights of another run.")
    ready = sum(line.done for line in found)
    if ready == len(plan.configs):
        notes.append("All are done.")
    elif unknown < len(plan.configs) - ready:
        notes.append(f"{ready:,} are done; the others take one process about {duration(seconds)}.")
    if unknown:
        notes.append(f"The cost of {unknown:,} of them is unknown: {store.path} has no similar run.")
    if unread:
        notes.append(
            f"The data of {len(unread):,} runs was not read, so their ids are not known yet. A run counts as done if "
            "the store has one with the same settings on the same folder of data, or on synthetic data."
        )
    reasons: dict[str, list[str]] = {}
    for run, reason in failing.items():
        reasons.setdefault(reason, []).append(plan.labels[run])
    for reason, labels in reasons.items():
        which = labels[0] if len(labels) == 1 else f"{len(labels):,} runs, such as {labels[0]}"
        notes.append(f"Cannot be run: {which}: {reason}.")
    print_grid(Grid("plan", ("benchmark", "model", "algorithm", "runs", "done", "each"), rows, tuple(notes)))


def _tell(result: PlanResult, store: Store, out: str, as_json: bool, chosen: Sequence[Chosen] = ()) -> None:
    """Report what was done and what failed, with the commands that try it again."""
    from rich.console import Console

    from holdfast.cli.screen import print_json

    failed, plan = result.failed(), result.plan
    if as_json:
        print_json(
            {
                "runs": len(plan.configs),
                "tried": len(result.tries),
                "seconds": result.seconds,
                "chosen": [{"of": each.title, "settings": each.settings} for each in chosen],
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
        console.print(f"{out}: {done} of {len(plan.configs)} runs are done, {len(result.tries)} of them now")
        for choice in chosen:
            console.print(f"{choice.title}: {choice.sentence()}", markup=False)
        for each in failed:
            console.print(f"failed: {plan.labels[each.id]}: {each.reason}", markup=False)
            console.print(f"  again: {_repeat(result, each.id, store)}", markup=False)
    if failed:
        same = shlex.join(["holdfast", *sys.argv[1:]])
        raise RunError(f"{len(failed)} of {len(plan.configs)} runs failed; to try them all again: {same}")


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


def duration(seconds: float) -> str:
    """A duration as text.

    >>> duration(4000), duration(75), duration(0.25)
    ('1 h 6 min', '1 min 15 s', '0.2 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
