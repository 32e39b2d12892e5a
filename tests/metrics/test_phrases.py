import math
from collections import Counter

import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.metrics import (
    Undefined,
    bleu,
    group_means,
    log_perplexity,
    perplexity_forgetting,
    phrase_log_perplexities,
)

NAN = float("nan")


def test_log_perplexity_against_a_loop() -> None:
    generator = np.random.default_rng(0)
    phrases = [-generator.random(length) * 9 for length in generator.integers(1, 6, size=50)]
    each = [-sum(phrase) / len(phrase) for phrase in phrases]
    flat, lengths = np.concatenate(phrases), [len(phrase) for phrase in phrases]
    assert phrase_log_perplexities(flat, lengths) == pytest.approx(each)
    assert log_perplexity(flat, lengths) == pytest.approx(sum(each) / len(each))
    assert log_perplexity(flat.astype(np.float32), np.array(lengths)) == pytest.approx(sum(each) / len(each), rel=1e-6)


def test_a_uniform_model_has_the_log_of_the_vocabulary() -> None:
    assert log_perplexity([-math.log(30522)] * 7, [3, 4]) == pytest.approx(math.log(30522))


def test_impossible_tokens() -> None:
    assert log_perplexity([-1, -math.inf], [1, 1]) == math.inf
    assert isinstance(log_perplexity([-1, NAN], [1, 1]), Undefined)


@pytest.mark.parametrize(
    ("tokens", "lengths", "message"),
    [
        ([], [], "token_log_probabilities is empty"),
        ([-1], [], "lengths is empty"),
        ([-1, -2], [1], "lengths sum to 1"),
        ([-1, -2], [2, 0], "lengths must be at least 1"),
        ([-1, -2], [1.5, 0.5], "lengths must hold whole numbers"),
        ([-1, 0.5], [2], "token_log_probabilities must not be above 0"),
    ],
)
def test_log_perplexity_refuses(tokens, lengths, message: str) -> None:
    with pytest.raises(UserError, match=message):
        log_perplexity(tokens, lengths)


def test_group_means_against_a_loop() -> None:
    generator = np.random.default_rng(0)
    values, groups = generator.random(40), generator.choice(["dog", "cat", "bus"], size=40)
    names, means = group_means(values, groups)
    assert names == ["bus", "cat", "dog"]
    for name, mean in zip(names, means, strict=True):
        chosen = [value for value, group in zip(values, groups, strict=True) if group == name]
        assert mean == pytest.approx(sum(chosen) / len(chosen))
    with pytest.raises(UserError, match="values and groups must have the same length"):
        group_means([1, 2], ["dog"])


def _bleu_by_hand(candidate: str, reference: str, n: int) -> float:
    """Papineni's formula for one pair, written out; orders the candidate is too short for are left out."""
    words, truth = candidate.split(), reference.split()
    logs = []
    for order in range(1, min(n, len(words)) + 1):
        grams = Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))
        wanted = Counter(tuple(truth[i : i + order]) for i in range(len(truth) - order + 1))
        clipped = sum(min(count, wanted[gram]) for gram, count in grams.items())
        if clipped == 0:
            return 0.0
        logs.append(math.log(clipped / sum(grams.values())))
    brevity = min(1.0, math.exp(1 - len(truth) / len(words)))
    return 100 * brevity * math.exp(sum(logs) / len(logs))


PAIRS = [
    ("a red car", "a red bus"),
    ("red car a", "a red bus"),
    ("the the the", "the dog"),
    ("dog", "dog"),
    ("dog", "a dog running"),
    ("cat", "dog"),
    ("a small ##ish dog running", "a small ##ish dog running"),
    ("The dog", "the dog"),
]


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize(("candidate", "reference"), PAIRS)
def test_bleu_against_the_formula(candidate: str, reference: str, n: int) -> None:
    assert bleu([candidate], [reference], n) == pytest.approx(_bleu_by_hand(candidate, reference, n))


def test_bleu_is_the_mean_over_pairs_not_over_the_corpus() -> None:
    candidates, references = zip(*PAIRS, strict=True)
    each = [_bleu_by_hand(candidate, reference, 2) for candidate, reference in PAIRS]
    assert bleu(candidates, references, 2) == pytest.approx(sum(each) / len(each))


