"""Scores of free text against the packages that the field uses, and against their definitions written out."""

import math
import random
import re
import string
from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import sentence_bleu as published_sentence_bleu

from holdfast.errors import UserError
from holdfast.metrics import (
    SCORERS,
    caption_words,
    cider,
    cider_d,
    corpus_bleu,
    exact_match,
    normalise_text,
    rouge_l,
    sentence_bleu,
    vqa_score,
    vqa_scores,
)
from holdfast.metrics.text import common_words

WORDS = ["a", "the", "man", "dog", "dog's", "red", "two", "runs", "on", "street,", "with", "3.5", "Frisbee", "in-line"]


def _captions(seed: int, examples: int = 40, most: int = 5) -> tuple[list[str], list[list[str]]]:
    """Predictions with one to `most` references, from few words so that many n-grams are shared; some are empty."""
    draw = random.Random(seed)

    def text(shortest: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(shortest, 12)))

    references = [[text(1) for _ in range(draw.randint(1, most))] for _ in range(examples)]
    predictions = [draw.choice([draw.choice(right), text(0)]) for right in references]
    return predictions, references


def _published(scorer, predictions, references):
    """What a scorer of COCO's captions says of texts that are already split into words."""
    said = {row: [" ".join(caption_words(text))] for row, text in enumerate(predictions)}
    right = {row: [" ".join(caption_words(text)) for text in several] for row, several in enumerate(references)}
    return scorer.compute_score(right, said)


def test_rouge_l_equals_rouge_score() -> None:
    predictions, references = _captions(0, examples=200)
    published = RougeScorer(["rougeL"])
    each = [
        published.score_multi(right, said)["rougeL"].fmeasure
        for said, right in zip(predictions, references, strict=True)
    ]
    assert rouge_l(predictions, references) == pytest.approx(each, abs=1e-12)


def test_common_words_against_the_table() -> None:
    draw = random.Random(0)
    for _ in range(200):
        first, second = (draw.choices("abc", k=draw.randint(0, 70)) for _ in range(2))
        table = np.zeros((len(first) + 1, len(second) + 1), int)
        for i, one in enumerate(first):
            for j, other in enumerate(second):
                longest = max(table[i, j + 1], table[i + 1, j])
                table[i + 1, j + 1] = table[i, j] + 1 if one == other else longest
        assert common_words(first, second) == table[-1, -1]


def test_cider_d_equals_the_script_of_coco() -> None:
    for seed in range(5):
        predictions, references = _captions(seed)
        mean, each = _published(Cider(), predictions, references)
        assert cider_d(predictions, references) == pytest.approx(each, abs=1e-12)
        assert cider_d(predictions, references).mean() == pytest.approx(mean)


def test_cider_against_its_definition() -> None:
    """Equations 1 to 3 of the paper, with dense vectors over all n-grams, term frequencies as the paper writes them."""
    predictions, references = _captions(9, examples=12, most=3)

    def grams(text: str, n: int) -> list[tuple[str, ...]]:
        words = caption_words(text)
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    expected = np.zeros(len(references))
    for n in range(1, 5):
        known = sorted({g for text in [*predictions, *chain(*references)] for g in grams(text, n)})
        having = [sum(any(g in grams(text, n) for text in right) for right in references) for g in known]
        rarity = np.log(len(references) / np.maximum(having, 1))

        def vector(text: str, n: int = n, known=known, rarity=rarity) -> np.ndarray:
            counts = Counter(grams(text, n))
            return np.array([counts[g] for g in known]) / max(counts.total(), 1) * rarity

        for row, (said, right) in enumerate(zip(predictions, references, strict=True)):
            own = vector(said)
            for text in right:
                other = vector(text)
                lengths = np.linalg.norm(own) * np.linalg.norm(other)
                expected[row] += (own @ other / lengths if lengths else 0.0) / len(right) / 4
    assert cider(predictions, references) == pytest.approx(expected, abs=1e-12)


def test_one_example_alone_has_no_consensus() -> None:
    assert cider_d(["a dog"], [["a dog"]]) == pytest.approx([0.0])


def test_corpus_bleu_equals_the_script_of_coco() -> None:
    predictions, references = _captions(3, examples=60)
    # The two split numbers and clitics differently: leave these out.
    plain = [re.sub(r"[^a-z ]", "", text.lower()) for text in predictions]
    several = [[re.sub(r"[^a-z ]", "", text.lower()) for text in each] for each in references]
    published, _ = _published(Bleu(4), plain, several)
    for n in range(1, 5):
        assert corpus_bleu(plain, several, n) == pytest.approx(published[n - 1], abs=1e-7)


