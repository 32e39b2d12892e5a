"""The words for each of COCO's 80 categories: they determine which things a caption names, and which of them is a
phrase's task.

The table is a file with a line for each category: its name, then other words for it, separated by commas. The paper's
table (Lu et al. 2018) has the same form, and can be used instead of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.benchmarks.viscoll.tagger import lemma
from holdfast.errors import UserError

FILE = Path(__file__).parent / "lists" / "categories.txt"


@dataclass(frozen=True)
class Named:
    """A thing that a caption names: words [start, stop), one or more of which form the noun, and its category."""

    start: int
    stop: int
    noun: str
    category: str = ""


@dataclass(frozen=True)
class Synonyms:
    """Nouns, of one word or of several, and the category of each."""

    categories: tuple[str, ...]
    nouns: Mapping[str, str]
    longest: int

    def of(self, category: str) -> frozenset[str]:
        """The nouns of a category."""
        return frozenset(noun for noun, its in self.nouns.items() if its == category)

    def things(self, lemmas: Sequence[str], first: int, start: int, stop: int) -> list[Named]:
        """The things named by the nouns [start, stop) of a caption; a multi-word noun may start as early as `first`.

        >>> words = ["a", "small", "hot", "dog", "stand"]
        >>> our_synonyms().things(words, 1, 3, 5)
        [Named(start=2, stop=4, noun='hot dog', category='hot dog'), Named(start=4, stop=5, noun='stand', category='')]
        """
        found: list[Named] = []
        while stop > start:
            for length in range(min(self.longest, stop - first), 0, -1):
                noun = " ".join(lemmas[stop - length : stop])
                if noun in self.nouns or length == 1:
                    found.append(Named(stop - length, stop, noun, self.nouns.get(noun, "")))
                    stop -= length
                    break
        return found[::-1]


def read_synonyms(path: Path) -> Synonyms:
    """Read a table; if two categories claim a word, the first one gets it."""
    nouns: dict[str, str] = {}
    categories: list[str] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the synonyms {path} cannot be read ({error}): use a text file, one line per category"
        ) from None
    for line in lines:
        words = [" ".join(word.lower().split()) for word in line.split(",") if word.strip()]
        if not words:
            continue
        categories.append(words[0])
        nouns.setdefault(words[0], words[0])
        for word in words:
            # Captions are lemmatised: "skis" becomes "ski", "sports ball" becomes "sport ball".
            for form in (word, " ".join(lemma(part, "NNS") for part in word.split())):
                nouns.setdefault(form, words[0])
    if not categories:
        raise UserError(f"the synonyms {path} are empty: write a line for each category, its words separated by commas")
    return Synonyms(tuple(categories), nouns, max(len(noun.split()) for noun in nouns))


@cache
def our_synonyms() -> Synonyms:
    """The table that comes with the library.

    >>> table = our_synonyms()
    >>> len(table.categories), table.nouns["kitten"], table.nouns["sofa"]
    (80, 'cat', 'couch')
    """
    return read_synonyms(FILE)
