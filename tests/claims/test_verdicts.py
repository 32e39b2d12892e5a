"""Verdicts: their intervals, what they say at the edges, and how often they are wrong when the truth is known."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from claims.simulation import NOISE, STATISTICS, rates
from holdfast.claims.definition import parsed
from holdfast.claims.verdicts import LOOKS, estimate, judge


def claim(statistic="difference", of=("a", "b"), margin=1.0, less=False):
    runs = {name: {} for name in of if isinstance(name, str)}
    table = {"id": "c", "says": "C.", "where": "1", "statistic": statistic, "measure": "m", "less": less}
    found = parsed({"runs": runs, "claim": [{**table, "of": list(of), "margin": margin}]}, "mine", Path("mine.toml"))
    return found.claims[0]


def seeds(*values):
    return dict(enumerate(values))


def test_the_looks_spend_five_percent_in_all():
    assert math.isclose(sum(LOOKS.values()), 0.05)
    assert list(LOOKS) == sorted(LOOKS)


def test_an_interval_is_the_intersection_of_the_t_intervals_of_its_looks():
    values = np.random.default_rng(3).normal(4, 2, 12)
    found = estimate("x", 1, math.inf, seeds(*values), margin=1)
    looked = [stats.t.interval(1 - LOOKS[n], n - 1, values[:n].mean(), stats.sem(values[:n])) for n in (5, 10)]
    assert found.looked == 10
    assert found.interval == pytest.approx((max(low for low, _ in looked), min(high for _, high in looked)))
    assert found.mean == pytest.approx(values[:10].mean())


def test_before_the_first_look_nothing_is_decided():
    found = judge(claim(), [seeds(9.0, 9.1, 9.2, 9.3)])
    assert (found.outcome, found.why) == ("undecided", "4 of at least 5 seeds")


def test_equal_values_are_not_taken_as_proof_that_there_is_no_spread():
    found = estimate("x", 1, math.inf, seeds(*[1.01] * 5), margin=1)
    assert found.interval[0] < 1 < found.interval[1]
    assert judge(claim(), [seeds(*[3.0] * 5)]).outcome == "supported"


@pytest.mark.parametrize(
    ("statistic", "values", "outcome", "why"),
    [
        ("difference", [3, 3.2, 2.9, 3.1, 3], "supported", "within what the claim says"),
        ("difference", [0.3, 0.2, 0.1, 0.3, 0.2], "contradicted", "smaller than the margin"),
        ("difference", [-3, -3.2, -2.9, -3.1, -3], "contradicted", "the other way round"),
        ("difference", [1, 3, -1, 2, 0], "undecided", "includes a bound"),
        ("equivalence", [0.1, -0.1, 0, 0.05, 0], "supported", "within what the claim says"),
        ("equivalence", [-3, -3.2, -2.9, -3.1, -3], "contradicted", "larger than the margin"),
        ("no-worse", [1, -0.5, -4, 2, -3], "undecided", "includes a bound"),
        ("no-worse", [0.1, -0.1, 0, 0.05, 0], "supported", "within what the claim says"),
        ("no-worse", [-3, -3.2, -2.9, -3.1, -3], "contradicted", "larger than the margin"),
    ],
)
def test_each_statistic_has_its_bounds(statistic, values, outcome, why):
    found = judge(claim(statistic), [seeds(*values)])
    assert found.outcome == outcome
    assert why in found.why


def test_contrasts_of_each_statistic():
    def contrasts(*args, **kwargs):
        return [str(each) for each in claim(*args, **kwargs).contrasts]

    assert contrasts("difference", "abc") == ["a/m - b/m", "a/m - c/m"]
    assert contrasts("difference", "abc", less=True) == ["b/m - a/m", "c/m - a/m"]
    assert contrasts("order", "abc") == ["a/m - b/m", "b/m - c/m"]
    assert contrasts("interaction", "abcd") == ["a/m + d/m - b/m - c/m"]
    assert contrasts("equivalence", ("a", 0)) == ["a/m"]


def test_one_false_contrast_contradicts_and_one_open_contrast_leaves_undecided():
    good, bad, unclear = seeds(3, 3.1, 2.9, 3, 3), seeds(-3, -3.1, -2.9, -3, -3), seeds(3, -3, 4, -2, 1)
    three = claim("difference", "abcd")
    assert judge(three, [good, good, good]).outcome == "supported"
    found = judge(three, [good, bad, unclear])
    assert (found.outcome, found.decisive.name) == ("contradicted", "a/m - c/m")
    assert judge(three, [good, good, unclear]).outcome == "undecided"
    assert judge(three, [good, good, good], gaps=("undefined for 1 of 5 seeds: no task counts",)).outcome == "undecided"


def report(found):
    lines = [f"{statistic:12} {noise:13} {counts}" for (statistic, noise), counts in found.items()]
    total = {kind: sum(counts[kind] for counts in found.values()) for kind in ("wrong", "right", "none")}
    print("\n".join([*lines, f"all: {total}"]))
    return total


def test_verdicts_on_simulated_records_are_seldom_wrong(template):
    total = report(rates(template, 400))
    assert total["wrong"] <= 0.05 * 400
    assert total["right"] >= 0.25 * 400


def test_at_the_edge_of_a_claim_the_error_rate_is_used_and_not_exceeded():
    """The worst case: the true effect is the bound itself, and the test goes on to 40 seeds unless it is decided."""
    random, claimed = np.random.default_rng(5), claim(margin=1.0)
    wrong = 0
    for _ in range(2000):
        values = random.normal(1.0, 2.0, 40)
        wrong += any(judge(claimed, [seeds(*values[:count])]).outcome != "undecided" for count in LOOKS)
    assert 0.02 * 2000 < wrong < 0.05 * 2000, wrong


@pytest.mark.slow
def test_at_most_five_percent_of_2000_simulated_record_sets_have_a_wrong_verdict(template):
    found = rates(template, 2000, seed=1)
    total = report(found)
    assert {*found} == {(statistic, noise) for statistic in STATISTICS for noise in NOISE}
    assert total["wrong"] <= 0.05 * 2000
    assert total["right"] >= 0.25 * 2000
