"""Scores from one pass over the test phrases, and the measures that follow from a log."""

import dataclasses
import math

import numpy as np
import pytest

from holdfast.benchmarks.viscoll import protocol
from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.metrics import aligned_bleu, bleu
from holdfast.types import Score


def predicted(losses, words):
    return np.concatenate([np.array(losses, np.float32), np.array(words, np.float32)], axis=1)


def test_aligned_bleu_is_sentence_level_bleu():
    random = np.random.default_rng(0)
    references = random.integers(0, 4, (300, 6))
    lengths = random.integers(1, 7, 300)
    references[np.arange(6) >= lengths[:, None]] = -100
    candidates = np.where(random.random((300, 6)) < 0.5, np.maximum(references, 0), random.integers(0, 4, (300, 6)))
    texts = [
        [" ".join(map(str, row[:n])) for row, n in zip(rows, lengths, strict=True)] for rows in (candidates, references)
    ]
    for n in (1, 2, 3):
        found = aligned_bleu(candidates, references, n)
        for one, candidate, reference in zip(found, *texts, strict=True):
            assert 100 * one == pytest.approx(bleu([candidate], [reference], n, effective_order=False), abs=1e-6)
    assert aligned_bleu([[1], [2]], [[1], [3]], 2).tolist() == [0, 0], "one word has no pair of words"


def test_details_are_means_over_the_phrases_of_each_part():
    targets = np.array([[5, 6], [7, -100], [5, -100]])
    found = protocol.details(
        protocol.Parts.of([("task/dog", 0), ("task/cat", 1), ("task/dog", 2)]),
        protocol.Parts.of([("word/black dog", 0), ("word/black dog", 0)], [1, 0]),
        bleu=True,
    )(predicted([[1.0, 3.0], [4.0, 0.0], [1.0, 0.0]], [[5, 6], [7, 9], [6, 9]]), targets)
    assert found["task/dog"] == (2, pytest.approx(-(2 + 1) / 2))
    assert found["task/cat"] == (1, pytest.approx(-4))
    assert found["word/black dog"] == (2, pytest.approx(-2))
    assert found["bleu/1"] == (3, pytest.approx(2 / 3))
    assert found["bleu/2"] == (3, pytest.approx(1 / 3)), "of phrases of one word, none has a right pair"


def test_parts_of_regular_and_of_novel_phrases():
    dog = MaskedSpan("1", ("a", "big", "black", "dog"), (0, 4), "dog", ("dog",), (), ("big", "black"), "test", "", ())
    rider = MaskedSpan("2", ("man", "lying"), (0, 2), "person", ("man",), ("lie",), (), "test", "", ("NN", "VBG"))
    rows = np.array([[0, 1, 2, 3, -1], [0, 1, 1, -1, -1]])
    tasks, seen, pairs, words = protocol.regular_parts([dog, rider], rows)
    assert tasks.names == ("task/dog", "task/person")
    assert seen.names == ("adjective seen/big dog", "adjective seen/black dog", "verb seen/lie man")
    assert words.names == ("word/lie man",), "without tags nobody knows which word it is"
    assert words.rows.tolist() == [1, 1]
    assert words.places.tolist() == [1, 2], "a word of two pieces"
    assert (pairs.names, pairs.rows.tolist()) == (("verb seen words/lie man",), [1, 1, 1])
    assert (pairs.places.tolist(), pairs.weights.tolist()) == ([1, 2, 0], [0.25, 0.25, 0.5]), (
        "each word counts the same"
    )
    cat = MaskedSpan(
        "3", ("a", "black", "cat"), (0, 3), "cat", ("cat",), (), ("black",), "novel", "black cat", ("DT", "JJ", "NN")
    )
    other = MaskedSpan("4", ("a", "dog"), (0, 2), "dog", ("dog",), (), (), "novel", "", ("DT", "NN"))
    novel, pairs, words = protocol.novel_parts([cat, other], np.array([[0, 1, 2], [0, 1, -1]]))
    assert (novel.names, novel.rows.tolist()) == (("adjective novel/black cat",), [0])
    assert (pairs.names, pairs.places.tolist()) == (("adjective novel words/black cat",), [1, 2])
    assert (words.names, words.places.tolist()) == (("word/black cat",), [1])


def test_a_phrase_counts_for_the_last_pair_that_it_names():
    """Only for pairs with counted occurrences, and by the two words alone, as in the released code."""
    phrase = MaskedSpan(
        "1", ("big", "black", "dog", "standing"), (0, 4), "dog", ("dog",), ("stand",), ("big", "black"), "test", "",
        ("JJ", "JJ", "NN", "VBG"),
    )  # fmt: skip
    rows = np.array([[0, 1, 2, 3]])
    parts = protocol.regular_parts([phrase], rows)
    assert parts[1].names == ("adjective seen/big dog", "adjective seen/black dog", "verb seen/stand dog")
    assert (parts[2].names, parts[2].places.tolist()) == (("adjective seen words/black dog",), [1, 2])
    white = dataclasses.replace(phrase, caption=("white", "and", "black", "cat"), nouns=("cat",), verbs=(),
        adjectives=("white", "black"), tags=("JJ", "CC", "JJ", "NN"), split="novel", pair="black cat")  # fmt: skip
    assert protocol.novel_parts([white], rows)[1].names == ("adjective novel words/black cat",)
    assert protocol.regular_parts([white], rows)[2].names == (), "the last pair is held out"


