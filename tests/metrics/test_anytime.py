"""The area below a curve of scores against what was spent, against sums written out by hand."""

import math

import pytest

from holdfast.errors import UserError
from holdfast.metrics import anytime_area, anytime_curve
from holdfast.types import Score


def test_with_stages_of_equal_cost_it_is_the_mean_after_each_stage():
    assert anytime_area([10, 20, 30], [0.9, 0.6, 0.3]) == pytest.approx(0.6)


def test_what_was_spent_before_a_score_counts_with_it():
    """0.2 for the first 10 of 40, 0.8 for the rest."""
    assert anytime_area([10, 40], [0.2, 0.8]) == pytest.approx((0.2 * 10 + 0.8 * 30) / 40)


def test_what_is_left_of_the_budget_counts_with_the_last_score():
    assert anytime_area([10, 40], [0.2, 0.8], budget=100) == pytest.approx((0.2 * 10 + 0.8 * 30 + 0.8 * 60) / 100)
    assert anytime_area([10, 40], [0.2, 0.8], budget=30) == anytime_area([10, 40], [0.2, 0.8]), "overspent"


def test_scores_before_training_cost_nothing():
    assert anytime_area([0, 10], [0.1, 0.5]) == 0.5


def test_without_spending_there_is_no_area():
    assert anytime_area([0, 0], [0.1, 0.5]).reason == "nothing was spent"
    assert anytime_area([], []).reason == "nothing was scored"
    assert math.isnan(anytime_area([1], [math.nan]))
    with pytest.raises(UserError, match="must not decrease"):
        anytime_area([2, 1], [0.1, 0.5])


def test_the_curve_has_the_mean_of_the_test_sets_that_were_scored():
    log = [
        Score(0, 0, "a", "test", 5, 0.5),
        Score(1, 4, "a", "test", 5, 0.75),
        Score(1, 4, "a", "validation", 5, 0.0),
        Score(1, 4, "a/part", "test", 2, 0.0),
        Score(2, 9, "a", "test", 5, 0.25),
        Score(2, 9, "b", "test", 5, 0.75),
    ]
    spent = [[0, 0, 0, 0, 0], [1, 4, 100, 8, 4], [1, 6, 120, 9, 5], [2, 9, 300, 18, 9]]
    assert anytime_curve(log, spent) == ([0, 100, 300], [0.5, 0.75, 0.5])
    assert anytime_curve(log, spent, "passes") == ([0, 12, 27], [0.5, 0.75, 0.5])
