"""The order in which claims are tested, and the seeds that they need."""

import math

import numpy as np
import pytest

from holdfast.claims.definition import chosen, read_claims
from holdfast.claims.evidence import Evidence
from holdfast.claims.planning import EVEN, chance, open_claims, ordered, rounds, seeds_for, worth_testing
from holdfast.claims.verdicts import LOOKS

CLAIMS = [claim for claim in chosen(read_claims()) if len(claim.contrasts) == 1 and claim.statistic == "difference"]


def evidence(claim, distance, spread, seeds=3, gaps=()):
    """Values whose mean is this many margins above the bound, with this deviation in margins."""
    drawn = np.random.default_rng(0).standard_normal(seeds)
    drawn = (drawn - drawn.mean()) / (drawn.std(ddof=1) if seeds > 1 else 1)
    values = claim.margin * (1 + distance + spread * drawn)
    return Evidence(claim, "small", True, (dict(enumerate(values.tolist())),), gaps)


def test_the_likeliest_verdict_for_its_cost_comes_first():
    sure, unsure, dear, done = CLAIMS[:4]
    runs = {sure: "ab", unsure: "cd", dear: "ef", done: "g"}
    seconds = {"a": 9.0, "b": 9.0, "c": 9.0, "d": 9.0, "e": 900.0, "f": 9.0, "g": None}
    known = {
        sure: evidence(sure, 4, 1),
        unsure: evidence(unsure, 1, 2),
        dear: evidence(dear, 4, 1),
        done: evidence(done, 9, 0.5, seeds=5),
    }
    steps = ordered({claim: frozenset(own) for claim, own in runs.items()}, "a", seconds, known, 5)
    assert [step.claim for step in steps] == [sure, unsure, dear, done]
    assert [step.chance for step in steps][-1] == 0
    assert [step.seconds for step in steps] == [9, 18, 909, None]


def test_the_chance_of_a_verdict_follows_from_what_is_known():
    claim = CLAIMS[0]
    assert chance(None, 5) == EVEN
    assert chance(evidence(claim, 0, 1, seeds=1), 5) == EVEN
    assert chance(evidence(claim, 4, 1), 5) > 0.9 > 0.2 > chance(evidence(claim, 0.5, 2), 5)
    assert chance(evidence(claim, -4, 1), 5) > 0.9  # to be contradicted
    assert chance(evidence(claim, 0.7, 1), 20) > chance(evidence(claim, 0.7, 1), 5)
    assert chance(evidence(claim, 0.5, 2, seeds=5), 5) == 0  # five seeds have not decided
    assert chance(evidence(claim, 9, 1, seeds=5), 10) == 0  # it is decided


def test_seeds_for_a_difference_are_those_of_a_look_with_enough_power():
    claim = CLAIMS[0]
    found = [seeds_for(evidence(claim, 0, spread)) for spread in (0.3, 0.8, 1.0, 1.3)]
    assert found == sorted(found)
    assert {*found} <= {*LOOKS}
    assert math.isnan(seeds_for(evidence(claim, 0, 50)))
    assert seeds_for(evidence(claim, 0, 50), difference=1000 * claim.margin) == 5
    assert "pilot" in seeds_for(None).reason


def test_decided_claims_are_not_continued_and_undefined_ones_only_once():
    decided, undefined, unclear, new = CLAIMS[:4]
    known = {
        decided: evidence(decided, 9, 0.5, seeds=5),
        undefined: evidence(undefined, 9, 0.5, seeds=5, gaps=("undefined",)),
        unclear: evidence(unclear, 0, 1, seeds=5),
    }
    every = [decided, undefined, unclear, new]
    assert open_claims(every, known, first=True) == [undefined, unclear, new]
    assert open_claims(every, known, first=False) == [unclear, new]


@pytest.mark.parametrize(("seeds", "expected"), [(1, [1]), (5, [5]), (7, [5, 7]), (40, [5, 10, 20, 40])])
def test_rounds_end_at_the_seeds_that_were_asked_for(seeds, expected):
    assert rounds(seeds) == expected


def test_claims_without_a_value_are_worth_a_plan_even_if_all_runs_are_made():
    """Records of `--no-needs` lack measures, which the plan of the claim completes without a run."""
    gap, decided, new = CLAIMS[:3]
    known = {
        gap: Evidence(gap, "small", True, ({},), ("undefined for 5 of 5 seeds",)),
        decided: evidence(decided, 9, 0.5, seeds=5),
    }
    steps = ordered({gap: frozenset("a"), decided: frozenset("b"), new: frozenset("c")}, "ab", {"c": 1.0}, known, 5)
    assert {step.claim for step in worth_testing(steps, known)} == {gap, new}
    assert "--seeds 5" in known[gap].command()