def log(values, step, stage=0, split="test"):
    return [Score(stage, step, name, split, 10, value) for name, value in values.items()]


SCORES = [
    *log({"regular": -4.0, "task/dog": -2.0, "task/cat": -5.0}, 10),
    *log({"regular": -3.0, "task/dog": -2.5, "task/cat": -1.0}, 20),
    *log({"regular": -2.5, "task/dog": -3.5, "task/cat": -1.25, "bleu/1": 0.5, "bleu/2": 0.25}, 30, stage=1),
    *log({"novel": -4.0}, 30, 1),
    *log({"adjective seen/black dog": -1.0, "adjective seen/big dog": -2.0, "adjective novel/black cat": -4.0}, 30, 1),
    Score(1, 30, "adjective seen words/black dog", "test", 2, -1.5),
    *log({"adjective seen words/big dog": -3.0, "adjective novel words/black cat": -5.0}, 30, 1),
    *log({"learned/dog": 9.0, "learned/cat": 11.0}, 30, 1),
]


def test_the_summary_by_hand():
    found = protocol.summary(SCORES)
    assert found["log_perplexity"] == 2.5
    assert (found["bleu_1"], found["bleu_2"]) == (0.5, 0.25)
    # Dogs were learned at step 9, so that the evaluation at 10 counts; cats at 11, so that the one at 20 does.
    assert found["forgetting"] == pytest.approx(((3.5 - 2.0) + (1.25 - 1.0)) / 2)
    assert found["adjective_seen"] == 1.5
    assert found["adjective_novel"] == 4.0
    assert math.isnan(found["verb_seen"])
    # Two occurrences of one composition and ten of another, each of which counts.
    assert found["adjective_seen_words"] == pytest.approx((2 * 1.5 + 10 * 3.0) / 12)
    assert found["adjective_novel_words"] == 5.0
    assert set(found) == set(protocol.MEASURES) - {"untrained_tasks"}
    plain = protocol.summary([score for score in SCORES if "novel" not in score.name])
    assert not [name for name in plain if "seen" in name or "novel" in name], "nothing was held out"


def test_steps_are_compared_with_steps():
    """The released code compares examples with steps; a task learned after the last evaluation forgets nothing."""
    later = [*SCORES[:-2], *log({"learned/dog": 300.0, "learned/cat": 11.0}, 30, 1)]
    assert protocol.forgetting(later) == pytest.approx((0 + 0.25) / 2)


def test_forgetting_by_example_counts_a_task_by_its_test_examples():
    many = [Score(s.stage, s.step, s.name, s.split, 30, s.score) if "task/dog" in s.name else s for s in SCORES]
    assert protocol.summary(many)["forgetting"] == protocol.summary(SCORES)["forgetting"]
    expected = (30 * (3.5 - 2.0) + 10 * (1.25 - 1.0)) / 40
    assert protocol.summary(many)["forgetting_by_example"] == pytest.approx(expected)


def test_tasks_that_were_never_trained_are_left_out_and_counted():
    more = [*SCORES, *log({"task/bird": -9.0}, 10), *log({"task/bird": -9.0}, 20), *log({"task/bird": -9.0}, 30, 1)]
    found = protocol.summary(more)
    assert found["forgetting"] == pytest.approx(((3.5 - 2.0) + (1.25 - 1.0)) / 2), "not a third of it less"
    assert found["forgetting_by_example"] == pytest.approx(((3.5 - 2.0) + (1.25 - 1.0)) / 2)
    assert found["untrained_tasks"] == 1
    assert protocol.untrained(more) == ["bird"]
    none = [s for s in more if s.name not in ("learned/dog", "learned/cat")]
    assert math.isnan(protocol.forgetting([*none, *log({"learned/boat": 1.0}, 30, 1)]))


def test_one_evaluation_says_nothing_of_forgetting():
    found = protocol.forgetting([s for s in SCORES if s.step == 30])
    assert math.isnan(found)
    assert "only one evaluation" in found.reason


def test_without_an_order_there_is_nothing_to_forget():
    found = protocol.forgetting([s for s in SCORES if not s.name.startswith("learned/")])
    assert math.isnan(found)
    assert "no order of tasks" in found.reason
    assert math.isnan(protocol.summary([])["log_perplexity"])
