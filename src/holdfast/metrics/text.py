"""Scores of free text: exact match, ROUGE-L, BLEU, CIDEr and the VQA score, for predictions with several references.

Each takes the predicted texts and, for each of them, the list of its right answers. All but `corpus_bleu` return one
score for each prediction; their mean is the score of the set.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from holdfast.errors import UserError
from holdfast.metrics.arrays import Floats, same_length
from holdfast.metrics.vqa import vqa_score

References = Sequence[Sequence[str]]
Grams = Counter[tuple[str, ...]]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ROUGE_WORD = re.compile(r"[a-z0-9]+")
_CLITICS = re.compile(r"(?<=\w)(?='(?:s|m|d|re|ve|ll)\b)|(?<=\w)(?=n't\b)")
_CAPTION_WORD = re.compile(r"(?:\d+[.,:/])+\d+|\w\.(?:\w\.)+|[\w'’&$%#@-]+")
_LARGEST_N = 4
_WIDTH = 6.0
"""The standard deviation of CIDEr-D's penalty on lengths."""


def normalise_text(text: str, articles: bool = False) -> str:
    """The normal form in which SQuAD's evaluation compares answers (Rajpurkar et al., 2016).

    Lower case, without punctuation, articles and superfluous white space. O-LoRA and Super-NaturalInstructions keep the
    articles (`articles=True`).

    >>> normalise_text("The  U.S. Army!"), normalise_text("The  U.S. Army!", articles=True)
    ('us army', 'the us army')
    """
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join((plain if articles else _ARTICLES.sub(" ", plain)).split())


def exact_match(
    predictions: Sequence[str], references: References, normalise: Callable[[str], str] = normalise_text
) -> Floats:
    """1 for each prediction that equals one of its references in normal form, otherwise 0 (Rajpurkar et al., 2016).

    >>> exact_match(["The cat.", "dog"], [["cat"], ["a cat", "two dogs"]])
    array([1., 0.])
    """
    _checked(predictions, references)
    pairs = zip(predictions, references, strict=True)
    return np.array([float(normalise(said) in map(normalise, right)) for said, right in pairs])


def rouge_l(predictions: Sequence[str], references: References) -> Floats:
    """ROUGE-L of each prediction, the best over its references; from 0 to 1 (Lin, 2004).

    F = 2PR / (P + R), where P and R are the length of the longest common subsequence of words as a share of the
    prediction and of the reference. Words are runs of the letters a to z and of digits, in lower case, not stemmed.

    >>> rouge_l(["the cat sat"], [["the cat on the mat sat down"]])  # 3 of 3 words, 3 of 7
    array([0.6])
    """
    _checked(predictions, references)
    scores = []
    for said, right in zip(predictions, references, strict=True):
        words = _ROUGE_WORD.findall(said.lower())
        others = [_ROUGE_WORD.findall(each.lower()) for each in right]
        shared = ((common_words(words, other), len(words) + len(other)) for other in others)
        scores.append(max(2 * common / total if total else 0.0 for common, total in shared))
    return np.array(scores)


