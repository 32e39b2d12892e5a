"""Whether a claim is supported, contradicted or undecided by the values of some seeds, at fixed looks.

A contrast is tested at 5, 10, 20 and 40 seeds. Each look spends a part of the 5 %, fixed in
advance (`LOOKS`), on a t-interval of the mean over its first seeds. By Bonferroni's inequality, all of them contain the
true value with a probability of at least 95 %, and so does their intersection, which is the interval of the contrast.
The verdict is therefore valid whenever the test stops, and the test may be continued with more seeds. The first look
that decides ends the test: seeds beyond it, made for other claims, do not count, so that the verdict does not depend on
them.

A claim says that each of its contrasts lies between two bounds. It is **supported** if the interval of each does; for
that, no correction is needed, since if the claim is false, it is false of one contrast, whose interval would have to
miss the truth. It is **contradicted** if the interval of some contrast lies outside; the intervals for that are
corrected for the number of contrasts. Whether the claim is true or false, a wrong verdict has a probability of at most
5 %, for normally distributed values.

The same value for every seed, as scores on a few examples have, does not prove that there is no spread: the standard
deviation is taken to be at least a tenth of the margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast import metrics
from holdfast.claims.definition import PaperClaim

LOOKS = {5: 0.03, 10: 0.01, 20: 0.005, 40: 0.005}
"""The part of the 5 % that each number of seeds spends."""
LEAST = min(LOOKS)
LEAST_SPREAD = 0.1
"""The smallest standard deviation that is accepted, as a share of the margin."""
Outcome = Literal["supported", "contradicted", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("supported", "contradicted", "undecided")


@dataclass(frozen=True)
class ContrastEstimate:
    """A contrast: its mean over the seeds of the last look, and the intervals that support or contradict the claim."""

    name: str
    low: float
    high: float
    """The bounds between which the claim says that it lies."""
    values: Mapping[int, float]
    """Its value for each seed that counts."""
    looked: int = 0
    """How many seeds the last look had; 0: there were too few for a look."""
    mean: float = math.nan
    interval: tuple[float, float] = (-math.inf, math.inf)
    corrected: tuple[float, float] = (-math.inf, math.inf)
    """The interval corrected for the number of contrasts, which contradicts the claim if it lies outside the bounds."""
    deviation: float = math.nan
    """The standard deviation over all seeds, at least the smallest that is accepted."""

    @property
    def supports(self) -> bool:
        """Whether its interval is within the bounds."""
        return self.low < self.interval[0] <= self.interval[1] < self.high

    @property
    def contradicts(self) -> bool:
        """Whether its corrected interval is outside the bounds."""
        low, high = self.corrected
        return low <= high and (high < self.low or low > self.high)

    @property
    def slack(self) -> float:
        """How far its interval is within the bounds; negative if it is not, or not wholly."""
        return min(self.interval[0] - self.low, self.high - self.interval[1])

    @property
    def detectable(self) -> float:
        """The distance from a bound at which the last look would have led to a verdict with a probability of 80 %."""
        if not self.looked:
            return metrics.Undefined(f"it has fewer than {LEAST} seeds")
        return metrics.detectable(self.deviation, self.looked, LOOKS[self.looked])


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim, and the contrast that decides it."""

    outcome: Outcome
    why: str
    estimates: tuple[ContrastEstimate, ...]
    """One for each contrast of the claim."""
    decisive: ContrastEstimate
    """The contrast that contradicts, or else the one whose interval is the least within its bounds."""

    @property
    def seeds(self) -> int:
        """How many seeds the last look of the decisive contrast had; before the first look, how many there are."""
        return self.decisive.looked or len(self.decisive.values)


