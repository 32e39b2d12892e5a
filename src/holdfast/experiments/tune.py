"""Settings chosen on validation data: every point of a grid is a run, and the reported split is never used."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

import numpy as np

from holdfast import registry
from holdfast.engine.files import write_json
from holdfast.errors import UserError, nearest
from holdfast.experiments.config import Config
from holdfast.experiments.plan import Plan, graph
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import finish
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Record, Store
from holdfast.metrics.pooling import doubtful, pool
from holdfast.types import Score

Log = tuple[Sequence[Score], Mapping[str, Sequence[Score]]]
"""The scores of a run, and those of the runs that it compares with, by name."""


@dataclass(frozen=True)
class Trial:
    """One point of the grid."""

    settings: Mapping[str, str]
    values: tuple[float, ...]
    """The measure on validation data for each seed; NaN if there is none, as for a failed run."""
    runs: tuple[str, ...]
    """The id of the run of each seed."""
    records: tuple[Record, ...]
    """The records of the runs that are done."""

    @property
    def mean(self) -> float:
        """The mean over seeds; NaN if a seed has no value."""
        return math.fsum(self.values) / len(self.values)

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the runs that failed."""
        done = {record.id for record in self.records}
        return tuple(run for run in self.runs if run not in done)


def points(grid: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Every combination of a grid's values.

    >>> list(points({"ewc.strength": ["1", "10"], "train.epochs": ["5"]}))
    [{'ewc.strength': '1', 'train.epochs': '5'}, {'ewc.strength': '10', 'train.epochs': '5'}]
    """
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def some_points(grid: Mapping[str, Sequence[str]], most: int | None, seed: int, who: str) -> list[dict[str, str]]:
    """The points of a grid; with `most`, that many of them, drawn at random and kept in the grid's order.

    >>> len(some_points({"ewc.strength": ["1", "10", "100"], "train.epochs": ["1", "5"]}, 4, 0, "ewc"))
    4
    """
    found = list(points(grid))
    if most is None or most == len(found):
        return found
    if most > len(found):
        raise UserError(
            f"the grid of {who} has {len(found)} points, fewer than --trials {most}: give its settings more values, or "
            "ask for fewer trials"
        )
    return [found[place] for place in sorted(np.random.default_rng(seed).permutation(len(found))[:most])]


def grid_of(request: Request, grid: Mapping[str, Sequence[str]], others: Sequence[Request]) -> dict[str, Sequence[str]]:
    """The part of a grid for one of several algorithms: without the settings that only others of them have."""
    foreign = set().union(*map(_names, others)) - _names(request)
    return {key: values for key, values in grid.items() if key.partition(".")[0] not in foreign}


def _names(request: Request) -> set[str]:
    return {registry.find(registry.row(word)[0], "algorithm").name for word in request.algorithm.split("+")}


def tune(
    request: Request,
    chosen: Sequence[Mapping[str, str]],
    by: str,
    seeds: Sequence[int],
    carry_out: Callable[[Plan], Mapping[str, Record]],
    known: Sequence[str],
) -> list[Trial]:
    """Run these points for every seed, and return the trials in order; the caller chooses by their means.

    `carry_out` executes the runs of a plan, or finds them done. A point with a failed run has no mean. Points that
    stand for the same runs (`0.1,0.10`) are one. With `request.stages`, only the first stages are learned and
    scored: later ones have no influence.
    """
    if by not in known:
        raise UserError(f"unknown measure {by!r}: {nearest(by, known)}")
    if not any(chosen):
        raise UserError("there is nothing to choose among: give a grid, such as --grid ewc.strength=100,1000,10000")
    requests = [
        [replace(request, seed=seed, settings={**request.settings, **point}) for seed in seeds] for point in chosen
    ]
    setups = Setups()
    plan = graph((each for point in requests for each in point), setups=setups)
    return judged(plan, list(zip(chosen, requests, strict=True)), carry_out(plan), by, setups)


def judged(
    plan: Plan,
    requests: Sequence[tuple[Mapping[str, str], Sequence[Request]]],
    records: Mapping[str, Record],
    by: str,
    setups: Setups,
) -> list[Trial]:
    """The trials of points, each with its requests, from the records of a finished plan."""
    named = [[plan.run(each) for each in own] for _, own in requests]
    logs = {
        run: _validation(plan, run, records, _learned(plan.configs[run], setups))
        for run in chain(*named)
        if run in records
    }
    values = _values(plan, logs, by)
    trials: dict[tuple[str, ...], Trial] = {}
    for (point, _), own in zip(requests, named, strict=True):
        runs = tuple(own)
        done = (records[run] for run in runs if run in records)
        trials.setdefault(runs, Trial(point, tuple(values.get(run, math.nan) for run in runs), runs, tuple(done)))
    return list(trials.values())


def best(trials: Sequence[Trial], higher: bool) -> list[Trial]:
    """The trials with the best mean, in the grid's order: several if they tie, none if no trial has a mean.

    >>> trials = [Trial({"ewc.strength": word}, values, (), ()) for word, values in
    ...           [("1", (math.nan, 0.9)), ("10", (0.5, 0.7)), ("100", (0.6, 0.6)), ("1000", (0.4, 0.6))]]
    >>> [trial.settings["ewc.strength"] for trial in best(trials, higher=True)]
    ['10', '100']
    """
    means = [trial.mean for trial in trials if not math.isnan(trial.mean)]
    if not means:
        return []
    top = max(means) if higher else min(means)
    # Means of equal sums may differ in their last bit.
    return [trial for trial in trials if math.isclose(trial.mean, top, rel_tol=1e-9, abs_tol=1e-12)]


def mark(
    chosen: Sequence[Request],
    how: Mapping[str, Any],
    carry_out: Callable[[Plan], Mapping[str, Record]],
    store: Store,
) -> list[str]:
    """Execute the chosen runs, or find them done, record how they were chosen, and return their ids."""
    plan = graph(chosen)
    records = carry_out(plan)
    found = [finish(plan, run, store) for run in plan.wanted if run in records]
    for record in found:
        assert record is not None, "it is among the records"
        note(record, how, store)
    return [record.id for record in found if record is not None]


def note(record: Record, how: Mapping[str, Any], store: Store) -> None:
    """Record how a run's settings were chosen."""
    write_json(store.folder(record.id).path / "record.json", replace(record, tuning=dict(how)).to_json())


def _validation(plan: Plan, run: str, records: Mapping[str, Record], learned: Collection[str] | None) -> Log:
    """The scores of a run on validation data alone, and those of the runs that it compares with, by name.

    Of its own scores, only those on the evaluation sets in `learned` count, if these are given.
    """
    scores = on_validation(records[run].scores)
    if learned is not None:
        scores = [score for score in scores if score.name.partition("/")[0] in learned]  # `a/b` is a detail of `a`
    if not scores:
        raise UserError(f"run {run} was not scored on validation data: there is nothing to choose by")
    return scores, {
        name: on_validation(records[other].scores) for name, other in plan.needs[run].items() if other in records
    }


def _values(plan: Plan, logs: Mapping[str, Log], by: str) -> dict[str, float]:
    """A measure of the candidate runs, by their ids; a pooled measure uses the same tasks for all."""
    shares = {run: plan.configs[run].benchmark.shares(*log).get(by, {}) for run, log in logs.items()}
    without, found = doubtful(shares.values()), dict[str, float]()
    for run, (scores, others) in logs.items():
        benchmark = plan.configs[run].benchmark
        measures = benchmark.summary(scores) | benchmark.relative(scores, others)
        found[run] = pool(shares[run], without) if shares[run] else measures.get(by, math.nan)
    return found


def _learned(config: Config, setups: Setups) -> set[str] | None:
    """The evaluation sets of the stages that a run learns, if it learns only the first stages; else None.

    A mean that included stages that were never learned would be too low, and unrelated to the settings.
    """
    if config.stages is None:
        return None
    return {each.name for stage in setups.stream(config).stages for each in stage.validation} or None


def on_validation(scores: Sequence[Score]) -> list[Score]:
    """The validation scores in place of the test scores, which are dropped.

    >>> log = [Score(1, 9, "a", "validation", 5, 0.5), Score(1, 9, "a", "test", 5, 0.9)]
    >>> [(score.split, score.score) for score in on_validation(log)]
    [('test', 0.5)]
    """
    return [replace(score, split="test") for score in scores if score.split == "validation"]
