"""CBRS and GDumb's sampler against their papers' pseudocode, written out line by line with lists."""

import random
from collections import Counter

import numpy as np
import pytest

from holdfast.memory import ClassBalanced, GreedyBalanced


def tens(ids):
    """A group for each example that a test can read off its id."""
    return ids // 1000


def cbrs(stream, capacity, draw):
    """Chrysakis and Moens 2020, Algorithm 1, with their definitions of a largest and of a full class."""
    memory, seen, full = [], Counter(), set()
    for item in stream:
        c = item // 1000
        seen[c] += 1
        if len(memory) < capacity:
            memory.append(item)
        else:
            stored = Counter(held // 1000 for held in memory)
            most = max(stored.values())
            full |= {k for k, m in stored.items() if m == most}
            if c not in full:
                memory[draw.choice([i for i, held in enumerate(memory) if stored[held // 1000] == most])] = item
            elif draw.random() <= stored[c] / seen[c]:
                memory[draw.choice([i for i, held in enumerate(memory) if held // 1000 == c])] = item
    return memory


def greedy(stream, capacity, draw):
    """Prabhu et al. 2020, Algorithm 1."""
    memory, count = [], {}
    for item in stream:
        c = item // 1000
        if c not in count or count[c] < capacity / len(count):
            if sum(count.values()) >= capacity:
                largest = draw.choice([k for k, n in count.items() if n == max(count.values())])
                memory.remove(draw.choice([held for held in memory if held // 1000 == largest]))
                count[largest] -= 1
            memory.append(item)
            count[c] = count.get(c, 0) + 1
    return memory


STREAMS = {
    "mixed": [0, 1, 2, 1000, 3, 2000, 4, 1001, 5, 6, 7, 2001, 8, 1002, 9, 3000, 10, 11, 1003, 12, 13, 3001],
    "blocks": [*range(9), *range(1000, 1004), 2000, *range(9, 14), *range(3000, 3006)],
    "rare first": [0, *range(1000, 1012), 1, 2, *range(2000, 2006), 3],
}


@pytest.mark.parametrize("order", STREAMS)
@pytest.mark.parametrize(("kind", "pseudocode"), [(ClassBalanced, cbrs), (GreedyBalanced, greedy)])
def test_what_is_held_has_the_distribution_of_the_papers_pseudocode(kind, pseudocode, order):
    stream, capacity, repeats = STREAMS[order], 7, 1500
    items = {item: place for place, item in enumerate(stream)}
    held = np.zeros((2, len(stream)))
    sizes = [Counter(), Counter()]
    for seed in range(repeats):
        memory = kind(capacity, seed, tens)
        cut = seed % len(stream)
        memory.add(np.array(stream[:cut], dtype=np.int64))
        memory.add(np.array(stream[cut:], dtype=np.int64))
        for which, found in enumerate((memory.ids.tolist(), pseudocode(stream, capacity, random.Random(seed)))):
            assert len(set(found)) == len(found)
            held[which, [items[item] for item in found]] += 1
            sizes[which][tuple(sorted(Counter(item // 1000 for item in found).items()))] += 1
    ours, theirs = held / repeats
    both = (ours + theirs) / 2
    assert (np.abs(ours - theirs) <= 4.5 * np.sqrt(2 * both * (1 - both) / repeats) + 1e-12).all()
    for size in sizes[0] | sizes[1]:
        share = [each[size] / repeats for each in sizes]
        mean = sum(share) / 2
        assert abs(share[0] - share[1]) <= 4.5 * np.sqrt(2 * mean * (1 - mean) / repeats) + 1e-12, size


def test_class_balanced_is_as_equal_as_the_stream_allows():
    counts = {0: 500, 1: 100, 2: 30, 3: 2}
    stream = np.concatenate([np.arange(1000 * c, 1000 * c + n) for c, n in counts.items()])
    for order in (stream, stream[::-1], np.random.default_rng(0).permutation(stream)):
        memory = ClassBalanced(20, seed=0, group=tens)
        memory.add(order)
        held = np.bincount(memory.groups, minlength=4)
        assert held.tolist() == [6, 6, 6, 2], "all of the rare class, and equal parts of the others"


def test_within_a_class_balanced_reservoir_each_example_of_a_class_is_as_likely():
    """CBRS's law: whatever the other classes do, the kept ones of a class are a uniform sample of it."""
    repeats, held = 600, np.zeros((2, 60))
    for seed in range(repeats):
        order = np.concatenate([np.arange(30), np.arange(1000, 1012), np.arange(30, 60)])  # classes in blocks
        memory = ClassBalanced(8, seed, tens)
        memory.add(order)
        assert np.bincount(memory.groups).tolist() == [4, 4]
        held[0, memory.ids[memory.groups == 0]] += 1
        held[1, memory.ids[memory.groups == 1] - 1000] += 1
    for row, size in ((held[0], 60), (held[1, :12], 12)):
        expected = 4 / size
        assert np.abs(row / repeats - expected).max() < 5 * np.sqrt(expected * (1 - expected) / repeats)


def test_the_greedy_memory_keeps_the_first_of_each_class():
    memory = GreedyBalanced(6, seed=0, group=tens)
    memory.add(np.concatenate([np.arange(3), np.arange(1000, 1003), np.arange(3, 100)]))
    assert sorted(memory.ids) == [0, 1, 2, 1000, 1001, 1002]


def test_the_greedy_memory_leaves_places_free_where_a_class_has_its_part():
    memory = GreedyBalanced(10, seed=0, group=tens)
    memory.add(np.array([0, 1, *range(1000, 1050)]))
    assert np.bincount(memory.groups).tolist() == [2, 5], "k / |Y| = 5, though 3 places are free"
    memory.add(np.arange(2, 40))
    assert np.bincount(memory.groups).tolist() == [5, 5]
