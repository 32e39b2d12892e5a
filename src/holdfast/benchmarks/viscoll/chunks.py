"""The chunk grammar of VisCOLL: which words of a tagged caption form a phrase.

A chunk is an optional determiner, adjectives and participles, one or more nouns, and the verbs that follow:

    DT? (JJ | VBG | VBN)* (NN | NNS)+ (VB | VBD | VBG | VBN | VBP | VBZ)*

The paper prints VPZ, which is not a tag, instead of VBZ, and so does its code: "a cat sits" then becomes "a cat". The
default follows the intention; `PRINTED` follows the printed form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

BEFORE = frozenset({"JJ", "VBG", "VBN"})
NOUNS = frozenset({"NN", "NNS"})
VERBS = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"})
PRINTED = VERBS - {"VBZ"}


@dataclass(frozen=True)
class Chunk:
    """Words [start, stop) of a caption: its nouns are [nouns, verbs), and its verbs [verbs, stop).

    `beside` are the words beyond it that also refer to its nouns: in "a cat is black", the chunk is "a cat is"; in "a
    man in a hat is eating" it is "a man", with "is eating" beside it; in "a black and white cat" it is "white cat".
    """

    start: int
    nouns: int
    verbs: int
    stop: int
    beside: tuple[int, ...] = ()


def find_chunks(tags: Sequence[str], verbs: frozenset[str] = VERBS) -> list[Chunk]:
    """The chunks of a caption from left to right, each as long as possible.

    >>> find_chunks(["DT", "JJ", "NN", "VBZ", "VBG", "DT", "NN"])
    [Chunk(start=0, nouns=2, verbs=3, stop=5, beside=()), Chunk(start=5, nouns=6, verbs=7, stop=7, beside=())]
    """
    letters = "".join(_LETTERS.get(tag, ".") for tag in tags)
    return [
        Chunk(match.start(), match.start("nouns"), match.end("nouns"), match.end(), _beside(letters, match))
        for match in _pattern(verbs).finditer(letters)
    ]


# One letter for each relevant tag, so that a chunk is a match of a regular expression.
_LETTERS = {
    **{
        "DT": "d",
        "PRP$": "o",
        "JJ": "j",
        "NN": "n",
        "NNS": "n",
        "IN": "i",
        "RB": "r",
        "RP": "r",
        "WDT": "w",
        "WP": "w",
        "CC": "&",
        ",": ",",
    },
    **{"VB": "b", "VBD": "c", "VBG": "g", "VBN": "p", "VBP": "q", "VBZ": "z"},
}
_SAID = re.compile(
    "(?:i[do]?j*n*)*(?:[&,]+[do]?[jgp]*n+)?(?P<said>[bcgpqzrw]*(?:[&,]+[bcgpqzr]+)*(?:j+(?:[&,]+j+)*(?![jgpn&,]))?)"
)
"""A location ("in a hat") or another subject ("and a woman"), then actions and properties ("sitting and eating", "black
and white"); an adjective before a noun belongs to that noun.
"""
_ALSO = re.compile("(?:j+[&,]+)+$")
"""Further adjectives before a chunk: "a black and white cat", "a red, white and blue bus"."""


def _beside(letters: str, chunk: re.Match[str]) -> tuple[int, ...]:
    found: list[int] = []
    if also := _ALSO.search(letters, 0, chunk.start()):
        found += range(*also.span())
    at = chunk.end("nouns")
    for _ in range(2):  # directly ("sitting"), and after a location ("on a bench, eating")
        said = _SAID.match(letters, at)
        assert said is not None
        found += range(*said.span("said"))
        at = said.end()
    return tuple(place for place in found if not chunk.start() <= place < chunk.end())


def _letters(tags: frozenset[str]) -> str:
    return "".join(sorted({_LETTERS[tag] for tag in tags}))


def _pattern(verbs: frozenset[str]) -> re.Pattern[str]:
    return re.compile(f"d?[{_letters(BEFORE)}]*(?P<nouns>[{_letters(NOUNS)}]+)[{_letters(verbs)}]*")
