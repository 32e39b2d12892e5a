"""Power: against simulation, against SciPy's noncentral t, and each function as the inverse of another."""

import numpy as np
import pytest
from scipy import stats

from holdfast.errors import UserError
from holdfast.metrics import Undefined, detectable, pairs_needed, power


@pytest.mark.parametrize(("difference", "count"), [(0.5, 5), (1.0, 5), (2.0, 10), (-1.0, 5)])
def test_power_is_the_share_of_simulated_tests_that_find_the_difference(difference, count):
    drawn = np.random.default_rng(count).normal(difference, 1.5, (40_000, count))
    found = stats.ttest_1samp(drawn, 0, axis=1)
    share = np.mean((found.pvalue < 0.05) & (np.sign(found.statistic) == np.sign(difference)))
    assert power(difference, 1.5, count) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("count", [2, 3, 5, 40])
def test_power_agrees_with_scipy(count):
    bound = stats.t.ppf(0.985, count - 1)
    expected = stats.nct.sf(bound, count - 1, 0.8 * count**0.5)
    assert power(0.8, 1.0, count, level=0.03) == pytest.approx(expected, rel=1e-6)


def test_a_detectable_difference_has_the_power_and_needs_the_pairs():
    for count in (2, 3, 5, 17):
        least = detectable(2.5, count)
        assert power(least, 2.5, count) == pytest.approx(0.8)
        assert pairs_needed(least * 1.0001, 2.5) == count
        assert pairs_needed(least * 0.99, 2.5) == count + 1 or count == 2


def test_edges():
    assert power(1.0, 0.0, 5) == 1.0
    assert power(0.0, 1.0, 5) == pytest.approx(0.025)
    assert power(1e9, 1e-9, 5) == 1.0
    assert detectable(0.0, 5) == 0.0
    assert isinstance(pairs_needed(1e-6, 1.0), Undefined)
    for wrong in ({"deviation": -1}, {"count": 1}, {"level": 1.0}):
        with pytest.raises(UserError):
            power(**{"difference": 1.0, "deviation": 1.0, "count": 3} | wrong)
