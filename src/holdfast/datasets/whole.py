"""Preparation of a whole dataset: all existing splits, with one vocabulary and one numbering of labels."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.data.prepared import prepare
from holdfast.data.targets import numbered
from holdfast.data.text import Tokenizer, train
from holdfast.datasets.base import DataError, Dataset, Reading
from holdfast.errors import UserError
from holdfast.types import Array, Example

PIECES = 8000
"""The size of a vocabulary of word pieces that is trained on a dataset's own text."""


@dataclass(frozen=True)
class SplitReport:
    """One prepared split."""

    split: str
    folder: str
    examples: int
    dropped: tuple[str, ...]
    """The bad records that were skipped: at most `skip_bad`."""
    aside: Mapping[str, int]
    """The number of records that do not belong to the task, by reason."""
    labels: int
    unknown: int
    """The number of records whose target is a word that the first split does not have: their number is -1."""
    bytes: int
    fingerprint: str


def prepare_all(
    dataset: Dataset,
    folder: Path,
    out: Path,
    *,
    size: int = 64,
    length: int = 40,
    vocabulary: Path | None = None,
    skip_bad: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> list[SplitReport]:
    """Prepare each split that the folder has. The first one determines the vocabulary and the numbers of word labels.

    At most `skip_bad` records of a split are skipped: those that cannot be read, and each example with a picture that
    cannot be decoded.

    The columns are pictures, texts and one target; fields that only one dataset has (annotators, boxes, programs) are
    added by the benchmark that uses it, through `data.prepared.prepare`.
    """
    tokenizer = Tokenizer.load(vocabulary) if vocabulary else None
    target: Callable[[Sequence[Example]], Array] | None = None
    names: tuple[str, ...] = ()
    known: set[str] = set()
    found = []
    for split in dataset.splits:
        progress(f"reading {dataset.name}, {split}")
        reading = Reading(skip=skip_bad)
        examples = _examples(dataset, folder, split, reading)
        if not examples:
            continue
        texts = any(example.text or example.choices for example in examples)
        if not can_be_shown(examples):
            raise UserError(f"{dataset.name} has neither pictures nor text: a benchmark reads it without preparation")
        if texts and tokenizer is None:
            tokenizer = train((t for e in examples for t in (e.text, *e.choices)), PIECES)
        if target is None:
            target, names = numbered(examples)
            known = set(names)
        table = prepare(
            dataset.name,
            examples,
            out / split,
            target=target,
            image_size=size if examples[0].images else None,
            tokenizer=tokenizer if texts else None,
            length=length if texts else None,
            skip=skip_bad - len(reading.problems),
            workers=os.cpu_count() or 1,
            progress=lambda done, total, split=split: progress(f"{dataset.name}, {split}: {done} of {total}"),  # type: ignore[misc]
        )
        found.append(
            SplitReport(
                split=split,
                folder=str(out / split),
                examples=len(table.ids),
                dropped=(*map(str, reading.problems), *table.problems),
                aside=dict(reading.aside),
                labels=len(names),
                unknown=sum(isinstance(e.target, str) and e.target not in known for e in examples),
                bytes=table.table.nbytes,
                fingerprint=table.fingerprint,
            )
        )
    if not found:
        raise UserError(
            f"{folder} holds no split of {dataset.name}: "
            f"`holdfast data check {shlex.quote(str(folder))}` says what it holds"
        )
    if tokenizer is not None:
        tokenizer.save(out / "vocab.txt")
    if names:
        (out / "labels.json").write_text(json.dumps(names, indent=0) + "\n", encoding="utf-8")
    return found


def can_be_shown(examples: Sequence[Example]) -> bool:
    """Whether examples contain a picture or a text: a file of features has neither.

    >>> can_be_shown([Example("7", extra={"features": ()})]), can_be_shown([Example("7", text="a dog")])
    (False, True)
    """
    return any(example.images or example.text or example.choices for example in examples)


def _examples(dataset: Dataset, folder: Path, split: str, reading: Reading) -> list[Example]:
    """The examples of a split; empty if the folder does not have it."""
    try:
        return list(dataset.examples(folder, split, reading))
    except DataError as error:
        if error.missing:
            return []
        raise
