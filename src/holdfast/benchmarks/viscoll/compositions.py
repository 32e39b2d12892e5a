"""The 24 held-out compositions: a noun with an adjective, or with a verb, by any of their synonyms."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.benchmarks.viscoll.synonyms import Synonyms, our_synonyms

FILE = Path(__file__).parent / "lists" / "compositions.json"
_LISTS = json.loads(FILE.read_text(encoding="utf-8"))
HELD_OUT: tuple[tuple[str, str], ...] = tuple(
    ("verb" if name.split()[0] in _LISTS["verbs"] else "adjective", name) for name in _LISTS["pairs"]
)
"""The kind and the name of each held-out pair, in the order of the four lists."""

SEEN = frozenset(_LISTS["seen"])
"""Pairs of the same words for which Nikolaus et al. counted occurrences: the released code compares with these."""


@dataclass(frozen=True)
class Composition:
    """A pair with all the words in which a phrase may express it."""

    name: str
    kind: str
    """`adjective` or `verb`."""
    words: frozenset[str]
    nouns: frozenset[str]

    def within(self, nouns: Iterable[str], verbs: Iterable[str], adjectives: Iterable[str]) -> bool:
        """Whether a phrase with these atoms contains it.

        >>> held_out()[0].within(["kitten"], ["sit"], ["black", "small"])
        True
        """
        said = verbs if self.kind == "verb" else adjectives
        return not self.nouns.isdisjoint(nouns) and not self.words.isdisjoint(said)


def compositions_of(synonyms: Synonyms) -> tuple[Composition, ...]:
    """The held-out pairs in the order of the four lists, with the nouns of a table."""
    found = []
    for kind, name in HELD_OUT:
        word, noun = name.split()
        nouns = _LISTS["nouns"].get(noun) or synonyms.of(_LISTS["categories"][noun])
        found.append(Composition(name, kind, frozenset(_LISTS[f"{kind}s"][word]), frozenset(nouns)))
    return tuple(found)


@cache
def held_out() -> tuple[Composition, ...]:
    """The held-out pairs.

    >>> len(held_out()), [each.name for each in held_out() if each.kind == "verb"][:2]
    (24, ['eat man', 'lie woman'])
    """
    return compositions_of(our_synonyms())


def compositions(phrase: MaskedSpan) -> tuple[tuple[str, str], ...]:
    """The kind and name of each pair of atoms that occur in some held-out pair; the pair itself need not be held out.

    >>> words, adjectives = ("a", "large", "black", "dog"), ("large", "black")
    >>> phrase = MaskedSpan("1", words, (0, 4), "dog", ("dog",), (), adjectives, "test")
    >>> compositions(phrase)
    (('adjective', 'big dog'), ('adjective', 'black dog'))
    """
    nouns = dict.fromkeys(name for noun in phrase.nouns for name in _names("noun").get(noun, ()))
    return tuple(
        (kind, f"{word} {noun}")
        for kind, atoms in (("adjective", phrase.adjectives), ("verb", phrase.verbs))
        for word in dict.fromkeys(name for atom in atoms for name in _names(kind).get(atom, ()))
        for noun in nouns
    )


@cache
def _names(kind: str) -> dict[str, tuple[str, ...]]:
    """The names in the list that a word counts as: a boy is a man and a child there."""
    found: dict[str, dict[str, None]] = {}
    for each in held_out():
        word, noun = each.name.split()
        name, forms = (noun, each.nouns) if kind == "noun" else (word, each.words if each.kind == kind else ())
        for form in forms:
            found.setdefault(form, {})[name] = None
    return {form: tuple(names) for form, names in found.items()}
