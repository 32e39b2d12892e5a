"""The accuracy of visual question answering (Antol et al., 2015; Goyal et al., 2017), and how answers are compared."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import UserError
from holdfast.metrics.arrays import Floats, integers, same_length

_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_DIGITS_WITH_COMMA = re.compile(r"\d,\d")
_PERIOD_NOT_BEFORE_DIGIT = re.compile(r"\.(?!\d)")
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS)} | {"none": "0"}
_ARTICLES = frozenset({"a", "an", "the"})


def _contractions() -> dict[str, str]:
    """Contractions written without some or all of their apostrophes, and their correct spelling.

    Those whose bare spelling is a different word (its, were, well, ill, hell, shell, shed, wed, id) are left unchanged.
    """
    auxiliaries = ("ai", "are", "ca", "did", "does", "do", "had", "has", "have", "is", "sha", "was", "were", "wo")
    modals = ("could", "might", "must", "need", "ought", "should", "would")
    people = ("somebody", "someone", "something")
    endings = {
        "s": ("he", "she", "that", "there", "what", "when", "where", "who", "why", "how", *people),
        "d": ("he", "it", "they", "you", "there", "that", "who", "where", "how", *people),
        "ll": ("it", "they", "you", "that", "what", "who", "why", "how", *people),
        "re": ("they", "you", "what", "why"),
        "ve": ("they", "you", "we", "i", "what", "who", "where", "could", "should", "would", "might", "must"),
        "m": ("i",),
    }
    table = {f"{word}{ending}": f"{word}'{ending}" for ending, words in endings.items() for word in words}
    for verb in (*auxiliaries, *modals):
        table[f"{verb}nt"] = f"{verb}n't"
        table[f"{verb}nt've"] = table[f"{verb}n'tve"] = f"{verb}n't've"
    for word in ("i", "he", "she", "it", "we", "they", "you", "there", "who", *people):
        table[f"{word}d've"] = table[f"{word}'dve"] = f"{word}'d've"
    return table | {"maam": "ma'am", "oclock": "o'clock", "twas": "'twas", "yall": "y'all"}


_CONTRACTIONS = _contractions()


def normalise_answer(answer: str) -> str:
    """The normal form in which the VQA evaluation compares answers (Antol et al., 2015).

    In this order: runs of white space become one space; each punctuation mark is dropped if anywhere in the answer it
    has a space beside it (all marks are, if the answer has a comma between digits), and otherwise becomes a space;
    periods are dropped unless a digit follows; letters become lower case; number words up to ten become digits;
    articles are dropped; contractions get their apostrophes.

    >>> normalise_answer("The  Two dogs!")
    '2 dogs'
    >>> normalise_answer("dont know."), normalise_answer("1,000"), normalise_answer("black-and-white")
    ("don't know", '1000', 'black and white')
    """
    raw = " ".join(answer.split())
    drop_all = _DIGITS_WITH_COMMA.search(raw) is not None
    text = raw
    for mark in _PUNCTUATION:
        if mark in raw:
            beside_space = f"{mark} " in raw or f" {mark}" in raw
            text = text.replace(mark, "" if drop_all or beside_space else " ")
    text = _PERIOD_NOT_BEFORE_DIGIT.sub("", text)
    words = (_NUMBERS.get(word, word) for word in text.lower().split())
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)


def vqa_score(answer: str, annotator_answers: Sequence[str]) -> float:
    """The score of one answer: the mean over annotators of min(matches among the other annotators / 3, 1).

    With the ten annotators of VQA it takes the values 0, 0.3, 0.6, 0.9 and 1 for 0, 1, 2, 3 and more matching answers,
    exactly as in `soft_targets` (Antol et al., 2015; Goyal et al., 2017). Answers are compared in normal form; the
    public evaluation leaves them unchanged if all annotators agree to the letter, so in that case it can be stricter.

    >>> vqa_score("Red", ["red"] * 2 + ["blue"] * 8)
    0.6
    """
    if isinstance(annotator_answers, str) or len(annotator_answers) < 2:
        raise UserError("annotator_answers must be a list of at least two answers: each is judged by the others")
    wanted = normalise_answer(answer)
    agree = np.array([normalise_answer(other) == wanted for other in annotator_answers])
    matches_among_others = agree.sum() - agree
    # Divide once, at the end, so that 0.6 comes out as 0.6.
    return float(np.minimum(matches_among_others, 3).sum() / (3 * len(agree)))


def soft_targets(count: ArrayLike) -> Floats:
    """The score of an answer that `count` of ten annotators gave: 0, 0.3, 0.6, 0.9, and 1 for four or more.

    The result has the shape of `count`. These are also CLiMB's training targets for VQAv2.

    >>> soft_targets([0, 1, 2, 3, 4, 10])
    array([0. , 0.3, 0.6, 0.9, 1. , 1. ])
    """
    counts = integers(count, "count", dimensions=None)
    if counts.min() < 0:
        raise UserError("count must be at least 0")
    return np.array([0.0, 0.3, 0.6, 0.9, 1.0])[np.minimum(counts, 4)]


def vqa_accuracy(predictions: ArrayLike, targets: ArrayLike) -> float:
    """Mean score over an evaluation set: (1/n) sum_i targets[i, predictions[i]].

    `predictions` holds the index of one answer for each example; `targets` (examples by answers) holds the score that
    each answer would get, as returned by `soft_targets`.

    >>> vqa_accuracy([1, 0], targets=[[0.3, 1.0], [0.6, 0.0]])
    0.8
    """
    chosen = integers(predictions, "predictions")
    table = np.asarray(targets)  # not converted: a double-precision copy of a full table would take gigabytes
    if table.ndim != 2:
        raise UserError(f"targets must be a table of examples by answers, but has {table.ndim} dimensions")
    same_length(chosen, "predictions", table, "targets")
    if chosen.min() < 0 or chosen.max() >= table.shape[1]:
        raise UserError(
            f"predictions must lie between 0 and {table.shape[1] - 1}: targets has {table.shape[1]} columns"
        )
    return float(table[np.arange(len(chosen)), chosen].mean(dtype=np.float64))
