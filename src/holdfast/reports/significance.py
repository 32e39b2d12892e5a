"""Whether one algorithm beats another, and which ones may be marked as the best: paired over the seeds, corrected.

The runs of two algorithms with the same seed have the same data order and first weights, so their difference is taken
seed by seed. With as few seeds as are usual, a bootstrap is overconfident; Student's t is exact for
normally distributed differences at any count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from holdfast import metrics

LEVEL = 0.05
MARK_LEVEL = 0.04
"""The level of the tests that decide marks. At 5 %, two equal rows would have a single winner in exactly 5 % of tables,
and in more where scores on few test examples give the same difference for every seed."""
LEAST = 3
"""The minimum number of pairs that are tested: with two, t needs a difference of 13 standard errors."""


@dataclass(frozen=True)
class PairedDifference:
    """Two rows: their mean difference over common seeds, its 95 % interval, and the p-value, plain and corrected."""

    first: str
    second: str
    difference: float
    half_width: float
    p_value: float
    corrected: float
    seeds: int
    detectable: float
    """The smallest true difference that these seeds find at 5 % with a probability of 80 %."""

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
        return metrics.Undefined("one pair cannot be tested")
    mean, deviation = metrics.mean(differences), metrics.standard_deviation(differences)
    scale = max(map(abs, differences))
    if deviation <= 1e-12 * scale or not scale:
        return 1.0 if not scale else metrics.Undefined("the difference is the same for every seed")
    from scipy.special import stdtr

    return float(2 * stdtr(len(differences) - 1, -abs(mean) * math.sqrt(len(differences)) / deviation))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected by Holm's step-down (1979): the k-th smallest of m times m - k + 1, never falling.

    Undefined values stay undefined, and do not count as tests.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected, largest = list(p_values), 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        corrected[place] = largest
    return corrected


def pairs(values: Mapping[str, Mapping[int, float]]) -> list[PairedDifference]:
    """All pairs of rows with enough common seeds, from each row's values by seed."""
    return family([found for a, b in combinations(values, 2) if (found := difference(values, a, b)) is not None])


def difference(values: Mapping[str, Mapping[int, float]], first: str, second: str) -> PairedDifference | None:
    """The difference of two rows, not corrected; None with fewer than `LEAST` common seeds."""
    found = _differences(values[first], values[second])
    if len(found) < LEAST:
        return None
    p, least = paired_t(found), metrics.detectable(metrics.standard_deviation(found), len(found))
    return PairedDifference(first, second, metrics.mean(found), metrics.t_interval(found), p, p, len(found), least)


def family(tests: Sequence[PairedDifference], others: int = 0) -> list[PairedDifference]:
    """Tests with p-values that Holm's method corrects for all of them, and for `others` that are not reported.

    Those count as p = 1, so the correction is never too small.
    """
    corrected = holm([*(test.p_value for test in tests), *[1.0] * others])
    return [replace(test, corrected=p) for test, p in zip(tests, corrected, strict=False)]


@dataclass(frozen=True)
class Leaders:
    """The rows to mark in one column: the best, and those that are not distinguishable from it."""

    names: frozenset[str] = frozenset()
    why: str = ""
    """Why no row is marked."""
    apart: Mapping[str, str] = field(default_factory=dict)
    """Rows that could not be compared, or are not marked for another reason, with that reason."""
    seeds: tuple[int, ...] = ()
    """The numbers of common seeds in the tests, each once."""


def leaders(
    values: Mapping[str, Mapping[int, float]], higher: bool | None, chance: Mapping[str, float] | None = None
) -> Leaders:
    """The rows to mark, from each row's values by seed: the best mean, and the rows that it does not beat.

    The row with the best mean is tested against each other row that shares enough seeds with it: paired t, two-sided,
    corrected by Holm over these tests. A row that the test finds worse is not marked. The same difference for
    every seed counts as p = 0, its limit. `chance` is the score of guessing: a row whose 95 % interval over its seeds
    reaches it is not marked.

    >>> er, ewc, si = ({0: 61, 1: 64, 2: 62}, {0: 60, 1: 66, 2: 60}, {0: 21, 1: 25, 2: 20})
    >>> sorted(leaders({"er": er, "ewc": ewc, "si": si}, higher=True).names)
    ['er', 'ewc']
    >>> leaders({"er": {0: 0.61}, "si": {0: 0.21}}, higher=True).why
    'one seed'
    """
    if higher is None:
        return Leaders(why="it is not known whether more is better")
    sign = 1.0 if higher else -1.0
    known = {name: {s: sign * v for s, v in row.items() if math.isfinite(v)} for name, row in values.items()}
    known = {name: row for name, row in known.items() if row}
    if len(known) < 2:
        return Leaders(why="only one algorithm competes" if known else "no algorithm has a value")
    shared = {(a, b): len(known[a].keys() & known[b].keys()) for a in known for b in known if a != b}
    able = [name for name in known if any(n >= LEAST for pair, n in shared.items() if pair[0] == name)]
    if not able:
        one = all(len(row) == 1 for row in known.values())
        return Leaders(why="one seed" if one else f"no two algorithms have {LEAST} seeds in common")
    best = max(able, key=lambda name: math.fsum(known[name].values()) / len(known[name]))
    tested, apart = dict[str, list[float]](), dict[str, str]()
    for name in (name for name in known if name != best):
        if shared[best, name] >= LEAST:
            tested[name] = _differences(known[best], known[name])
        else:
            apart[name] = f"fewer than {LEAST} seeds in common with the best"
    if not apart and not any(map(any, tested.values())):
        return Leaders(why="all values are equal")
    p_values = (paired_t(differences) for differences in tested.values())
    corrected = holm([0.0 if math.isnan(p) else p for p in p_values])
    worse = {
        n for (n, each), p in zip(tested.items(), corrected, strict=True) if math.fsum(each) > 0 and p < MARK_LEVEL
    }
    ties = {best, *tested} - worse
    guessed = {name: sign * chance[name] for name in ties if chance and name in chance}
    marked = ties - {name for name, level in guessed.items() if not above(list(known[name].values()), level)}
    if not marked:
        return Leaders(why="no score is above chance")
    if len(marked) == 1 < len(ties):  # alone it would appear to be the winner, which the test does not support
        return Leaders(why="the best is not distinguishable from a score that is not above chance")
    apart |= dict.fromkeys((name for name in known if name in ties - marked), "not above chance")
    return Leaders(frozenset(marked), "", apart, tuple(sorted({*map(len, tested.values())})))


def above(values: Sequence[float], level: float) -> bool:
    """Whether the lower end of the 95 % interval of the mean is above a level, by more than rounding."""
    return metrics.mean(values) - metrics.t_interval(values) > level + 1e-9 * abs(level)


def _differences(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    """The difference of two rows for each common seed; differences equal up to rounding are made equal."""
    seeds = sorted(first.keys() & second.keys())
    step = 1e-12 * max((max(abs(first[seed]), abs(second[seed])) for seed in seeds), default=0.0)
    return [round((first[seed] - second[seed]) / step) * step if step else 0.0 for seed in seeds]
