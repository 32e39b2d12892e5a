"""Slopes over long use: right on made-up samples, and taken of short loads."""

import numpy as np
import pytest

from holdfast.bench.soak import DiskUse, Growth, growth, soak


@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_a_slope_is_found_through_noise(slope):
    found = []
    for seed in range(200):
        random = np.random.default_rng(seed)
        values = 100 + np.linspace(0, slope, 160, endpoint=False) + random.normal(0, 1, 160)
        values[:30] += 50  # a start that is like nothing later
        found.append(growth(values.tolist()))
    inside = np.mean([abs(grown - slope) <= half for grown, half in found])
    assert 0.9 <= inside <= 0.99
    assert abs(np.mean([grown for grown, _ in found]) - slope) < 0.1


def test_a_leak_is_no_noise():
    leak = Growth("steps", "open files", 20, *growth([20 + number // 10 for number in range(160)]))
    assert not leak.flat
    assert Growth("steps", "open files", 20, *growth([20] * 160)).flat


def test_short_loads(capsys):
    begun = []
    found = soak(320, 3, 0, begun.append)
    assert begun == ["320 steps", "3 stages"]
    assert [each.what for each in found if isinstance(each, Growth)] == 2 * [
        "memory, MB", "open files", "threads", "ms a step"
    ]  # fmt: skip
    scores = [each for each in found if isinstance(each, DiskUse) and each.what == "scores"]
    assert [(each.found, each.predicted) for each in scores] == [(4, 4), (24, 24)]
    assert all(each.growth == 0 for each in found if isinstance(each, Growth) and each.what == "threads")
