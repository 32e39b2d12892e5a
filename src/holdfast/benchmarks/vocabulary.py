"""The word pieces of a dataset's texts, kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.benchmarks.cache import write_json
from holdfast.benchmarks.source import Source, place_of
from holdfast.checksums import is_intact, seal
from holdfast.data import text
from holdfast.data.text import Tokenizer, train
from holdfast.progress import progress_bar
from holdfast.types import Wants

PIECES = 8000
"""The size of a vocabulary of word pieces that is trained on a benchmark's own text."""
_CHUNK = 10_000


def word_pieces(
    source: Source, texts: Callable[[], Iterator[str]], vocabulary: Path | None = None, kept: str = "all"
) -> tuple[Tokenizer, int]:
    """A tokenizer, from a vocabulary file or trained on the texts, and the length of the longest text in word pieces.

    `kept` names the texts: a source may have several sets of them.
    """
    words = "" if vocabulary is None else Tokenizer.load(vocabulary).fingerprint
    file = place_of("tables", "words", [source], PIECES, words, kept, modules=[text.__name__]).with_suffix(".json")
    return kept_pieces(file, f"reading the words of {source.dataset.name}", texts, vocabulary)


def kept_pieces(
    file: Path, title: str, texts: Callable[[], Iterator[str]], vocabulary: Path | None = None
) -> tuple[Tokenizer, int]:
    """The same from a file of the cache, which is made from the texts if it does not exist."""
    if not is_intact(file):
        with progress_bar(title):
            found = list(texts())
            pieces = Tokenizer.load(vocabulary) if vocabulary else train(found, PIECES)
            starts = range(0, len(found), _CHUNK)
            longest = max(int(pieces.encode(found[start : start + _CHUNK], 512)[1].max()) for start in starts)
            rules = {"rules": pieces.rules} if pieces.rules else {}
            write_json(file, {"vocabulary": pieces.vocabulary, **rules, "longest": longest})
            seal(file)
    known = json.loads(file.read_text(encoding="utf-8"))
    return Tokenizer(tuple(known["vocabulary"]), known.get("rules", "")), known["longest"]


def at_most(most: int, wants: Wants) -> int:
    """The length of texts for a model, given a maximum number of word pieces.

    >>> at_most(40, Wants()), at_most(40, Wants(length=16))
    (40, 16)
    """
    return most if wants.length is None else min(most, wants.length)
