"""Combinations of concepts in CFST's published archives: their words, classes and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Reading
from holdfast.datasets.formats.fields import optional, words
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.datasets.formats.json_members import stream_objects
from holdfast.types import Example


def combination(record: dict[str, Any], field: str) -> tuple[str, ...]:
    """The words of a record's combination, sorted; ValueError if there are none.

    >>> combination({"comb": ["hat", "door"]}, "comb")
    ('door', 'hat')
    """
    found = tuple(sorted(words(record, field)))
    if not found:
        raise ValueError(f"its {field!r} is empty")
    return found


def classes_of(path: Path, field: str) -> dict[tuple[str, ...], int]:
    """The class of each combination in a file; its bad records are reported when the file itself is read."""
    found: set[tuple[str, ...]] = set()
    for _, record in stream_objects(path, Reading(skip=1 << 60), "image"):
        try:
            found.add(combination(record, field))
        except ValueError:
            continue
    return {each: rank for rank, each in enumerate(sorted(found))}


def read_combinations(
    path: Path,
    source: Path,
    field: str,
    pictures: ImageFiles,
    place: Callable[[dict[str, Any]], tuple[str, str]],
    more: Mapping[str, type],
    reading: Reading,
    remedy: str,
    own: Callable[[dict[str, Any]], bool] = lambda record: True,
) -> Iterator[Example]:
    """The images of an archive's file; the target is the rank of a combination among those of the file `source`.

    `place(record)` returns an image's id and the name of its picture; `more` are fields to be included in `extra`;
    `own` says which records of the file are read.
    """
    classes = classes_of(source, field)
    seen: set[str] = set()
    for position, record in stream_objects(path, reading, "image"):
        if not own(record):
            continue
        where = f"image at position {position}"
        try:
            name, file = place(record)
            where = f"image {name:.60}"
            if name in seen:
                raise ValueError("it occurred before")
            found = combination(record, field)
            if found not in classes:
                raise ValueError(f"its combination {', '.join(found):.60} is not one of {source.name}")
            image = pictures.need(file)
            extra = {field: found, **optional(record, more)}
        except ValueError as error:
            reading.bad(path, where, str(error), remedy)
            continue
        seen.add(name)
        yield Example(name, classes[found], (image,), extra=extra)
