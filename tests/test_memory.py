import sys
from dataclasses import replace
from math import comb

import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.memory import (
    FLOOR,
    SMOOTHING,
    ClassBalanced,
    ExperienceBalanced,
    GreedyBalanced,
    Latest,
    PerTask,
    Reservoir,
    TargetBalanced,
    refuse_small,
)
from smallest import prepared


def tens(ids):
    """A group for each example that a test can read off its id."""
    return ids // 1000


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


def test_in_a_reservoir_an_example_counts_each_time_that_it_is_seen():
    """Every offer is as likely to hold a place, of whichever epoch: two copies of an example may be held at once."""
    items, epochs, capacity, repeats = 12, 3, 8, 2000
    held, twice = np.zeros((epochs, items)), 0
    for seed in range(repeats):
        memory, offer = Reservoir(capacity, seed), np.full(capacity, -1)
        for epoch in range(epochs):
            ids = np.random.default_rng((seed, epoch)).permutation(items)
            for start in range(0, items, 5):
                taken = memory.offer(ids[start : start + 5])
                offer[taken] = epoch
        assert memory.seen == epochs * items
        assert (offer >= 0).all()
        np.add.at(held, (offer, memory.ids), 1)
        twice += len(set(memory.ids.tolist())) < capacity
    expected = capacity / (epochs * items)
    assert np.abs(held / repeats - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / repeats)
    distinct = comb(items, capacity) * epochs**capacity / comb(epochs * items, capacity)
    assert abs(1 - twice / repeats - distinct) < 4.5 * np.sqrt(distinct * (1 - distinct) / repeats)


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


PHRASES = np.array([[0, -1, -1], [0, 1, -1], [0, 1, 2], [0, 0, 3], [2, 2, 2], [3, 4, -1], [1, 3, 3], [5, -1, -1]])
"""The words of eight things that are said; some say a word twice."""

ALL = [
    lambda seed: Reservoir(9, seed),
    lambda seed: Reservoir(9, seed, tens),
    lambda seed: Latest(9, seed),
    lambda seed: PerTask(seed, count=4),
    lambda seed: PerTask(seed, share=0.3),
    lambda seed: ExperienceBalanced(9, seed),
    lambda seed: ClassBalanced(9, seed, tens),
    lambda seed: GreedyBalanced(9, seed, tens),
    lambda seed: TargetBalanced(9, seed, tens, "sqrt"),
    lambda seed: TargetBalanced(9, seed, tens, "forget"),
    lambda seed: TargetBalanced(9, seed, tens, "forget", PHRASES),
]


@pytest.mark.parametrize("make", ALL)
def test_every_memory_goes_on_from_its_state_with_the_same_ids_and_draws(make):
    memory, copy = make(1), make(2)
    stream = np.random.default_rng(0).permutation([*range(0, 30), *range(1000, 1012), *range(2000, 2005)])
    memory.add(stream[:20])
    if isinstance(memory, TargetBalanced):
        memory.observe(tens(stream[:10]), np.linspace(1, 2, 10))
    copy.load_state_dict(memory.state_dict())
    for other in (memory, copy):
        other.add(stream[20:])
    assert memory.ids.tolist() == copy.ids.tolist()
    assert memory.groups.tolist() == copy.groups.tolist()
    assert memory.sample(3).tolist() == copy.sample(3).tolist()
    assert memory.state_dict().keys() == copy.state_dict().keys()
    assert memory.nbytes >= memory.ids.nbytes + memory.groups.nbytes


@pytest.mark.parametrize("make", ALL[2:])
def test_outside_a_reservoir_an_example_counts_once_however_often_it_comes(make):
    """In one offer, in several, and after a state was saved; new examples among old ones count as they would alone."""
    once, often = make(1), make(1)
    random = np.random.default_rng(0)
    stream = random.permutation([*range(0, 30), *range(1000, 1012), *range(2000, 2005)])
    once.add(stream[:20])
    once.add(stream[20:])
    often.add(np.concatenate([stream[:20], stream[5:15]]))
    state, often = often.state_dict(), make(2)
    often.load_state_dict(state)
    mixed = np.insert(stream[20:], random.integers(0, 27, 15), stream[:15])
    assert often.unseen(mixed).tolist() == stream[20:].tolist()
    often.add(mixed)
    assert often.ids.tolist() == once.ids.tolist()
    assert often.groups.tolist() == once.groups.tolist()
    assert often.sample(3).tolist() == once.sample(3).tolist()
    assert often.nbytes == once.nbytes
    if not isinstance(often, PerTask | ExperienceBalanced):  # where an offer is a stage
        often.add(stream)
        assert often.ids.tolist() == once.ids.tolist()


