"""Combinations of concepts, as CFST's published archives name them: their words, and the classes that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.datasets.base import Reading, read_json
from holdfast.datasets.formats.fields import objects, words


def combination(record: dict[str, Any], field: str) -> tuple[str, ...]:
    """The words of a record's combination, sorted; ValueError where there are none.

    >>> combination({"comb": ["hat", "door"]}, "comb")
    ('door', 'hat')
    """
    found = tuple(sorted(words(record, field)))
    if not found:
        raise ValueError(f"its {field!r} is empty")
    return found


def classes_of(path: Path, field: str) -> dict[tuple[str, ...], int]:
    """The class of each combination in a file; its bad records are told when it is read itself."""
    found: set[tuple[str, ...]] = set()
    for _, record in objects(path, read_json(path), Reading(skip=1 << 60), "image"):
        try:
            found.add(combination(record, field))
        except ValueError:
            continue
    return {each: rank for rank, each in enumerate(sorted(found))}