def test_corpus_bleu_against_papineni() -> None:
    predictions = ["the the the the", "a red dog runs on the street", "dog"]
    references = [["the cat is on the mat", "there is a cat"], ["a red dog runs on a street"], ["dog"]]
    matches, total = Counter(), Counter()
    for said, right in zip(predictions, references, strict=True):
        words = said.split()
        for n in (1, 2):
            count = Counter(pairwise(words) if n == 2 else zip(words, strict=True))
            wanted = Counter()
            for text in right:
                wanted |= Counter(pairwise(text.split()) if n == 2 else zip(text.split(), strict=True))
            matches[n] += (count & wanted).total()
            total[n] += count.total()
    length, closest = 4 + 7 + 1, 4 + 7 + 1  # of the references to the first, that of four words is the closer one
    precision = math.exp(sum(math.log(matches[n] / total[n]) for n in (1, 2)) / 2)
    assert corpus_bleu(predictions, references, 2) == pytest.approx(precision * min(1, math.exp(1 - closest / length)))


def test_sentence_bleu_equals_sacrebleu() -> None:
    predictions, references = _captions(4)
    each = [
        published_sentence_bleu(said, right).score / 100 for said, right in zip(predictions, references, strict=True)
    ]
    assert sentence_bleu(predictions, references) == pytest.approx(each)


def _squad(text: str) -> str:
    """The normal form by its four official steps."""
    lower = text.lower()
    bare = "".join(letter for letter in lower if letter not in set(string.punctuation))
    without = " ".join(" " if word in ("a", "an", "the") else word for word in re.split(r"(\W+)", bare))
    return " ".join(without.split())


def test_exact_match() -> None:
    predictions, references = _captions(5, examples=100)
    expected = [
        any(_squad(said) == _squad(text) for text in right) for said, right in zip(predictions, references, strict=True)
    ]
    assert exact_match(predictions, references).tolist() == expected
    assert 0 < sum(expected) < 100
    assert exact_match(["The True."], [["true"]]).tolist() == [1.0]
    with_articles = lambda text: normalise_text(text, articles=True)  # noqa: E731
    assert exact_match(["The True."], [["true"]], with_articles).tolist() == [0.0]
    assert exact_match(["Science or technology"], [["Science or Technology"]], with_articles).tolist() == [1.0]


def test_vqa_scores() -> None:
    answers = [["2"] * 3 + ["3"] * 7, ["yes"] * 10]
    assert vqa_scores(["two", "No"], answers).tolist() == [vqa_score("two", answers[0]), 0.0]


@pytest.mark.parametrize("score", [exact_match, rouge_l, sentence_bleu, corpus_bleu, vqa_scores, cider, cider_d])
def test_refused(score) -> None:
    with pytest.raises(UserError, match="predictions is empty"):
        score([], [])
    with pytest.raises(UserError, match="same length"):
        score(["a"], [["a"], ["b"]])
    with pytest.raises(UserError, match="a list of texts"):
        score("a", [["a"]])
    for wrong in ("a", []):
        with pytest.raises(UserError, match="references 0 must be a list of at least one text"):
            score(["a"], [wrong])
    with pytest.raises(UserError, match="n must be at least 1"):
        corpus_bleu(["a"], [["a"]], 0)


def test_texts_without_words() -> None:
    for score in (rouge_l, sentence_bleu, cider, cider_d):
        assert score(["", "..."], [["a dog"], ["?"]]).tolist() == [0.0, 0.0]


def test_the_named_scorers_are_means() -> None:
    predictions, references = _captions(6, examples=20)
    each = {"exact": exact_match, "rouge-l": rouge_l, "cider": cider_d, "vqa": vqa_scores}
    tens = [right * 10 for right in references]  # annotators: at least two
    for name, score in each.items():
        assert SCORERS[name](predictions, tens) == pytest.approx(score(predictions, tens).mean())
    assert SCORERS["bleu"](predictions, references) == corpus_bleu(predictions, references)
    assert SCORERS["exact"](["a dog"], [["dog"]]) == 1.0 > SCORERS["exact-with-articles"](["a dog"], [["dog"]])
