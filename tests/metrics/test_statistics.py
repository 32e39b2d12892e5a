import math
import statistics
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import scipy.stats

from holdfast.errors import UserError
from holdfast.metrics import Undefined, mean, paired_bootstrap, standard_deviation, summary, t_interval
from holdfast.metrics import statistics as module

NAN = float("nan")


def test_against_the_standard_library_and_scipy() -> None:
    values = np.random.default_rng(0).normal(size=6).tolist()
    assert mean(values) == pytest.approx(statistics.mean(values))
    assert standard_deviation(values) == pytest.approx(statistics.stdev(values))
    for level in (0.5, 0.95, 0.99):
        low, high = scipy.stats.t.interval(level, 5, loc=mean(values), scale=scipy.stats.sem(values))
        assert t_interval(values, level) == pytest.approx((high - low) / 2)
    result = summary(values)
    assert (result.mean, result.deviation, result.count) == (mean(values), standard_deviation(values), 6)
    assert result.half_width == t_interval(values, 0.95)


def test_one_value_and_missing_values() -> None:
    one = summary([0.5])
    assert (one.mean, one.count) == (0.5, 1)
    for part in (one.deviation, one.half_width):
        assert isinstance(part, Undefined)
    assert repr(one.half_width) == "Undefined('one value has no interval')"
    for statistic in (mean, standard_deviation, t_interval):
        result = statistic([1, NAN])
        assert isinstance(result, Undefined)
        assert result.reason == "values[1] is not a finite number"
        assert isinstance(statistic([1, math.inf]), Undefined)


def test_kinds_of_numbers() -> None:
    assert mean(np.array([1, 2], dtype=np.float32)) == mean([1, 2]) == mean((1.0, 2.0)) == 1.5


def test_refusals() -> None:
    for statistic in (mean, standard_deviation, t_interval, summary):
        with pytest.raises(UserError, match="values is empty"):
            statistic([])
        with pytest.raises(UserError, match="values must be a flat list"):
            statistic([[1, 2]])
    for level in (0, 1, 95):
        with pytest.raises(UserError, match="level must lie between 0 and 1"):
            t_interval([1, 2], level)
    with pytest.raises(UserError, match="a and b must have the same length"):
        paired_bootstrap([1], [1, 2])
    with pytest.raises(UserError, match="b is empty"):
        paired_bootstrap([1], [])
    with pytest.raises(UserError, match="repeats must be at least 1"):
        paired_bootstrap([1, 2], [1, 2], repeats=0)


def test_bootstrap_against_all_resamples() -> None:
    """With four pairs, all 256 resamples can be written down: the true bootstrap distribution."""
    differences = np.array([0.3, -0.1, 0.5, 0.2])
    every = np.array([np.mean(chosen) for chosen in product(differences, repeat=4)])
    result = paired_bootstrap(differences, np.zeros(4), repeats=40_000)
    assert result.difference == pytest.approx(0.225)
    low, high = np.quantile(every, (0.025, 0.975))
    assert result.low == pytest.approx(low, abs=0.026)  # one step of this coarse distribution
    assert result.high == pytest.approx(high, abs=0.026)
    exact = np.mean(np.abs(every - 0.225) >= 0.225 - 1e-12)
    assert result.p_value == pytest.approx(exact, abs=0.005)


def test_the_two_ways_of_drawing_agree() -> None:
    """Differences of few values are drawn as counts; a jitter too small to matter makes them all distinct."""
    generator = np.random.default_rng(0)
    a, b = generator.integers(2, size=400), generator.integers(2, size=400)
    counted = paired_bootstrap(a, b, repeats=20_000)
    drawn = paired_bootstrap(a + generator.normal(scale=1e-9, size=400), b, repeats=20_000)
    assert len(np.unique(a - b)) * 16 <= 400  # so the first took the short way
    assert counted.low == pytest.approx(drawn.low, abs=0.005)
    assert counted.high == pytest.approx(drawn.high, abs=0.005)
    assert counted.p_value == pytest.approx(drawn.p_value, abs=0.02)


def test_bootstrap_covers_the_true_difference() -> None:
    generator = np.random.default_rng(0)
    trials, covered, rejected = 400, 0, 0
    for trial in range(trials):
        result = paired_bootstrap(generator.normal(0.2, 1, size=60), np.zeros(60), repeats=400, seed=trial)
        covered += result.low <= 0.2 <= result.high
        null = paired_bootstrap(generator.normal(0, 1, size=60), np.zeros(60), repeats=400, seed=trial)
        rejected += null.p_value <= 0.05
    # Binomial with 400 trials: a standard error of 1.1 %; the percentile interval is a little narrow at 60.
    assert 0.90 <= covered / trials <= 0.98
    assert 0.02 <= rejected / trials <= 0.10


def test_bootstrap_agrees_with_the_normal_interval() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1, size=2000)
    result = paired_bootstrap(differences, np.zeros(2000))
    half = 1.96 * statistics.stdev(differences.tolist()) / math.sqrt(2000)
    assert result.low == pytest.approx(mean(differences) - half, abs=0.003)
    assert result.high == pytest.approx(mean(differences) + half, abs=0.003)


def test_bootstrap_is_seeded_and_antisymmetric() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.random(30), generator.random(30)
    assert paired_bootstrap(a, b, 500, seed=1) == paired_bootstrap(a, b, 500, seed=1)
    assert paired_bootstrap(a, b, 500, seed=1) != paired_bootstrap(a, b, 500, seed=2)
    there, back = paired_bootstrap(a, b, 500), paired_bootstrap(b, a, 500)
    assert there.low == pytest.approx(-back.high)
    assert there.p_value == back.p_value


def test_bootstrap_edges() -> None:
    same = paired_bootstrap([1, 0, 1], [1, 0, 1], repeats=100)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    one = paired_bootstrap([1], [0])
    assert one.difference == 1
    assert isinstance(one.p_value, Undefined)
    gone = paired_bootstrap([1, NAN], [0, 0])
    assert isinstance(gone.difference, Undefined)
    assert gone.difference.reason == "a[1] is not a finite number"


def test_bootstrap_draws_a_bounded_number_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 100)
    sizes = [len(part) for part in module._resampled_means(np.arange(30.0), 10, np.random.default_rng(0))]
    assert sizes == [3, 3, 3, 1]


def test_import_is_light() -> None:
    code = "import sys, holdfast.metrics; print({'torch', 'pandas', 'scipy', 'sacrebleu'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
