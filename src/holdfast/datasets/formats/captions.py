"""Captions as choices of text, for models that compare images with texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading
from holdfast.types import Example

EACH = 5
"""The captions of an image that count: published datasets have five, and a few images more."""


def as_choices(dataset: Dataset) -> Dataset:
    """The dataset, with the captions in `extra` as the choices of each example, the first five of them.

    >>> def read(folder, split, reading):
    ...     yield Example("9", extra={"captions": ("a", "b", "c", "d", "e", "f")})
    >>> [each.choices for each in as_choices(Dataset("own", ("train",), read)).examples(".", "train")]
    [('a', 'b', 'c', 'd', 'e')]
    """

    def read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        for example in dataset.read(folder, split, reading):
            captions = tuple(example.extra.get("captions", ()))
            if len(captions) < EACH:
                reading.bad(
                    folder, f"{dataset.name}, {split}, {example.id}", f"it has {len(captions)} captions, not {EACH}"
                )
                continue
            yield replace(example, target=None, choices=captions[:EACH], extra={})

    return replace(dataset, read=read)