def test_short_candidates_without_effective_order_score_zero() -> None:
    assert bleu(["dog"], ["dog"], 2) == pytest.approx(100)
    assert bleu(["dog"], ["dog"], 2, effective_order=False) == 0
    assert bleu(["a dog"], ["a dog"], 2, effective_order=False) == pytest.approx(100)


def test_bleu_edges() -> None:
    assert bleu([""], ["a dog"], 1) == 0
    assert bleu(["a dog"] * 3, ["a dog"] * 3, 2) <= 100
    with pytest.raises(UserError, match="candidates is empty"):
        bleu([], [], 1)
    with pytest.raises(UserError, match="candidates and references must have the same length"):
        bleu(["a"], [], 1)
    with pytest.raises(UserError, match="n must be at least 1"):
        bleu(["a"], ["a"], 0)
    with pytest.raises(UserError, match="not single strings"):
        bleu("a dog", "a cat", 1)


HISTORY = [[5.0, 6.0, 7.0], [3.0, 5.0, 7.0], [3.5, 1.0, 6.0], [4.0, 2.0, 5.0]]
SEEN = [[0.5, 0.0, 0.0], [0.97, 0.1, 0.0], [0.98, 1.0, 0.3], [1.0, 1.0, 1.0]]


def test_forgetting_from_when_the_data_had_been_seen() -> None:
    # Task 0 from row 2 (0.98 seen), task 1 from row 2, task 2 from the last row.
    assert perplexity_forgetting(HISTORY, SEEN) == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    assert perplexity_forgetting(HISTORY, SEEN, share=0.97) == pytest.approx((1.0 + 1.0 + 0.0) / 3)
    assert perplexity_forgetting(HISTORY, checkpoints=[2, 2, 3]) == perplexity_forgetting(HISTORY, SEEN)


def test_forgetting_from_the_best_checkpoint_is_never_negative() -> None:
    assert perplexity_forgetting(HISTORY) == pytest.approx((1.0 + 1.0 + 0.0) / 3)
    assert perplexity_forgetting(HISTORY, checkpoints=[0, 0, 0]) == pytest.approx((-1 - 4 - 2) / 3)


def test_forgetting_weighed_by_examples() -> None:
    assert perplexity_forgetting(HISTORY, SEEN, weights=[2, 1, 1]) == pytest.approx((2 * 0.5 + 1.0) / 4)


def test_tasks_without_both_values_are_left_out() -> None:
    unseen = np.array(SEEN)
    unseen[:, 1] = 0.5
    assert perplexity_forgetting(HISTORY, unseen) == pytest.approx(0.25)
    unknown = np.array(HISTORY)
    unknown[2, 1] = NAN
    assert perplexity_forgetting(unknown, SEEN) == pytest.approx(0.25)
    result = perplexity_forgetting(HISTORY, np.zeros((4, 3)))
    assert isinstance(result, Undefined)
    assert "no task" in result.reason


def test_a_share_that_rounds_down_still_counts() -> None:
    third = 0.1 + 0.2  # 0.30000000000000004
    assert perplexity_forgetting([[1.0], [3.0]], [[0.3], [1.0]], share=third) == 2


def test_perplexity_forgetting_refuses() -> None:
    with pytest.raises(UserError, match="history is empty"):
        perplexity_forgetting([])
    with pytest.raises(UserError, match="seen must have the shape of history"):
        perplexity_forgetting(HISTORY, SEEN[:2])
    with pytest.raises(UserError, match="share must be above 0"):
        perplexity_forgetting(HISTORY, SEEN, share=98)
    with pytest.raises(UserError, match="not both"):
        perplexity_forgetting(HISTORY, SEEN, checkpoints=[0, 0, 0])
    for rows in ([0, 0], [0, 0, 4], [0, 0, -1]):
        with pytest.raises(UserError, match="checkpoints must hold one row"):
            perplexity_forgetting(HISTORY, checkpoints=rows)
    for weights in ([1, 1], [1, 1, -1], [1, 1, NAN], [1, 1, math.inf]):
        with pytest.raises(UserError, match="weights must hold one number"):
            perplexity_forgetting(HISTORY, weights=weights)
