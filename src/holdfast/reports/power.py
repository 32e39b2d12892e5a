"""How many seeds a difference between two rows of an experiment needs, from the spread over the seeds so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from holdfast import metrics
from holdfast.experiments.store import Record
from holdfast.reports.groups import Experiment, experiments
from holdfast.reports.marks import by_seed
from holdfast.reports.tables import Grid, headline

COLUMNS = ("experiment", "measure", "pairs", "sd", "needs", "largest sd", "needs")


@dataclass(frozen=True)
class Spread:
    """The standard deviation over seeds of the differences between the rows of an experiment, by its main measure."""

    title: str
    measure: str
    pairs: int
    """How many pairs of rows have two seeds or more in common."""
    typical: float
    """The root of the mean variance over these pairs."""
    largest: float


def spreads(records: Sequence[Record]) -> list[Spread]:
    """The spread in each experiment in which some rows have two seeds or more in common."""
    return [found for each in experiments(records) if (found := _spread(each)) is not None]


def _spread(experiment: Experiment) -> Spread | None:
    if (found := headline(experiment.records)) is None:
        return None
    name, measure = found
    rows = [by_seed(group, name) for group in experiment.rows.values()]
    own = [metrics.standard_deviation(each) for a, b in combinations(rows, 2) if len(each := _common(a, b)) > 1]
    if not own:
        return None
    typical = math.sqrt(metrics.mean([deviation**2 for deviation in own]))
    return Spread(experiment.title, measure.title, len(own), typical * measure.factor, max(own) * measure.factor)


def _common(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    return [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]


def table(records: Sequence[Record], difference: float) -> Grid:
    """How many seeds a difference needs, in the units of the tables, at 5 % with a power of 80 %."""
    rows = tuple(
        (
            each.title,
            each.measure,
            str(each.pairs),
            f"{each.typical:.3g}",
            _seeds(difference, each.typical),
            f"{each.largest:.3g}",
            _seeds(difference, each.largest),
        )
        for each in spreads(records)
    )
    notes = (
        f"Needs: the seeds with which a paired t-test at 5 % finds a true difference of {difference:g} with a "
        "probability of 80 %, for a pair of rows with the typical spread, and for the pair with the largest. Sd: the "
        "standard deviation of the difference over seeds.",
    )
    return Grid(f"seeds to find a difference of {difference:g}", COLUMNS, rows, notes)


def _seeds(difference: float, deviation: float) -> str:
    found = metrics.pairs_needed(difference, deviation)
    return "–" if math.isnan(found) else f"{found:.0f}"
