"""Whether one algorithm beats another: paired over the seeds, corrected for how many pairs were looked at.

The runs of two algorithms with the same seed have the same data order and first weights, so their difference is taken
seed by seed. With the few seeds that anyone runs, a bootstrap of them is too sure of itself; Student's t is exact for
normally distributed differences at any count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from holdfast import metrics

LEVEL = 0.05
LEAST = 3
"""Fewer pairs than this are not tested: with two, t needs a difference of 13 standard errors."""


@dataclass(frozen=True)
class Pair:
    """Two rows: their mean difference over common seeds, its 95 % interval, and the p-value, plain and corrected."""

    first: str
    second: str
    difference: float
    half_width: float
    p_value: float
    corrected: float
    seeds: int

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below 5 %."""
        return self.corrected < LEVEL


def paired_t(differences: Sequence[float]) -> float:
    """The two-sided p-value of Student's paired test, p = 2 T_{n-1}(-|mean| sqrt(n) / s); undefined without spread.

    >>> round(paired_t([1.0, 2.0, 3.0]), 4)  # t = 2 / (1 / sqrt(3)) = 3.464 with 2 degrees of freedom
    0.0742
    """
    if len(differences) < 2:
        return metrics.Undefined("one pair says nothing about chance")
    mean, deviation = metrics.mean(differences), metrics.standard_deviation(differences)
    scale = max(map(abs, differences))
    if deviation <= 1e-12 * scale or not scale:
        return 1.0 if not scale else metrics.Undefined("the difference is the same for every seed")
    from scipy.special import stdtr

    return float(2 * stdtr(len(differences) - 1, -abs(mean) * math.sqrt(len(differences)) / deviation))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected by Holm's step-down (1979): the k-th smallest of m times m - k + 1, never falling.

    What is undefined stays so, and counts as no test.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected, largest = list(p_values), 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        corrected[place] = largest
    return corrected


def pairs(values: Mapping[str, Mapping[int, float]]) -> list[Pair]:
    """All pairs of rows with enough common seeds, from each row's values by seed."""
    found = []
    for first, second in combinations(values, 2):
        seeds = sorted(values[first].keys() & values[second].keys())
        differences = [values[first][seed] - values[second][seed] for seed in seeds]
        if len(seeds) >= LEAST:
            width = metrics.t_interval(differences)
            found.append((first, second, metrics.mean(differences), width, paired_t(differences), len(seeds)))
    corrected = holm([p for *_, p, _ in found])
    return [Pair(a, b, mean, width, p, c, n) for (a, b, mean, width, p, n), c in zip(found, corrected, strict=True)]
