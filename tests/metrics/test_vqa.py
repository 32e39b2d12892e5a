from itertools import combinations

import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.metrics import normalise_answer, soft_targets, vqa_accuracy, vqa_score


@pytest.mark.parametrize("count", range(11))
def test_score_of_every_count_against_the_subsets_of_nine(count: int) -> None:
    answers = ["red"] * count + [f"other {i}" for i in range(10 - count)]
    subsets = [min(subset.count("red") / 3, 1) for subset in combinations(answers, 9)]
    assert vqa_score("red", answers) == pytest.approx(sum(subsets) / len(subsets))
    closed = (count * min((count - 1) / 3, 1) + (10 - count) * min(count / 3, 1)) / 10 if count else 0
    assert vqa_score("red", answers) == pytest.approx(closed)
    assert vqa_score("red", answers) == float(soft_targets(count))


def test_score_compares_normal_forms() -> None:
    assert vqa_score("The Red.", ["red", "a red", "RED", "red"] + ["blue"] * 6) == 1
    assert vqa_score("two", ["2"] * 10) == 1


def test_score_refuses() -> None:
    for answers in ([], ["red"], "red"):
        with pytest.raises(UserError, match="annotator_answers must be a list of at least two"):
            vqa_score("red", answers)


# Worked out by hand from the published rule.
@pytest.mark.parametrize(
    ("answer", "normal"),
    [
        ("Yes", "yes"),
        ("yes.", "yes"),
        ("  a\ndog\t", "dog"),
        ("an apple and the pear", "apple and pear"),
        ("zero", "0"),
        ("None", "0"),
        ("ten", "10"),
        ("eleven", "eleven"),
        ("1,000", "1000"),
        ("1,000-2,000", "10002000"),  # a comma between digits: every mark is dropped, none becomes a space
        ("3.5", "3.5"),
        ("5.", "5"),
        ("u.s.a.", "usa"),
        (".5", ".5"),
        ("t-shirt", "t shirt"),
        ("red, white", "red white"),
        ("red,white", "red white"),
        ("dog - cat", "dog cat"),
        ("t-shirt - red", "tshirt red"),  # one hyphen stands beside a space, so all hyphens are dropped
        ("yes/no", "yes no"),
        ('"stop"', "stop"),
        ("what?!", "what"),
        ("don't", "don't"),
        ("dont", "don't"),
        ("Isnt", "isn't"),
        ("cant", "can't"),
        ("wont", "won't"),
        ("couldn'tve", "couldn't've"),
        ("theyre", "they're"),
        ("its", "its"),
        ("were", "were"),
        ("5 oclock", "5 o'clock"),
        ("the", ""),
        ("", ""),
        ("$5", "$5"),
        ("50%", "50%"),
        ("one.", "1"),  # punctuation goes before the digits are read
        ("A-frame", "frame"),  # and before articles go
    ],
)
def test_normal_form(answer: str, normal: str) -> None:
    assert normalise_answer(answer) == normal


def test_soft_targets_keep_their_shape() -> None:
    assert soft_targets([[0, 1], [4, 3]]).tolist() == [[0.0, 0.3], [1.0, 0.9]]
    assert soft_targets(np.array([2.0], dtype=np.float32)).tolist() == [0.6]
    with pytest.raises(UserError, match="count must be at least 0"):
        soft_targets([-1])
    with pytest.raises(UserError, match="count must hold whole numbers"):
        soft_targets([0.5])
    with pytest.raises(UserError, match="count is empty"):
        soft_targets([])
    with pytest.raises(UserError, match="count must be"):
        soft_targets([[1], [2, 3]])


def test_accuracy_of_a_set_against_one_by_one() -> None:
    generator = np.random.default_rng(0)
    vocabulary = ["red", "blue", "2", "yes"]
    given = [generator.choice(vocabulary, size=10).tolist() for _ in range(25)]
    targets = soft_targets([[answers.count(word) for word in vocabulary] for answers in given])
    predictions = generator.integers(4, size=25)
    each = [vqa_score(vocabulary[chosen], answers) for chosen, answers in zip(predictions, given, strict=True)]
    assert vqa_accuracy(predictions, targets) == pytest.approx(sum(each) / 25)
    assert vqa_accuracy(predictions.tolist(), targets.astype(np.float32)) == pytest.approx(sum(each) / 25, rel=1e-6)


def test_accuracy_of_a_set_refuses() -> None:
    with pytest.raises(UserError, match="predictions is empty"):
        vqa_accuracy([], [])
    with pytest.raises(UserError, match="targets must be a table"):
        vqa_accuracy([0], [1])
    with pytest.raises(UserError, match="predictions and targets must have the same length"):
        vqa_accuracy([0], [[1], [1]])
    for chosen in (-1, 2):
        with pytest.raises(UserError, match="predictions must lie between 0 and 1"):
            vqa_accuracy([chosen], [[1, 0]])
