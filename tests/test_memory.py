import numpy as np

from holdfast.memory import Reservoir


def test_every_item_stays_with_probability_capacity_over_seen():
    """Vitter's law: after n items, each of them is in memory with probability M / n, whenever it came."""
    items, capacity, repeats = 40, 8, 4000
    held = np.zeros(items)
    for seed in range(repeats):
        memory = Reservoir(capacity, seed)
        for start in range(0, items, 5):
            memory.add(np.arange(start, start + 5))
        held[memory.ids] += 1
    expected, deviation = capacity / items, np.sqrt(capacity / items * (1 - capacity / items) / repeats)
    assert np.abs(held / repeats - expected).max() < 4.5 * deviation


def test_adding_many_at_once_is_adding_one_after_another():
    together, apart = Reservoir(6, seed=3), Reservoir(6, seed=3)
    ids = np.arange(100)
    together.add(ids)
    for start, stop in [(0, 4), (4, 9), (9, 10), (10, 100)]:
        apart.add(ids[start:stop])
    assert together.seen == apart.seen == 100
    # The generator's words are used in order, whatever the grouping; the sequential rule is Vitter's.
    reference, random = list(range(6)), np.random.default_rng(3)
    for n in range(7, 101):
        place = int(random.random() * n)
        if place < 6:
            reference[place] = n - 1
    assert apart.ids.tolist() == reference
    assert together.ids.tolist() == reference


def test_sample_draws_different_items_uniformly():
    memory = Reservoir(10, seed=0)
    memory.add(np.arange(10))
    counts = np.zeros(10)
    for _ in range(3000):
        drawn = memory.sample(4)
        assert len(set(drawn.tolist())) == 4
        counts[drawn] += 1
    assert np.abs(counts / 3000 - 0.4).max() < 0.04


def test_state_goes_on_with_the_same_draws():
    memory = Reservoir(5, seed=1)
    memory.add(np.arange(20))
    copy = Reservoir(5, seed=99)
    copy.load_state_dict(memory.state_dict())
    for other in (memory, copy):
        other.add(np.arange(20, 40))
    assert memory.ids.tolist() == copy.ids.tolist()
    assert memory.sample(3).tolist() == copy.sample(3).tolist()
