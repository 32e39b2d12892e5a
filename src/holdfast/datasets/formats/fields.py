"""Fields of records with the right types; a ValueError in words for `Reading.bad` where they are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, Reading, get


def objects(path: Path, value: Any, reading: Reading, what: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a list with their positions; what is no object is a bad record.

    >>> list(objects(Path("a.json"), [{"id": 1}], Reading(), "image"))
    [(0, {'id': 1})]
    """
    if not isinstance(value, list):
        raise DataError(Problem(str(path), "", f"it has no list of {what}s", "download it again"))
    for position, record in enumerate(value):
        if isinstance(record, dict):
            yield position, record
        else:
            reading.bad(path, f"{what} at position {position}", "it is no JSON object")


def identifier(record: Mapping[str, Any], name: str) -> str:
    """An id, which is a number in some files and a string in others, as a string.

    >>> identifier({"id": 7}, "id"), identifier({"id": "n7"}, "id")
    ('7', 'n7')
    """
    value: Any = get(record, name, object)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise ValueError(f"its {name!r} is {value!r:.40}, not an id")
    return str(value)


def words(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of strings.

    >>> words({"comb": ["hat", "wall"]}, "comb")
    ('hat', 'wall')
    """
    value = get(record, name, list)
    if not all(isinstance(word, str) for word in value):
        raise ValueError(f"its {name!r} holds something that is no string")
    return tuple(value)


def label(value: Any, classes: int) -> int:
    """A class number, given as a number or (in the hub's columns) as a string.

    >>> label(3, 4), label("3", 4)
    (3, 3)
    >>> label(4, 4)
    Traceback (most recent call last):
    ValueError: its label is 4, not one of 0 to 3
    """
    number = int(value) if isinstance(value, str) and len(value) < 9 and value.isascii() and value.isdigit() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < classes:
        raise ValueError(f"its label is {value!r:.40}, not one of 0 to {classes - 1}")
    return number


def optional(record: Mapping[str, Any], names: Mapping[str, type]) -> dict[str, Any]:
    """The fields of these names that a record has, each of the right type.

    >>> optional({"weather": "sunny", "other": 1}, {"weather": str, "location": str})
    {'weather': 'sunny'}
    """
    return {name: get(record, name, kind) for name, kind in names.items() if name in record}
