"""The runs that claims need, their cost, and the order in which they give the most verdicts for their time.

A run that several claims need is planned once. The next claim is always the one whose verdict is most likely for each
second that its remaining runs take, given those of the claims before it. The probability of a verdict is estimated from
the mean and the deviation over the existing seeds; without any, it is taken to be a half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from holdfast import metrics
from holdfast.claims.definition import Claims, PaperClaim
from holdfast.claims.evidence import Evidence
from holdfast.claims.gathering import requests_of
from holdfast.claims.verdicts import LOOKS, ContrastEstimate, spread
from holdfast.experiments.config import Config
from holdfast.experiments.cost import Kind, expected, kind_of
from holdfast.experiments.plan import Plan
from holdfast.experiments.planfile import changed
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.metrics.power import POWER

EVEN = 0.5
"""The probability of a verdict that is assumed before any run."""
UNKNOWN = 60.0
"""The seconds that are assumed for a run, for the order of claims, if nothing is known about its cost."""


@dataclass(frozen=True)
class ClaimTest:
    """How claims are to be tested: the scale, the data, and the number of seeds."""

    scale: str
    seeds: int
    data: str | None = None

    def requests(self, paper: Claims, claim: PaperClaim) -> list[Request]:
        """The requests of a claim, for all seeds."""
        alone = [each for runs in claim.runs for each in requests_of(paper, runs, self.scale, self.data)]
        return changed(alone, self.seeds)


@dataclass(frozen=True)
class ClaimStep:
    """A claim in the order of testing."""

    claim: PaperClaim
    runs: frozenset[str]
    """All runs that it needs."""
    missing: frozenset[str]
    """The runs that are neither done nor needed by an earlier claim."""
    seconds: float | None
    """The seconds that the missing runs take; None if unknown."""
    chance: float
    """The probability that they lead to a verdict."""
    seeds: float
    """How many seeds find a difference as large as the margin with a probability of 80 %; undefined without a pilot."""


def rounds(seeds: int) -> list[int]:
    """The numbers of seeds at which a test with at most `seeds` looks at the values.

    >>> rounds(5), rounds(12), rounds(2)
    ([5], [5, 10, 12], [2])
    """
    return [*(count for count in LOOKS if count < seeds), seeds]


def joined(plans: Iterable[Plan]) -> Plan:
    """The runs of several plans, each once, without their needs: for questions about single runs."""
    configs, labels = dict[str, Config](), dict[str, str]()
    for plan in plans:
        configs |= plan.configs
        labels |= plan.labels
    return Plan(configs, labels, {})


def costs(plan: Plan, store: Store) -> dict[str, float | None]:
    """The expected seconds of each run, from similar runs or from others of its benchmark; None if unknown."""
    known = expected(store)
    return {run: _seconds(kind_of(config), known) for run, config in plan.configs.items()}


def _seconds(kind: Kind, known: Mapping[Kind, float]) -> float | None:
    near = [value for other, value in known.items() if other[:2] == kind[:2]]
    return known.get(kind, metrics.mean(near) if near else None)


def ordered(
    claims: Mapping[PaperClaim, frozenset[str]],
    done: Iterable[str],
    seconds: Mapping[str, float | None],
    evidence: Mapping[PaperClaim, Evidence],
    seeds: int,
) -> list[ClaimStep]:
    """The claims, each with the runs that it needs, in the order of testing; decided ones come last.

    >>> from holdfast.claims.definition import chosen, read_claims
    >>> a, b = chosen(read_claims())[:2]
    >>> steps = ordered({a: frozenset("xyz"), b: frozenset("xy")}, "x", {"x": 9, "y": 5, "z": 50}, {}, 5)
    >>> [(step.claim is b, sorted(step.missing), step.seconds) for step in steps]
    [(True, ['y'], 5.0), (False, ['z'], 50.0)]
    """
    have, left, found = set(done), dict(claims), list[ClaimStep]()
    chances = {claim: chance(evidence.get(claim), seeds) for claim in claims}
    while left:
        claim = min(left, key=partial(_price, left, have, seconds, chances))
        runs = left.pop(claim)
        missing = frozenset(runs - have)
        each = [seconds[run] for run in missing]
        total = None if None in each else math.fsum(value for value in each if value is not None)
        found.append(ClaimStep(claim, runs, missing, total, chances[claim], seeds_for(evidence.get(claim))))
        have |= runs
    return found


def _price(
    left: Mapping[PaperClaim, frozenset[str]],
    have: set[str],
    seconds: Mapping[str, float | None],
    chances: Mapping[PaperClaim, float],
    claim: PaperClaim,
) -> float:
    cost = math.fsum(UNKNOWN if (value := seconds[run]) is None else value for run in left[claim] - have)
    return cost / chances[claim] if chances[claim] else math.inf


def chance(found: Evidence | None, seeds: int) -> float:
    """The probability that this number of seeds leads to a verdict; 0 if one is known, or if these seeds are already
    done.
    """
    if found is None or found.gaps:  # a gap may be a run that was not made
        return EVEN
    estimates = found.verdict.estimates
    if found.verdict.outcome != "undecided" or all(len(each.values) >= seeds for each in estimates):
        return 0.0
    if any(len(each.values) < 2 for each in estimates):
        return EVEN
    known = [_outlook(each, found.claim.margin) for each in estimates]
    return max(_likely(known, count) for count in LOOKS if count <= max(seeds, min(LOOKS)))


def _likely(known: Sequence[tuple[float, float]], count: int) -> float:
    """The probability that one look leads to a verdict: one contrast contradicts the claim, or all support it."""
    against = [metrics.power(d, s, count, LOOKS[count] / len(known)) for d, s in known if d < 0]
    return max(against) if against else min(metrics.power(d, s, count, LOOKS[count]) for d, s in known)


def _outlook(found: ContrastEstimate, margin: float) -> tuple[float, float]:
    """How far the mean over all seeds is within the bounds, and the deviation."""
    numbers = list(found.values.values())
    mean = metrics.mean(numbers)
    return min(mean - found.low, found.high - mean), spread(numbers, margin)


def seeds_for(found: Evidence | None, difference: float | None = None) -> float:
    """How many seeds decide a claim with a probability of 80 %, if its contrasts are `difference` from their bounds.

    By default, that is the margin. It is one of the numbers of seeds with a look.
    """
    if found is None or any(len(each.values) < 2 for each in found.verdict.estimates):
        return metrics.Undefined("it needs two seeds as a pilot")
    wanted = found.claim.margin if difference is None else difference
    worst = max(spread(list(each.values.values()), found.claim.margin) for each in found.verdict.estimates)
    for count, level in LOOKS.items():
        if metrics.power(wanted, worst, count, level) >= POWER:
            return float(count)
    return metrics.Undefined(f"it needs more than {max(LOOKS)} seeds")


def worth_testing(steps: Iterable[ClaimStep], known: Mapping[PaperClaim, Evidence]) -> list[ClaimStep]:
    """The steps whose runs may lead to a verdict.

    If all runs of a claim are made but a value is undefined, they may have been made without those that its measure
    needs: carrying out the plan completes them.
    """
    return [
        step for step in steps if (step.chance and step.missing) or (step.claim in known and known[step.claim].gaps)
    ]


def open_claims(claims: Sequence[PaperClaim], evidence: Mapping[PaperClaim, Evidence], first: bool) -> list[PaperClaim]:
    """The claims that more runs may decide: no verdict and, after the first round, no value that is undefined."""

    def is_open(found: Evidence) -> bool:
        return found.verdict.outcome == "undecided" and (first or not found.gaps)

    return [claim for claim in claims if claim not in evidence or is_open(evidence[claim])]
