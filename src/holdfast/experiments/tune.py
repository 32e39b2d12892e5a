"""Settings chosen on validation data: every point of a grid is a run, and the reported split is never looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from holdfast.benchmarks.base import Benchmark
from holdfast.errors import UserError, nearest
from holdfast.experiments.config import Request, check
from holdfast.experiments.store import Record
from holdfast.types import Score


@dataclass(frozen=True)
class Trial:
    """One point of the grid: its settings, the measure on validation data for each seed, and the runs."""

    settings: Mapping[str, str]
    values: tuple[float, ...]
    records: tuple[Record, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds; NaN where a seed has none."""
        return math.fsum(self.values) / len(self.values)


def points(grid: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Every combination of a grid's values.

    >>> list(points({"ewc.strength": ["1", "10"], "train.epochs": ["5"]}))
    [{'ewc.strength': '1', 'train.epochs': '5'}, {'ewc.strength': '10', 'train.epochs': '5'}]
    """
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def tune(
    request: Request,
    grid: Mapping[str, Sequence[str]],
    by: str,
    seeds: Sequence[int],
    carry_out: Callable[[Request], Record],
    known: Sequence[str],
) -> list[Trial]:
    """Run every point for every seed, and give the trials in the grid's order; the caller chooses among their means.

    `carry_out` makes a run, or finds it done. A measure that is taken against a reference run has that run made too.
    """
    if by not in known:
        raise UserError(f"there is no measure {by!r}: {nearest(by, known)}")
    if not grid:
        raise UserError("there is nothing to choose among: give a grid, such as --grid ewc.strength=100,1000,10000")
    requests = [replace(request, settings={**request.settings, **point}) for point in points(grid)]
    for each in requests:  # a mistake in the last point is told before the first run
        check(each)
    benchmark = check(request).benchmark
    trials = []
    for point, asked in zip(points(grid), requests, strict=True):
        records = tuple(carry_out(replace(asked, seed=seed)) for seed in seeds)
        trials.append((point, records))
    against: dict[int, Record] = {}
    if benchmark.reference:
        own = {k: v for k, v in request.settings.items() if k.split(".")[0] in ("benchmark", "train", "model")}
        plain = replace(request, algorithm=benchmark.reference, settings=own)
        against = {seed: carry_out(replace(plain, seed=seed)) for seed in seeds}
    return [
        Trial(
            point,
            tuple(
                validation_measures(benchmark, record, against.get(seed)).get(by, math.nan)
                for seed, record in zip(seeds, records, strict=True)
            ),
            records,
        )
        for point, records in trials
    ]


def validation_measures(benchmark: Benchmark, record: Record, reference: Record | None = None) -> dict[str, Any]:
    """The benchmark's measures, taken on the validation data alone."""
    scores = on_validation(record.scores)
    if not scores:
        raise UserError(f"run {record.id} was not scored on validation data: there is nothing to choose by")
    found = dict(benchmark.summary(scores))
    return found | (benchmark.relative(scores, on_validation(reference.scores)) if reference else {})


def on_validation(scores: Sequence[Score]) -> list[Score]:
    """The validation scores, in the place of the test scores, which are left out.

    >>> log = [Score(1, 9, "a", "validation", 5, 0.5), Score(1, 9, "a", "test", 5, 0.9)]
    >>> [(score.split, score.score) for score in on_validation(log)]
    [('test', 0.5)]
    """
    return [replace(score, split="test") for score in scores if score.split == "validation"]
