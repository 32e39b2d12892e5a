"""The tests against scipy's, and Holm's correction against the closed testing that it is a short cut for."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from holdfast.reports.significance import holm, paired_t, pairs


@pytest.mark.parametrize("count", [2, 3, 5, 20])
def test_paired_t_is_scipys(count):
    random = np.random.default_rng(count)
    a, b = random.standard_normal(count), random.standard_normal(count) + 0.5
    assert paired_t((a - b).tolist()) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-9)


def test_without_spread_there_is_no_p_value_and_no_difference_is_no_evidence():
    assert math.isnan(paired_t([0.1, 0.1, 0.1]))
    assert paired_t([0.0, 0.0, 0.0]) == 1.0
    assert math.isnan(paired_t([0.3]))


def test_holm_is_closed_testing_by_bonferroni():
    random = np.random.default_rng(0)
    for _ in range(50):
        p = (random.random(4) ** 3).tolist()
        for place, corrected in enumerate(holm(p)):
            subsets = (s for n in range(1, 5) for s in itertools.combinations(range(4), n) if place in s)
            assert corrected == pytest.approx(max(min(1.0, len(s) * min(p[i] for i in s)) for s in subsets))


def test_what_is_undefined_counts_as_no_test():
    corrected = holm([0.02, math.nan, 0.5])
    assert corrected[0] == 0.04
    assert math.isnan(corrected[1])


def test_pairs_are_taken_over_common_seeds_only():
    values = {"a": {0: 5.0, 1: 6.0, 2: 7.5, 3: 100.0}, "b": {0: 4.0, 1: 4.5, 2: 6.0, 7: 0.0}, "c": {0: 1.0, 9: 2.0}}
    (found,) = pairs(values)
    assert (found.first, found.second, found.seeds) == ("a", "b", 3)
    assert found.difference == pytest.approx((1.0 + 1.5 + 1.5) / 3)
    assert found.p_value == found.corrected == pytest.approx(stats.ttest_rel([5, 6, 7.5], [4, 4.5, 6]).pvalue)
    assert found.significant
    low, high = stats.ttest_rel([5, 6, 7.5], [4, 4.5, 6]).confidence_interval(0.95)
    assert (found.difference - found.half_width, found.difference + found.half_width) == pytest.approx((low, high))
