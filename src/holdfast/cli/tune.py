"""`holdfast tune`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Data, Device, Jobs, Json, Model, Out, Precision, Scale, Seed, Seeds, Threads
from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.benchmarks.base import Measure
    from holdfast.experiments.plan import Plan
    from holdfast.experiments.request import Request
    from holdfast.experiments.schedule import PlanResult
    from holdfast.experiments.store import Record
    from holdfast.experiments.tune import Trial
    from holdfast.reports.tables import Grid


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tune)


def tune(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="What to learn: see `holdfast list benchmarks`.")
    ],
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", metavar="NAME", help="How to learn; A+B combines two, A,B tunes both.")
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            metavar="SETTING=VALUES",
            help="A setting and its values, as in ewc.strength=100,1000; several span a grid.",
        ),
    ],
    by: Annotated[
        str, typer.Option(metavar="MEASURE", help="The measure to choose by, on validation data, such as cl_score.")
    ],
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Try N points of each algorithm's grid, drawn at random. Default: all."),
    ] = None,
    model: Model = None,
    scale: Scale = None,
    setting: Annotated[str | None, typer.Option(metavar="WORD", help="The benchmark's setting.")] = None,
    order: Annotated[str | None, typer.Option(metavar="ORDER", help="The order of the stages.")] = None,
    data: Data = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SETTING=VALUE", help="Change a setting in all runs.")
    ] = None,
    precision: Precision = "float32",
    stages: Annotated[int | None, typer.Option(metavar="N", min=1, help="Choose on the first N stages only.")] = None,
    jobs: Jobs = 0,
    threads: Threads = 1,
    out: Out = Path("runs"),
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Choose settings on validation data.

    Runs algorithms at points of a grid and chooses by a measure on validation data, never on test data. The
    chosen point is then run on all stages; the records of these runs say how it was chosen, and among how many points.

    For a fair comparison, give several algorithms the same number of trials: `-a ewc,lwf --trials 8`, with `--grid` for
    the settings of each. An algorithm ignores the settings of the others.
    """
    from holdfast.cli.carry import end
    from holdfast.cli.run import parse_settings
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.config import resolve
    from holdfast.experiments.request import Request
    from holdfast.experiments.tune import grid_of, some_points

    words, wanted = [word.strip() for word in algorithm.split(",")], parse_grid(grid)
    requests = [
        Request(
            benchmark,
            word,
            model,
            scale,
            setting,
            order,
            precision=precision,  # type: ignore[arg-type]
            data=data,
            settings=parse_settings(settings or []),
            stages=stages,
            threads=threads,
        )
        for word in words
    ]
    if len(requests) > 1 and trials is None:
        raise UserError("with several algorithms, say how many points each of them may try: --trials 8")
    first, *_ = map(resolve, requests)
    measures = first.benchmark.measures
    if by in measures and measures[by].higher is None:
        raise UserError(f"{by!r} cannot be used to choose: it is not known whether more is better. Use another measure")
    grids = [grid_of(request, wanted, requests) for request in requests]
    asked = [some_points(own, trials, seed, word) for own, word in zip(grids, words, strict=True)]
    results: list[PlanResult] = []
    numbers, carry_out = range(seed, seed + seeds), _carry_out(out, device, jobs, results)
    printed = []
    for request, own, points in zip(requests, grids, asked, strict=True):
        found, table = _search(request, own, points, by, numbers, carry_out, measures, out, results)
        if as_json:
            printed.append(found)
        else:
            print_grid(table)
    if as_json:
        print_json(printed[0] if len(printed) == 1 else printed)
    for result in results:
        end(result)


def _search(
    request: Request,
    grid: Mapping[str, Sequence[str]],
    points: Sequence[Mapping[str, str]],
    by: str,
    numbers: range,
    carry_out: Callable[[Plan], dict[str, Record]],
    measures: Mapping[str, Measure],
    out: Path,
    results: list[PlanResult],
) -> tuple[dict[str, Any], Grid]:
    """Choose among points for one algorithm: what was found, for a program and for a person."""
    from holdfast.experiments.store import Store, out_option
    from holdfast.experiments.tune import best, mark
    from holdfast.experiments.tune import tune as search
    from holdfast.metrics import Undefined

    before = len(results)
    trials = search(request, points, by, numbers, carry_out, list(measures))
    tied, seeds = best(trials, bool(measures[by].higher)), len(numbers)
    if not tied and not results[before].failed():
        why = next((f": {v.reason}" for t in trials for v in t.values if isinstance(v, Undefined)), "")
        raise UserError(f"no run of the grid has {by!r} on validation data{why}")
    how = {
        "by": by,
        "split": "validation",
        # As recorded in the runs: a number beyond the last stage means all stages.
        "stages": next((n for t in trials for r in t.records if (n := r.config.get("stages"))), None),
        "trials": len(trials),
        "failed": sum(bool(trial.failed) for trial in trials),
        "tied": [trial.settings for trial in tied] if len(tied) > 1 else [],
        "seeds": seeds,
        "grid": dict(grid),
    }
    chosen = [
        replace(request, seed=s, stages=None, settings={**request.settings, **trial.settings})
        for trial in tied[:1]
        for s in numbers
    ]
    marked = mark(chosen, how, carry_out, Store(out)) if chosen else []
    lost = [run for run in results[-1].plan.wanted if run not in marked] if chosen else []
    found = [
        {
            "settings": trial.settings,
            by: [None if math.isnan(value) else value for value in trial.values],
            "runs": trial.runs,
            "failed": trial.failed,
        }
        for trial in trials
    ]
    taken = tied[0].settings if tied else None
    told = {"algorithm": request.algorithm, "points": found, "best": taken, "chosen": marked, "chosen_failed": lost}
    notes = [*_notes(how, measures[by], bool(chosen), lost), *_doubt(trials, tied, measures[by], numbers)]
    if chosen:
        again = f"{chosen[0].command()}{f' --seeds {seeds}' if seeds > 1 else ''}{out_option(out)}"
        notes.append(f"On the test data: {again}")
    return how | told, _grid(request.algorithm, trials, tied, measures[by], notes)