def judge(claim: PaperClaim, values: Sequence[Mapping[int, float]], gaps: Sequence[str] = ()) -> Verdict:
    """The verdict on a claim, from the values of each contrast by seed; `gaps` says why values are undefined, if so.

    >>> from pathlib import Path
    >>> from holdfast.claims.definition import parsed
    >>> claim = {"id": "a", "says": "A.", "where": "1", "statistic": "difference", "of": ["x/acc", 0], "margin": 1}
    >>> found = parsed({"runs": {"x": {}}, "claim": [claim]}, "mine", Path("mine.toml")).claims[0]
    >>> judge(found, [dict(enumerate([3.0, 4.0, 3.5, 4.5, 5.0]))]).outcome
    'supported'
    """
    most = max((len(series) for series in values), default=0)
    found = None
    for count in [count for count in LOOKS if count < most] + [most]:
        found = _judged(claim, [_first(count, series) for series in values], gaps)
        if found.outcome != "undecided":
            break
    assert found is not None
    return found


def _first(count: int, values: Mapping[int, float]) -> dict[int, float]:
    return {seed: values[seed] for seed in sorted(values)[:count]}


def _judged(claim: PaperClaim, values: Sequence[Mapping[int, float]], gaps: Sequence[str]) -> Verdict:
    count = len(claim.contrasts)
    estimates = tuple(
        estimate(str(contrast), contrast.low, contrast.high, series, claim.margin, count)
        for contrast, series in zip(claim.contrasts, values, strict=True)
    )
    weakest = min(estimates, key=lambda each: (each.slack, each.looked))
    if gaps:
        return Verdict("undecided", gaps[0], estimates, weakest)
    if against := [each for each in estimates if each.contradicts]:
        worst = min(against, key=lambda each: each.slack)
        return Verdict("contradicted", _against(claim, worst), estimates, worst)
    if all(each.supports for each in estimates):
        return Verdict("supported", "the whole interval is within what the claim says", estimates, weakest)
    return Verdict("undecided", _open(weakest), estimates, weakest)


def estimate(
    name: str, low: float, high: float, values: Mapping[int, float], margin: float, contrasts: int = 1
) -> ContrastEstimate:
    """The mean and intervals of a contrast after as many looks as its seeds allow."""
    ordered = {seed: values[seed] for seed in sorted(values)}
    numbers = list(ordered.values())
    if len(numbers) < LEAST:
        return ContrastEstimate(name, low, high, ordered, deviation=spread(numbers, margin))
    inner, outer, looked = (-math.inf, math.inf), (-math.inf, math.inf), 0
    for looked in (count for count in LOOKS if count <= len(numbers)):
        own = numbers[:looked]
        inner = _narrowed(inner, own, LOOKS[looked], margin)
        outer = _narrowed(outer, own, LOOKS[looked] / contrasts, margin)
    mean, deviation = metrics.mean(numbers[:looked]), spread(numbers, margin)
    return ContrastEstimate(name, low, high, ordered, looked, mean, inner, outer, deviation)


def spread(values: Sequence[float], margin: float) -> float:
    """The standard deviation of some seeds' values, at least the smallest that is accepted; undefined for one seed."""
    if len(values) < 2:
        return metrics.Undefined("one seed has no deviation")
    return max(metrics.standard_deviation(values), LEAST_SPREAD * margin)


def _narrowed(known: tuple[float, float], values: Sequence[float], level: float, margin: float) -> tuple[float, float]:
    """The intersection of an interval with that of one look."""
    from scipy.special import stdtrit

    mean = metrics.mean(values)
    bound = float(stdtrit(len(values) - 1, 1 - level / 2))
    width = bound * spread(values, margin) / math.sqrt(len(values))
    return max(known[0], mean - width), min(known[1], mean + width)


def _against(claim: PaperClaim, worst: ContrastEstimate) -> str:
    """In which way the data contradict the claim."""
    low, high = worst.corrected
    which = f"{worst.name}: " if len(claim.contrasts) > 1 else ""
    if low > worst.high or (worst.low == -claim.margin and high < worst.low):
        return f"{which}the difference is larger than the margin"
    return f"{which}{'it is the other way round' if high < 0 else 'any difference is smaller than the margin'}"


def _open(weakest: ContrastEstimate) -> str:
    if not weakest.looked:
        return f"{len(weakest.values)} of at least {LEAST} seeds"
    if weakest.interval[0] > weakest.interval[1]:
        return "its looks disagree: the seeds are not alike"
    return "the interval includes a bound of the claim"
