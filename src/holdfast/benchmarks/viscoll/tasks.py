"""The one task that a learner sees: the hidden words of a phrase. No row contains the topic of its phrase."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.data.table import Column, Shared, Table
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.tasks import MaskedPhrase
from holdfast.types import Inputs

NAME = "phrases"
_LONGEST_WORD = 100


def task(words: Tokenizer) -> MaskedPhrase:
    """The hidden words of a phrase, among all word pieces. Guessing gives each piece the same probability."""
    return MaskedPhrase(NAME, NAME, len(words.vocabulary), chance=-math.log(len(words.vocabulary)))


@dataclass(frozen=True)
class Masked:
    """Captions as word pieces, with the pieces of one phrase hidden in each, one row per phrase."""

    text: NDArray[np.int32]
    text_length: NDArray[np.int32]
    masked: NDArray[np.int32]
    """The positions of the hidden pieces, padded with -1."""
    targets: NDArray[np.int32]
    """The hidden pieces, padded with -100."""
    words: NDArray[np.int32]
    """The index of the phrase's word that each hidden piece belongs to, padded with -1."""

    def table(self, regions: Mapping[str, Column]) -> Table:
        """The rows, with the content of each one's picture."""
        text = {name: torch.from_numpy(getattr(self, name)) for name in ("text", "text_length", "masked")}
        return Table(NAME, {**text, **regions}, torch.from_numpy(self.targets))


class Pieces(dict[str, list[int]]):
    """The pieces of a word, each word tokenised once."""

    def __init__(self, words: Tokenizer) -> None:
        super().__init__()
        self.tokenizer = words

    def __missing__(self, word: str) -> list[int]:
        if word.startswith("##") or word in SPECIAL:  # a caption of released phrases is in pieces already
            self[word] = [self.tokenizer.vocabulary.index(word if word in self.tokenizer.vocabulary else "[UNK]")]
            return self[word]
        numbers, lengths = self.tokenizer.encode([word], _LONGEST_WORD)
        found: list[int] = numbers[0, 1 : lengths[0] - 1].tolist()
        self[word] = found
        return found


def fits(phrase: MaskedSpan, pieces: Pieces, length: int) -> bool:
    """Whether a phrase lies within the first `length` pieces of its caption, with [CLS] and [SEP]."""
    return 1 + sum(len(pieces[word]) for word in phrase.caption[: phrase.span[1]]) < length


def masked(phrases: Sequence[MaskedSpan], pieces: Pieces, length: int) -> Masked:
    """Hide each phrase in its caption; captions are cut after `length` pieces, and rows at the longest caption.

    >>> from holdfast.data.text import SPECIAL
    >>> pieces = Pieces(Tokenizer((*SPECIAL, "a", "red", "bus", "stop", "##s")))
    >>> bus = MaskedSpan("1", ("a", "red", "bus", "stops"), (1, 3), "bus", ("bus",), (), ("red",), "train")
    >>> found = masked([bus], pieces, length=9)
    >>> found.text.tolist(), found.masked.tolist(), found.targets.tolist()
    ([[2, 5, 4, 4, 8, 9, 3]], [[2, 3]], [[6, 7]])
    """
    special = pieces.tokenizer.vocabulary.index
    text = np.full((len(phrases), length), special("[PAD]"), np.int32)
    lengths = np.zeros(len(phrases), np.int32)
    hidden, of_word = [], []
    starts = np.zeros(len(phrases), np.int32)
    start_piece, end_piece, mask = special("[CLS]"), special("[SEP]"), special("[MASK]")
    for row, phrase in enumerate(phrases):
        parts = [pieces[word] for word in phrase.caption]
        first, last = phrase.span
        flat = [start_piece, *(piece for part in parts for piece in part)][: length - 1]
        own = [(piece, number) for number, part in enumerate(parts[first:last]) for piece in part]
        start = starts[row] = 1 + sum(map(len, parts[:first]))
        assert start + len(own) < length, "a phrase that does not fit is left out before"
        text[row, : len(flat)] = flat
        text[row, len(flat)] = end_piece
        text[row, start : start + len(own)] = mask
        lengths[row] = len(flat) + 1
        hidden.append([piece for piece, _ in own])
        of_word.append([number for _, number in own])
    most = max(map(len, hidden))
    places = np.arange(most, dtype=np.int32)
    there = places < np.array([len(each) for each in hidden])[:, None]
    targets, numbers = np.full(there.shape, -100, np.int32), np.full(there.shape, -1, np.int32)
    targets[there] = np.concatenate(hidden)
    numbers[there] = np.concatenate(of_word)
    text = np.ascontiguousarray(text[:, : lengths.max()])
    return Masked(text, lengths, np.where(there, starts[:, None] + places, -1).astype(np.int32), targets, numbers)


def no_regions(rows: int) -> dict[str, Column]:
    """One region per row, covering the whole picture, all zeros: for a model that should see no pictures."""
    first = torch.zeros(rows, dtype=torch.int64)
    return {
        "regions": Shared(torch.zeros(1, 1, 1, dtype=torch.float16), first),
        "boxes": Shared(torch.tensor([[[0.0, 0.0, 1.0, 1.0]]]), first),
        "region_count": Shared(torch.ones(1, dtype=torch.int64), first),
    }


def inputs(table: Table, words: Tokenizer) -> Inputs:
    """The rows in the form of model inputs."""
    text, regions = table.inputs["text"], table.inputs["regions"]
    assert isinstance(text, Tensor)
    assert isinstance(regions, Shared)
    _, boxes, width = regions.values.shape
    return Inputs(text=text.shape[1], vocabulary=len(words.vocabulary), regions=(boxes, width))
