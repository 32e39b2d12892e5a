"""Settings as typed fields of dataclasses: read from text, checked for type and range, refused by name."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union

from holdfast.errors import UserError, nearest
from holdfast.types import Between

T = TypeVar("T")
_FIELDS: dict[type, Mapping[str, Any]] = {}


def fields(kind: type) -> Mapping[str, Any]:
    """The settings of a dataclass: name and type.

    >>> from holdfast.types import Training
    >>> fields(Training)["shuffle"]
    <class 'bool'>
    """
    if kind not in _FIELDS:  # reading hints takes a millisecond, and a plan asks for them a hundred thousand times
        hints = typing.get_type_hints(kind, include_extras=True)
        assert dataclasses.is_dataclass(kind)
        _FIELDS[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}
    return _FIELDS[kind]


def build(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make a dataclass from settings, naming the field where one is wrong.

    >>> from holdfast.types import Training
    >>> build(Training, {"epochs": "3", "optimiser": "sgd"}, "train").epochs
    3
    >>> build(Training, {"epochs": "0"}, "train")
    Traceback (most recent call last):
    holdfast.errors.UserError: train.epochs is 0: it must be at least 1
    """
    known = fields(kind)
    checked = {}
    for name, value in values.items():
        if name not in known:
            raise UserError(f"{where}.{name} is no setting: {nearest(name, known)}")
        checked[name] = convert(value, known[name], f"{where}.{name}")
    assert dataclasses.is_dataclass(kind)
    for each in dataclasses.fields(kind):
        without = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if each.init and without and each.name not in checked:
            raise UserError(f"{where}.{each.name} has no value: set it, or give it a default")
    return kind(**checked)


def convert(value: Any, hint: Any, name: str) -> Any:
    """A value, perhaps as text, as the type of its field, or a sentence that names the field."""
    if typing.get_origin(hint) is Annotated:
        hint, *notes = typing.get_args(hint)
        value = convert(value, hint, name)
        for note in notes:
            if isinstance(note, Between):
                _check_range(value, note, name)
        return value
    choices = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        if type(None) in choices and (value is None or str(value).lower() == "none"):
            return None
        inner = [choice for choice in choices if choice is not type(None)]
        if len(inner) > 1:
            raise UserError(f"{name} has the type {hint}: a setting is of one type, or of one type or None")
        return convert(value, inner[0], name)
    if origin is Literal:
        if value not in choices:
            raise UserError(f"{name} is {value!r}: {nearest(str(value), map(str, choices))}")
        return value
    if origin is tuple:
        parts = value.strip("()").split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            parts = [value]
        kinds = [choices[0]] * len(parts) if choices[-1] is Ellipsis else list(choices)
        if len(parts) != len(kinds):
            raise UserError(f"{name} is {value!r}: it takes {len(kinds)} values with commas between them")
        return tuple(convert(part, kind, name) for part, kind in zip(parts, kinds, strict=True))
    return _scalar(value, hint, name)


def _scalar(value: Any, hint: type, name: str) -> Any:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    try:
        if hint is bool:
            return value if isinstance(value, bool) else words[str(value).lower()]
        if isinstance(value, bool) and hint is not bool:
            raise ValueError
        if hint is int:
            if isinstance(value, float) and not value.is_integer():
                raise ValueError
            return int(value)
        if hint is float:
            return float(value)
        if hint is str:
            return str(value)
    except (ValueError, TypeError, KeyError):
        kinds = {int: "a whole number", float: "a number", bool: "true or false"}
        raise UserError(f"{name} is {value!r}: it must be {kinds[hint]}") from None
    raise UserError(f"{name} has the type {hint}: a setting is a number, true or false, text, or a tuple of these")


def _check_range(value: Any, limits: Between, name: str) -> None:
    if value is None:
        return
    low, high = limits.low, limits.high
    if (low is None or value >= low) and (high is None or value <= high):  # a NaN is in no range
        return
    sides = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    raise UserError(f"{name} is {value}: it must be {' and '.join(side for side in sides if side)}")