def parse_grid(words: Sequence[str]) -> dict[str, list[str]]:
    """Read the values of each setting from words such as `ewc.strength=10,100`.

    >>> parse_grid(["ewc.strength=10,100,10", "train.epochs=5"])
    {'ewc.strength': ['10', '100'], 'train.epochs': ['5']}
    """
    from holdfast.cli.run import parse_settings

    found: dict[str, list[str]] = {}
    for word in words:
        for name, values in parse_settings([word], "--grid").items():
            if name in found:
                raise UserError(f"--grid {name} is given twice: give all values at once, as in {name}=VALUE,VALUE")
            found[name] = list(dict.fromkeys(value.strip() for value in values.split(",")))
    return found


def _grid(
    algorithm: str, trials: Sequence[Trial], tied: Sequence[Trial], measure: Measure, notes: Sequence[str]
) -> Grid:
    """A row for each point: its settings, its mean and the outcome."""
    from holdfast.metrics import Undefined
    from holdfast.reports.tables import Grid

    def fate(trial: Trial) -> str:
        if trial.failed:
            return "failed"
        if trial in tied:
            return "best" if trial is tied[0] else "tied"
        return next((value.reason for value in trial.values if isinstance(value, Undefined)), "")

    rows = tuple(
        (
            ", ".join(f"{name}={value}" for name, value in trial.settings.items()),
            "–" if math.isnan(trial.mean) else f"{measure.factor * trial.mean:,.{measure.decimals}f}",
            fate(trial),
        )
        for trial in trials
    )
    return Grid(f"{algorithm}: {measure.title} on validation data", ("settings", measure.title, ""), rows, tuple(notes))


def _notes(how: Mapping[str, Any], measure: Measure, chosen: bool, lost: Sequence[str]) -> list[str]:
    """How the choice was made, and its caveats."""
    stages = how["stages"]
    first = f", of the first {_many(stages, 'stage')}" if stages else ""
    size = f"{_many(how['trials'], 'point')}, {_many(how['seeds'], 'seed')}"
    notes = [f"{size}; {f'chosen on validation data alone{first}' if chosen else 'nothing could be chosen'}."]
    if how["failed"]:
        notes.append(f"Points with a failed run ({how['failed']} here) have no value and cannot be chosen.")
    if how["tied"]:
        notes.append(f"{len(how['tied'])} points tie for the best {measure.title}; the first of them was chosen.")
    if lost:
        notes.append(f"{len(lost)} of the chosen runs failed: {', '.join(lost)}.")
    return notes


def _doubt(trials: Sequence[Trial], tied: Sequence[Trial], measure: Measure, seeds: Sequence[int]) -> list[str]:
    """Whether the chosen point is distinguishable from the others; it is chosen by its mean in any case."""
    from holdfast.reports.marks import meaning
    from holdfast.reports.significance import leaders

    values = {
        str(place): dict(zip(seeds, trial.values, strict=True))
        for place, trial in enumerate(trials)
        if not math.isnan(trial.mean)
    }
    others = [place for place in values if trials[int(place)] not in tied]
    if not tied or not others:
        return []
    found = leaders(values, measure.higher)
    if not found.names:
        return [f"No test can tell whether the chosen point is better than the others: {found.why}."]
    close = [", ".join(f"{n}={v}" for n, v in trials[int(p)].settings.items()) for p in others if p in found.names]
    rule = meaning(found.seeds).partition(" (")[2]
    if not close:
        return [f"The chosen point is distinguishable from every other point ({rule}."]
    return [f"Chosen by its mean alone; these points are not distinguishable from it ({rule}: {'; '.join(close)}."]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _carry_out(out: Path, device: str, jobs: int, results: list[PlanResult]) -> Callable[[Plan], dict[str, Record]]:
    """A function that makes the runs of a plan and appends the outcome to `results`."""
    from holdfast.cli.carry import carry
    from holdfast.experiments.local import Options
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store

    store = Store(out)

    def carry_out(plan: Plan) -> dict[str, Record]:
        results.append(carry(plan, store, Options(device), Setups(), jobs=jobs))
        records = {name: store.folder(name).record() for name in plan.configs}
        return {name: record for name, record in records.items() if record is not None}

    return carry_out