def common_words(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence, by whole rows of the table as the bits of one number (Hyyrö, 2004).

    >>> common_words("a b c d".split(), "b x d a".split())
    2
    """
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    row = every = (1 << len(first)) - 1
    for word in second:
        matched = row & places.get(word, 0)
        row = (row + matched | row - matched) & every
    return len(first) - row.bit_count()


def sentence_bleu(predictions: Sequence[str], references: References, n: int = 4) -> Floats:
    """BLEU-n of each prediction against its references, from 0 to 1 (Papineni et al., 2002), as sacrebleu computes it.

    An order without a match counts as a half, a quarter, ... of one n-gram; orders that the prediction is too short for
    are left out. The words are those of the `13a` tokeniser, and case matters.

    >>> sentence_bleu(["a red car"], [["a red bus", "a car"]], n=1)
    array([1.])
    """
    from sacrebleu.metrics.bleu import BLEU  # imported on use: it is slow to import, and few callers need it

    _checked(predictions, references)
    scorer = BLEU(max_ngram_order=_order(n), effective_order=True)
    pairs = zip(predictions, references, strict=True)
    return np.minimum([scorer.sentence_score(said, list(right)).score / 100 for said, right in pairs], 1.0)


def corpus_bleu(predictions: Sequence[str], references: References, n: int = 4) -> float:
    """BLEU-n of all predictions together, from 0 to 1 (Papineni et al., 2002), as sacrebleu computes it.

    The clipped counts and lengths are summed over the predictions before precisions are taken. Without smoothing: if
    no n-gram of some order matches, the result is 0.

    >>> corpus_bleu(["a red car stops", "a dog"], [["a red car stops here"], ["a dog", "one dog"]], n=2)
    0.84...
    """
    from sacrebleu.metrics.bleu import BLEU

    _checked(predictions, references)
    most = max(map(len, references))
    streams: Any = [[right[place] if place < len(right) else None for right in references] for place in range(most)]
    scorer = BLEU(max_ngram_order=_order(n), smooth_method="none")
    return min(float(scorer.corpus_score(list(predictions), streams).score) / 100, 1.0)


def vqa_scores(predictions: Sequence[str], references: References) -> Floats:
    """The VQA score of each predicted answer, `vqa_score`; the references are its annotators' answers.

    >>> vqa_scores(["Red!"], [["red"] * 2 + ["blue"] * 8])
    array([0.6])
    """
    _checked(predictions, references)
    return np.array([vqa_score(said, right) for said, right in zip(predictions, references, strict=True)])


def caption_words(caption: str) -> list[str]:
    """The words of a caption in lower case, without punctuation.

    The script that evaluates COCO's captions calls the Penn Treebank tokeniser of a Java library; this splits the same
    clitics and drops the same marks, and can differ from it in rare cases such as emoticons and fractions.

    >>> caption_words("A man's dog -- it doesn't run; at 5:30 p.m.")
    ['a', 'man', "'s", 'dog', 'it', 'does', "n't", 'run', 'at', '5:30', 'p.m.']
    """
    found = _CAPTION_WORD.findall(_CLITICS.sub(" ", caption.lower()))
    return [word for word in found if word.strip("-'’")]


def cider(
    predictions: Sequence[str], references: References, split: Callable[[str], list[str]] = caption_words
) -> Floats:
    """CIDEr of each prediction, from 0 to 1 (Vedantam et al., 2015, equation 3), without stemming.

    The mean over n from 1 to 4, and over the references, of the cosine between the n-grams' counts, each weighed by
    log(examples / examples with a reference that has the n-gram). The references of all examples determine these
    weights, so a score depends on the others of its set: with one example alone, every weight is 0.

    >>> cider(["a red car", "two dogs"], [["a red car"], ["a cat"]]).round(3)
    array([0.75, 0.  ])
    """
    return _consensus(predictions, references, split, robust=False)


def cider_d(
    predictions: Sequence[str], references: References, split: Callable[[str], list[str]] = caption_words
) -> Floats:
    """CIDEr-D of each prediction, from 0 to 10: what the evaluation of COCO's captions prints as CIDEr.

    To penalise predictions that please the measure but no reader, counts are clipped to those of the reference, and
    each cosine is multiplied by exp(-(difference of the lengths)^2 / (2 6^2)) (Vedantam et al., 2015, equation 5).

    >>> cider_d(["a red car", "two dogs"], [["a red car"], ["a cat"]]).round(3)
    array([7.5, 0. ])
    """
    return 10 * _consensus(predictions, references, split, robust=True)


def _consensus(
    predictions: Sequence[str], references: References, split: Callable[[str], list[str]], robust: bool
) -> Floats:
    _checked(predictions, references)
    right = [[_grams(split(each)) for each in several] for several in references]
    examples_with = Counter(gram for several in right for gram in set().union(*several))
    most = math.log(len(right))
    weights = {gram: most - math.log(count) for gram, count in examples_with.items()}

    def weighed(grams: Grams) -> tuple[dict[tuple[str, ...], float], Floats]:
        vector = {gram: count * weights.get(gram, most) for gram, count in grams.items()}
        squares = np.zeros(_LARGEST_N)
        for gram, value in vector.items():
            squares[len(gram) - 1] += value * value
        return vector, np.sqrt(squares)

    scores = np.zeros(len(right))
    for row, (said, several) in enumerate(zip(predictions, right, strict=True)):
        own = _grams(split(said))
        vector, norm = weighed(own)
        for each in several:
            other, other_norm = weighed(each)
            dots = np.zeros(_LARGEST_N)
            for gram in vector.keys() & other.keys():
                value = min(vector[gram], other[gram]) if robust else vector[gram]
                dots[len(gram) - 1] += value * other[gram]
            product = norm * other_norm
            cosines = dots / np.where(product > 0, product, 1.0)
            apart = _length(own) - _length(each)
            penalty = math.exp(-((apart / _WIDTH) ** 2) / 2) if robust else 1.0
            scores[row] += penalty * float(cosines.mean()) / len(several)
    return scores


def _grams(words: list[str]) -> Grams:
    ends = ((start, start + n) for n in range(1, _LARGEST_N + 1) for start in range(len(words) - n + 1))
    return Counter(tuple(words[start:end]) for start, end in ends)


def _length(grams: Grams) -> int:
    """The number of pairs of neighbours, by which the public script measures a caption's length."""
    return sum(count for gram, count in grams.items() if len(gram) == 2)


def _order(n: int) -> int:
    if n < 1:
        raise UserError(f"n must be at least 1, not {n}")
    return n


def _checked(predictions: Sequence[str], references: References) -> None:
    if isinstance(predictions, str) or isinstance(references, str):
        raise UserError("predictions must be a list of texts, and references a list of texts for each of them")
    if not len(predictions):
        raise UserError("predictions is empty")
    same_length(predictions, "predictions", references, "references")
    for place, right in enumerate(references):
        if isinstance(right, str) or not len(right):
            raise UserError(f"references {place} must be a list of at least one text")


def _mean(score: Callable[[Sequence[str], References], Floats]) -> Callable[[Sequence[str], References], float]:
    def mean(predictions: Sequence[str], references: References) -> float:
        return float(score(predictions, references).mean())

    return mean


SCORERS: Mapping[str, Callable[[Sequence[str], References], float]] = MappingProxyType(
    {
        "exact": _mean(exact_match),
        "exact-with-articles": _mean(
            partial(exact_match, normalise=partial(normalise_text, articles=True)),
        ),
        "vqa": _mean(vqa_scores),
        "bleu": corpus_bleu,
        "rouge-l": _mean(rouge_l),
        "cider": _mean(cider_d),
    }
)
"""The scores for generative tasks, by name: each maps a whole set to its score. `cider` is CIDEr-D, from 0 to 10."""