def test_what_was_offered_takes_a_bit_for_each_example():
    memory = Latest(4, seed=0)
    memory.add(np.array([100_000, 3]))
    assert memory.state_dict()["offered"].nbytes == 2**17 // 8
    assert memory.unseen(np.array([100_000, 99_999, 3, 4, 2**18])).tolist() == [99_999, 4, 2**18]


def test_a_reservoir_with_groups_keeps_each_examples_own():
    memory = Reservoir(20, seed=0, group=tens)
    for start in (0, 1000, 2000):
        memory.add(np.arange(start, start + 100))
    assert memory.groups.tolist() == (memory.ids // 1000).tolist()
    assert set(memory.groups.tolist()) == {0, 1, 2}


def test_a_group_is_drawn_uniformly_however_many_examples_it_has():
    memory = PerTask(seed=0, share=1.0)
    for start, count in [(0, 90), (1000, 10), (2000, 50)]:
        memory.add(np.arange(start, start + count))
    drawn = np.array([memory.draw_group(but=2) for _ in range(2000)])
    assert set(drawn) == {0, 1}
    assert abs(drawn.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(2000)
    assert set(memory.sample_group(1, 6) // 1000) == {1}
    assert len(set(memory.sample_group(1, 6).tolist())) == 6
    assert sorted(memory.sample_group(1, 50)) == list(range(1000, 1010))
    assert Reservoir(3, seed=0, group=tens).draw_group() is None


def test_per_task_keeps_a_share_or_a_count_of_each_stage():
    share, count = PerTask(seed=0, share=0.01), PerTask(seed=0, count=7)
    for start, size in [(0, 300), (1000, 90), (2000, 20)]:
        share.add(np.arange(start, start + size))
        count.add(np.arange(start, start + size))
    assert np.bincount(share.groups).tolist() == [3, 1, 1], "at least one"
    assert np.bincount(count.groups).tolist() == [7, 7, 7]
    assert (share.ids // 1000).tolist() == share.groups.tolist()


def test_experience_balanced_parts_are_equal_and_stay_uniform_samples_as_they_shrink():
    repeats, held = 2000, np.zeros(20)
    for seed in range(repeats):
        memory = ExperienceBalanced(10, seed)
        for start in (0, 1000, 2000):
            memory.add(np.arange(start, start + 20))
        assert np.bincount(memory.groups).tolist() == [3, 3, 4]
        assert (memory.ids // 1000).tolist() == memory.groups.tolist()
        held[memory.ids[memory.groups == 0]] += 1
    expected = 3 / 20
    assert np.abs(held / repeats - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / repeats)


def divergence(groups, shares):
    """KL(memory || target) written out."""
    total = 0.0
    for group in set(groups):
        p = groups.count(group) / len(groups)
        total += p * np.log(p / shares[group])
    return total


@pytest.mark.parametrize("target", ["sqrt", "forget"])
def test_the_place_that_is_taken_is_the_best_of_all_by_exhaustive_search(target):
    random = np.random.default_rng(5)
    taken = 0
    for trial in range(12):
        memory = TargetBalanced(12, trial, tens, target)
        frequencies = random.dirichlet(np.full(6, 0.6))
        seen, loss, lowest = np.zeros(6), np.full(6, np.nan), np.full(6, np.inf)
        for n in range(80):
            group = int(random.choice(6, p=frequencies))
            example = 1000 * group + n
            if target == "forget":
                value = random.uniform(0.5, 3)
                memory.observe(np.array([group]), np.array([value]))
                past = value if np.isnan(loss[group]) else loss[group]
                loss[group] = SMOOTHING * past + (1 - SMOOTHING) * value
                lowest[group] = min(lowest[group], loss[group])
            seen[group] += 1
            before = memory.ids.copy()
            memory.add(np.array([example]))
            if len(before) < 12:
                assert memory.ids.tolist() == [*before.tolist(), example]
                continue
            weights = np.sqrt(seen)
            if target == "forget":
                weights = seen * (FLOOR + np.where(np.isnan(loss), 0, loss - lowest))
            shares = weights / weights.sum()
            now = divergence((before // 1000).tolist(), shares)
            tried = []
            for place in range(12):
                other = before.copy()
                other[place] = example
                tried.append(divergence((other // 1000).tolist(), shares))
            changed = np.flatnonzero(memory.ids != before)
            if min(tried) < now - 1e-9:
                (place,) = changed
                assert memory.ids[place] == example
                assert tried[place] == pytest.approx(min(tried), abs=1e-12)
                taken += 1
            else:
                assert len(changed) == 0
    assert taken > 50, "the search was put to the test"


@pytest.mark.parametrize("target", ["sqrt", "forget"])
def test_of_phrases_it_is_the_words_that_are_balanced_by_exhaustive_search(target):
    random = np.random.default_rng(7)
    taken = 0
    for trial in range(10):
        memory = TargetBalanced(9, trial, tens, target, PHRASES)
        likely = random.dirichlet(np.full(8, 0.7))
        seen, loss, lowest = np.zeros(6), np.full(6, np.nan), np.full(6, np.inf)
        for n in range(70):
            group = int(random.choice(8, p=likely))
            words = PHRASES[group][PHRASES[group] >= 0]
            if target == "forget":
                values = random.uniform(0.5, 3, len(words))
                memory.observe(words, values)
                for word in set(words.tolist()):
                    value = values[words == word].mean()
                    past = value if np.isnan(loss[word]) else loss[word]
                    loss[word] = SMOOTHING * past + (1 - SMOOTHING) * value
                    lowest[word] = min(lowest[word], loss[word])
            np.add.at(seen, words, 1)
            before, example = memory.ids.copy(), 1000 * group + n
            memory.add(np.array([example]))
            if len(before) < 9:
                continue
            weights = np.sqrt(seen)
            if target == "forget":
                weights = seen * (FLOOR + np.where(np.isnan(loss), 0, loss - lowest))
            shares = weights / weights.sum()

            def kl(ids, shares=shares):
                said = PHRASES[ids // 1000]
                return divergence(said[said >= 0].tolist(), shares)

            tried = [kl(np.where(np.arange(9) == place, example, before)) for place in range(9)]
            changed = np.flatnonzero(memory.ids != before)
            if min(tried) < kl(before) - 1e-9:
                (place,) = changed
                assert memory.ids[place] == example
                assert tried[place] == pytest.approx(min(tried), abs=1e-12)
                taken += 1
            else:
                assert len(changed) == 0
    assert taken > 50, "the search was put to the test"


def test_words_seen_in_several_batches_or_in_one_give_the_same_memory():
    stream = np.random.default_rng(1).permutation(np.concatenate([1000 * g + np.arange(12) for g in range(8)]))
    one, many = (TargetBalanced(20, 3, tens, "sqrt", PHRASES) for _ in range(2))
    one.add(stream)
    for start in range(0, len(stream), 7):
        many.add(stream[start : start + 7])
    assert np.sort(one.groups).tolist() == np.sort(many.groups).tolist()


def test_forgetting_is_the_rise_of_a_groups_smoothed_loss_above_its_lowest():
    memory = TargetBalanced(4, 0, tens, "forget")
    memory.add(np.array([0, 1, 1000, 1001]))
    memory.observe(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]))  # group 0: 2, group 1: 5
    memory.observe(np.array([0, 1]), np.array([4.0, 1.0]))  # 0: 1.8 + 0.4 = 2.2, lowest 2; 1: 4.5 + 0.1 = 4.6
    assert memory.loss == pytest.approx([2.2, 4.6])
    assert memory.lowest == pytest.approx([2.0, 4.6])
    assert memory.distribution() == pytest.approx([0.21 / 0.22, 0.01 / 0.22])


def test_the_cost_of_an_example_hardly_depends_on_the_capacity():
    """Counts of groups suffice: a memory a hundred times as large makes hardly more calls."""

    def calls(capacity):
        memory, made = TargetBalanced(capacity, 0, lambda ids: ids % 50, "sqrt"), 0

        def count(*event):
            nonlocal made
            made += event[1].endswith("call")

        memory.add(np.arange(capacity))
        sys.setprofile(count)
        try:
            memory.add(capacity + np.arange(200))
        finally:
            sys.setprofile(None)
        return made

    assert calls(20_000) < 2 * calls(200)


def test_a_memory_smaller_than_a_batch_is_refused():
    stream = prepared().setup.stream
    refuse_small("replay", 32, None, stream)
    refuse_small("replay", 8, 8, stream)
    with pytest.raises(UserError, match=r"replay\.capacity is 31, less than the 32 kept.*set replay\.size to 31"):
        refuse_small("replay", 31, None, stream)
    with pytest.raises(UserError, match=r"gdumb\.capacity is 31, less than the 32 kept.*set train\.batch_size to 31"):
        refuse_small("gdumb", 31, None, stream, sized=False)
    larger = replace(stream.stages[1], training=replace(stream.stages[1].training, batch_size=40))
    with pytest.raises(UserError, match="less than the 40"):
        refuse_small("replay", 32, None, replace(stream, stages=(stream.stages[0], larger)))
