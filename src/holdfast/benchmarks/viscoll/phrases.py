"""The phrases of VisCOLL: which words of which captions are masked, their task, and their split."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

SPLITS = ("train", "validation", "test", "novel")
"""`novel`: the phrases with one of the held-out compositions."""


@dataclass(frozen=True, slots=True)
class MaskedSpan:
    """One masked phrase of one caption."""

    image: str
    """The image's id in the source, and in its region features."""
    caption: tuple[str, ...]
    """The words of the caption, lower case, as tagged."""
    span: tuple[int, int]
    """The words that are masked, [start, end)."""
    task: str
    """The object category (COCO), or the lemma of the noun (Flickr)."""
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]
    """The atoms of the phrase: lemmas."""
    split: str
    """train, validation, test or novel."""
    pair: str = ""
    """Which held-out composition it is, for the split novel: `black cat`, `eat man`."""
    tags: tuple[str, ...] = ()
    """The parts of speech of the masked words."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words that are masked."""
        return self.caption[slice(*self.span)]


def read_phrases(dataset: Literal["coco", "flickr", "flickr8k"], **settings: Any) -> list[MaskedSpan]:
    """All phrases of a dataset, in the order of the source, from the cache if they are there.

    The settings are those of `build.build`.
    """
    from holdfast.benchmarks.viscoll.build import build  # imported on use: it needs torch, which phrases do not

    return load_phrases(build(dataset, **settings).file)


_ATOMS = ("nouns", "verbs", "adjectives", "tags")


def save_phrases(path: Path, phrases: Sequence[MaskedSpan]) -> None:
    """Write phrases as columns of numbers beside a list of words; whole, or not at all."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    captions = {caption: row for row, caption in enumerate(dict.fromkeys(each.caption for each in phrases))}
    columns: dict[str, NDArray[Any]] = {
        "caption": np.array([captions[each.caption] for each in phrases], np.int32),
        "span": np.array([each.span for each in phrases], np.int16).reshape(-1, 2),
    }
    for name in ("image", "task", "split", "pair"):
        columns[name] = np.array([number(getattr(each, name)) for each in phrases], np.int32)
    for name in _ATOMS:
        columns |= _ragged(name, ([number(word) for word in getattr(each, name)] for each in phrases))
    columns |= _ragged("captions", ([number(word) for word in caption] for caption in captions))
    columns["texts"] = np.frombuffer("\n".join(texts).encode(), np.uint8)  # no text has a line end
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    np.savez(temporary, allow_pickle=False, **columns)
    temporary.rename(path)


def load_phrases(path: Path) -> list[MaskedSpan]:
    """Load the phrases of a file; identical captions and atoms are shared objects."""
    with np.load(path) as file:
        columns = dict(file)
    texts = columns["texts"].tobytes().decode().split("\n")
    captions = _tuples(columns, "captions", texts)
    atoms = [_tuples(columns, name, texts) for name in _ATOMS]
    plain = ([texts[n] for n in columns[name].tolist()] for name in ("image", "task", "split", "pair"))
    rows = zip(columns["caption"].tolist(), columns["span"].tolist(), *plain, *atoms, strict=True)
    return [
        MaskedSpan(image, captions[row], (start, stop), task, nouns, verbs, adjectives, split, pair, tags)
        for row, (start, stop), image, task, split, pair, nouns, verbs, adjectives, tags in rows
    ]


def write_lines(path: Path, phrases: Iterable[MaskedSpan]) -> None:
    """Write phrases for people and other programs: one JSON object per line, with the fields of `MaskedSpan`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        for each in phrases:
            file.write(json.dumps(asdict(each), ensure_ascii=False) + "\n")
    temporary.rename(path)


def _ragged(name: str, lists: Iterable[list[int]]) -> dict[str, NDArray[np.int32]]:
    """Lists of different lengths as one array and the offsets at which each begins."""
    flat: list[int] = []
    starts = [0]
    for each in lists:
        flat += each
        starts.append(len(flat))
    return {name: np.array(flat, np.int32), f"{name}_starts": np.array(starts, np.int32)}


def _tuples(columns: dict[str, NDArray[Any]], name: str, texts: list[str]) -> list[tuple[str, ...]]:
    words = [texts[n] for n in columns[name].tolist()]
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    found = (tuple(words[start:stop]) for start, stop in pairwise(columns[f"{name}_starts"].tolist()))
    return [known.setdefault(each, each) for each in found]
