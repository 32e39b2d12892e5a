"""The stream: every phrase once, each task as a Gaussian, and the orders of tasks."""

import time

import numpy as np
import pytest

from holdfast.data.shifting import arranged, density, learned_by, proposals, task_order


def tasks_of(sizes, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
@pytest.mark.parametrize("interval", [1, 7, 1000])
def test_every_example_comes_exactly_once(order, interval):
    tasks = tasks_of([31, 1, 250, 18])
    found = arranged(tasks, order, seed=3, interval=interval)
    assert np.sort(found).tolist() == list(range(300))


def test_the_stream_is_a_function_of_its_seed_and_of_nothing_else():
    tasks = tasks_of([40, 60, 80])
    first = arranged(tasks, seed=5, interval=10)
    np.random.seed(1)
    assert (arranged(tasks, seed=5, interval=10) == first).all()
    assert (arranged(tasks, seed=6, interval=10) != first).any()


def test_a_task_is_a_gaussian_around_the_middle_of_its_places():
    """Of equal tasks, all Gaussians together are all but flat, so that nothing waits and the places are the times."""
    size, count = 4000, 9
    tasks = np.repeat(np.arange(count), size)
    found = tasks[arranged(tasks, "ascending", interval=100)]
    for task in range(3, 6):  # those that the ends of the stream do not cut
        places = np.flatnonzero(found == task)
        assert places.mean() == pytest.approx((task + 0.5) * size, abs=0.02 * size)
        assert places.std() == pytest.approx(size / 2, rel=0.03)
        # The shares within one and two deviations of a normal distribution.
        away = np.abs(places - (task + 0.5) * size) / (size / 2)
        assert (away < 1).mean() == pytest.approx(0.6827, abs=0.01)
        assert (away < 2).mean() == pytest.approx(0.9545, abs=0.01)


def test_tasks_of_other_sizes_keep_their_middles_in_order():
    sizes = np.array([500, 8000, 1500, 3000])
    tasks = np.repeat(np.arange(4), sizes)
    found = tasks[arranged(tasks, "descending", interval=50)]
    middles = [np.median(np.flatnonzero(found == task)) for task in (1, 3, 2, 0)]
    expected = [4000, 8000 + 1500, 11000 + 750, 12500 + 250]
    assert middles == sorted(middles)
    assert middles == pytest.approx(expected, abs=0.08 * sizes.sum())  # large neighbours push a little


def test_orders_are_by_frequency_or_random():
    sizes = np.array([30, 10, 20, 10])
    assert task_order(sizes, "ascending", 0).tolist() == [1, 3, 2, 0]
    assert task_order(sizes, "descending", 0).tolist() == [0, 2, 1, 3]
    drawn = {tuple(task_order(sizes, "random", seed)) for seed in range(200)}
    assert len(drawn) == 24


def test_proposals_are_all_the_examples_and_the_gaussians_mass():
    from statistics import NormalDist

    sizes = np.array([300, 500, 200])
    found = proposals(sizes, interval=100)
    assert found.sum(1).tolist() == sizes.tolist()
    normal = NormalDist(300 + 250, 250)
    inside = normal.cdf(1000) - normal.cdf(0)
    expected = [500 * (normal.cdf(t + 100) - normal.cdf(t)) / inside for t in range(0, 1000, 100)]
    assert found[1] == pytest.approx(expected, abs=1)


def test_a_least_deviation_spreads_small_tasks():
    sizes = np.array([1000, 10, 1000])
    narrow, wide = (proposals(sizes, interval=10, least=least)[1] for least in (0, 300))
    assert (narrow > 0).sum() <= 4 < (wide > 0).sum()
    assert wide.sum() == 10


def test_full_intervals_leave_the_rest_to_the_next_and_empty_ones_take_from_them():
    """By hand: both tasks propose 2, 1, 1, 0 and 0, 1, 1, 2, so that every interval of two is just full."""
    tasks = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = tasks[arranged(tasks, "ascending", interval=2)].reshape(4, 2).sum(1)
    assert found.tolist() == [0, 1, 1, 2]
    tasks = np.array([0, 1, 1, 1, 1, 1])  # the small task, over before the first interval of four is, waits for none
    assert 0 in tasks[arranged(tasks, "ascending", interval=4)][:4]


def test_the_papers_stream_takes_no_time():
    """639,592 examples of 80 tasks, the largest a third of all, as in COCO-shift."""
    sizes = np.maximum((1 / np.arange(1, 81) ** 1.3 * 200_000).astype(np.int64), 200)
    sizes[0] += 639_592 - sizes.sum()
    began = time.process_time()
    found = arranged(np.repeat(np.arange(80), sizes))
    assert time.process_time() - began < 5
    assert len(np.unique(found)) == 639_592


def test_density_is_a_probability_over_time():
    tasks = tasks_of([40, 60, 80])
    found = density(tasks[arranged(tasks, interval=10)], bins=12)
    assert found.shape == (3, 12)
    assert found.sum(0) == pytest.approx(np.ones(12))


def test_learned_by_counts_examples():
    stream = np.array([1, 0, 1, 1, 0, 1, 0, 0])
    for share in (0.25, 0.5, 0.9, 1.0):
        by_hand = [
            next(n for n in range(9) if (stream[:n] == task).sum() >= share * (stream == task).sum()) for task in (0, 1)
        ]
        assert learned_by(stream, share).tolist() == by_hand
