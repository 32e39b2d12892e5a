"""Fields of records, checked for their types; otherwise a ValueError with a message for `Reading.bad`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.datasets.base import get


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
        raise ValueError(f"its {name!r} contains something that is not a string")
    return tuple(value)


def text(record: Mapping[str, Any], name: str) -> str:
    """A non-empty text.

    >>> text({"sentence": " "}, "sentence")
    Traceback (most recent call last):
    ValueError: its sentence is empty
    """
    value = get(record, name, str)
    if not value.strip():
        raise ValueError(f"its {name} is empty")
    return value


def named_label(record: Mapping[str, Any], name: str, classes: Mapping[str, int]) -> int:
    """A class that is given by its name.

    >>> named_label({"label": "True"}, "label", {"False": 0, "True": 1})
    1
    """
    value = get(record, name, str)
    if value not in classes:
        raise ValueError(f"its {name} is {value!r:.40}, not one of {', '.join(classes)}")
    return classes[value]


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
    """The named fields that a record has, each of the right type.

    >>> optional({"weather": "sunny", "other": 1}, {"weather": str, "location": str})
    {'weather': 'sunny'}
    """
    return {name: get(record, name, kind) for name, kind in names.items() if name in record}
