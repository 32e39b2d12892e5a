import random
from collections import Counter

import numpy as np
import pytest

from holdfast.data.sampling import answer_vocabulary, cut, low_shot, soft_answers
from holdfast.errors import UserError
from holdfast.metrics.vqa import normalise_answer, soft_targets

NAMES = [f"n{i:05d}" for i in range(3000)]
LABELS = [i % 7 for i in range(3000)]


@pytest.mark.parametrize(("share", "count"), [(0.3, None), (None, 16), (0.1, 50)])
def test_file_order_does_not_matter(share, count):
    order = random.Random(0).sample(range(3000), 3000)
    names, labels = [NAMES[i] for i in order], [LABELS[i] for i in order]
    for some in (None, labels):
        plain = None if some is None else LABELS
        here = {NAMES[i] for i in cut(NAMES, plain, share=share, count=count)[1]}
        there = {names[i] for i in cut(names, some, share=share, count=count)[1]}
        assert here == there
        first = {NAMES[i] for i in low_shot(NAMES, plain, share=share, count=count, seed=4)}
        assert first == {names[i] for i in low_shot(names, some, share=share, count=count, seed=4)}


def test_the_two_parts_of_a_cut_are_everything_once():
    rest, part = cut(NAMES, share=0.3)
    assert len(part) == 900
    assert sorted([*rest, *part]) == list(range(3000))
    rest, part = cut(NAMES, share=0.5)
    assert abs(len(rest) - len(part)) <= 1


def test_per_class_counts_and_the_smaller_of_share_and_count():
    few = [0] * 20 + [1] * 1000 + [2] * 1980
    assert Counter(few[i] for i in cut(NAMES, few, share=0.1, count=50)[1]) == {0: 2, 1: 50, 2: 50}
    assert Counter(few[i] for i in low_shot(NAMES, few, count=32, seed=0)) == {0: 20, 1: 32, 2: 32}
    assert len(low_shot(NAMES, count=1024, seed=0)) == 1024


def test_seeds_and_purposes_draw_independent_samples():
    samples = [set(low_shot(NAMES, share=0.5, seed=seed)) for seed in range(3)] + [set(cut(NAMES, share=0.5)[1])]
    for i, a in enumerate(samples):
        for b in samples[:i]:
            assert abs(len(a & b) - 750) < 5 * np.sqrt(3000 * 3 / 16), "two independent halves share a quarter"
    assert set(low_shot(NAMES, count=16, seed=1)) < set(low_shot(NAMES, count=32, seed=1))


def test_a_sample_is_spread_evenly():
    chosen = low_shot(NAMES, count=1500, seed=0)
    assert abs(chosen.mean() - 1499.5) < 5 * 866 / np.sqrt(1500)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "share or a count"),
        ({"share": 1.2}, "between 0 and 1"),
        ({"count": -1}, "at least 0"),
        ({"names": ["a", "a"], "count": 1}, "'a' occurs more than once"),
        ({"labels": [1], "count": 1}, "as many labels"),
    ],
)
def test_wrong_calls_are_refused(arguments, match):
    with pytest.raises(UserError, match=match):
        low_shot(arguments.pop("names", ["a", "b"]), **arguments, seed=0)


def test_the_answer_vocabulary_counts_normal_forms():
    answers = ["Two"] * 5 + ["2"] * 4 + ["the cat"] * 8 + ["yes"] * 30 + ["dog."] * 9 + ["a"] * 20
    found = answer_vocabulary(answers, normalise_answer)
    assert found == ("yes", "", "2", "dog"), "an answer that is all article is the empty one; eight are too few"
    assert answer_vocabulary(random.Random(0).sample(answers, len(answers)), normalise_answer) == found


def test_soft_answers_are_the_metric_s_scores():
    rng = random.Random(0)
    annotators = [[rng.choice(["Red", "red.", "the red", "blue", "teal", "no"]) for _ in range(10)] for _ in range(50)]
    vocabulary = ["no", "red", "blue"]
    counts = [[[normalise_answer(a) for a in row].count(word) for word in vocabulary] for row in annotators]
    found = soft_answers(annotators, vocabulary, normalise_answer)
    np.testing.assert_array_equal(found, soft_targets(counts).astype(np.float32))
    places = {word: i for i, word in enumerate(vocabulary)}
    np.testing.assert_array_equal(soft_answers(annotators, places, normalise_answer), found)


def test_the_empty_answer_counts_and_a_comma_that_is_left_does_not():
    def normalise(text: str) -> str:
        return "" if text == "a" else text.lower()

    answers = ["a", "a", "Red, blue", "red blue", "teal"]
    assert answer_vocabulary(answers, normalise, minimum=2) == ("", "red blue")
    assert soft_answers([["a"] * 4 + ["red, blue"]], ["", "red blue"], normalise).tolist() == [
        pytest.approx([1.0, 0.3])
    ]


def test_a_cut_by_groups_parts_no_group_and_comes_near_the_share():
    random = np.random.default_rng(0)
    groups = [str(number) for number in random.integers(0, 200, 1000)]
    names = [f"question-{n}" for n in range(1000)]
    rest, part = cut(names, share=0.3, groups=groups, seed=4)
    assert sorted([*rest, *part]) == list(range(1000))
    assert not {groups[i] for i in rest} & {groups[i] for i in part}
    assert abs(len(part) - 300) <= 5
    order = random.permutation(1000)
    _, again = cut([names[i] for i in order], share=0.3, groups=[groups[i] for i in order], seed=4)
    assert {names[order[i]] for i in again} == {names[i] for i in part}
    with pytest.raises(UserError, match="by classes or by groups"):
        cut(names, groups, share=0.3, groups=groups)
    with pytest.raises(UserError, match="as many groups"):
        cut(names, share=0.3, groups=groups[:5])
