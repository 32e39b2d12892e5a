"""Settings as typed fields of dataclasses: read from text, checked for type and range, and explained."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import operator
import os
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, Union

import numpy as np

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
    if kind not in _FIELDS:  # reading hints takes a millisecond, and a plan needs them a hundred thousand times
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except NameError as error:
            raise UserError(
                f"the types of {kind.__name__}'s fields cannot be read: {error}; import it at the top of the file"
            ) from None
        assert dataclasses.is_dataclass(kind)
        _FIELDS[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}
    return _FIELDS[kind]


def receive(kind: type, known: Mapping[str, Any]) -> None:
    """Note the settings of a class from another process, since the names of its types cannot be resolved here."""
    _FIELDS[kind] = known


@dataclasses.dataclass(frozen=True)
class Setting:
    """The description of a setting: see `settings_of`."""

    name: str
    kind: str
    """Its type as text, such as `whole number`."""
    default: Any
    """Its default; None also if `required`."""
    required: bool = False
    """Whether it has no default, so that a value must be given."""
    choices: tuple[str, ...] = ()
    """The allowed words, if it is one of several."""
    low: float | None = None
    high: float | None = None
    optional: bool = False
    """Whether it may be `none`."""
    meaning: str = ""

    @property
    def values(self) -> str:
        """Its allowed values: the choices, or the type with the range.

        >>> Setting("rate", "number", 0.5, low=0, high=1).values
        'number from 0 to 1'
        """
        if self.choices:
            found = ", ".join(self.choices)
        elif self.low is not None and self.high is not None:
            found = f"{self.kind} from {self.low:g} to {self.high:g}"
        elif self.low is not None:
            found = f"{self.kind}, at least {self.low:g}"
        elif self.high is not None:
            found = f"{self.kind}, at most {self.high:g}"
        else:
            found = self.kind
        return f"{found}, or none" if self.optional else found


def settings_of(kind: type) -> tuple[Setting, ...]:
    """Every setting of a dataclass with its type, default, choices, range and meaning, read from its source.

    The meaning is the string below the field, in the class itself or else in one that it extends.

    >>> from holdfast.types import Training
    >>> next(each for each in settings_of(Training) if each.name == "patience").values
    'whole number, at least 1, or none'
    """
    assert dataclasses.is_dataclass(kind)
    own = {field.name: field for field in dataclasses.fields(kind)}
    meanings = _meanings(kind)
    return tuple(
        Setting(name, **_default(own[name]), meaning=meanings.get(name, ""), **_values(hint))
        for name, hint in fields(kind).items()
    )


def written(value: object) -> str:
    """A value as written after `--set`; an empty text is `empty`.

    >>> written(None), written(True), written(1e-8), written((0.9, 0.999)), written("class"), written("")
    ('none', 'true', '1e-08', '0.9,0.999', 'class', 'empty')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(map(written, value))
    return f"{value:g}" if isinstance(value, float) else str(value) or "empty"


def _default(field: dataclasses.Field[Any]) -> dict[str, Any]:
    if field.default is not dataclasses.MISSING:
        return {"default": field.default}
    if field.default_factory is not dataclasses.MISSING:
        return {"default": field.default_factory()}
    return {"default": None, "required": True}


def _values(hint: Any) -> dict[str, Any]:
    """The arguments of `Setting` that follow from a field's type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        found = _values(inner[0])
        for note in inner[1:]:
            if isinstance(note, Between):
                found |= {"low": note.low, "high": note.high}
        return found
    if origin in (Union, types.UnionType):
        found = _values(next(each for each in inner if each is not type(None)))
        return found | {"optional": type(None) in inner}
    if origin is Literal:
        return {"kind": "one of several words", "choices": tuple(map(str, inner))}
    if origin is tuple:
        each = _values(inner[0])
        return each | {
            "kind": f"{'' if inner[-1] is Ellipsis else f'{len(inner)} '}comma-separated values, each a {each['kind']}"
        }
    return {"kind": _SCALARS[hint][1].removeprefix("a ") if hint in _SCALARS else str(hint)}


def _meanings(kind: type) -> dict[str, str]:
    """The strings below the fields of a class and of those that it extends; none for a class typed into a shell."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        except (OSError, TypeError, SyntaxError):
            continue
        assert isinstance(tree, ast.ClassDef)
        for field, note in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
                value = note.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[field.target.id] = " ".join(value.value.split())
    return found


def build(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from settings; errors name the wrong field.

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
            raise UserError(f"{where}.{name} is not a setting: {nearest(name, known)}")
        checked[name] = convert(value, known[name], f"{where}.{name}")
    assert dataclasses.is_dataclass(kind)
    for each in dataclasses.fields(kind):
        without = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if each.init and without and each.name not in checked:
            raise UserError(f"{where}.{each.name} has no value: set it, or give it a default")
    return kind(**checked)


def convert(value: Any, hint: Any, name: str) -> Any:
    """Convert a value, possibly given as text, to the type of its field; raise a UserError that names the field.

    `str` or `int` alone converts nothing: an object that merely has a text form is rejected.
    """
    if isinstance(value, np.generic):
        value = value.item()
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
        if type(None) in choices and (value is None or (isinstance(value, str) and value.lower() == "none")):
            return None
        inner = [choice for choice in choices if choice is not type(None)]
        if len(inner) > 1:
            raise UserError(f"{name} has the type {hint}: a setting has one type, or one type or None")
        return convert(value, inner[0], name)
    if origin is Literal:
        if not isinstance(value, str) or value not in choices:
            word = value if isinstance(value, str) else ""
            raise UserError(f"{name} is {shown(value)}: {nearest(word, map(str, choices))}")
        return value
    if origin is tuple:
        text = value.strip("()") if isinstance(value, str) else ""
        parts = (text.split(",") if text else []) if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            parts = [value]
        kinds = [choices[0]] * len(parts) if choices[-1] is Ellipsis else list(choices)
        if len(parts) != len(kinds):
            raise UserError(f"{name} is {shown(value)}: it takes {len(kinds)} values with commas between them")
        return tuple(convert(part, kind, name) for part, kind in zip(parts, kinds, strict=True))
    return _scalar(value, hint, name)


def shown(value: object) -> str:
    """A value as shown in a message; objects are shown by their class, since their `repr` could be anything.

    >>> shown(7), shown("7"), shown([7]), shown(dict), shown(object())
    ('7', "'7'", '[7]', 'the class dict', 'an object of the class object')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    plain = value is None or isinstance(value, bool | int | float | str | list | tuple)
    return repr(value) if plain else f"an object of the class {type(value).__name__}"


def _scalar(value: Any, hint: type, name: str) -> Any:
    if hint not in _SCALARS:
        raise UserError(f"{name} has the type {hint}: a setting is a number, true or false, text, or a tuple of these")
    read, kind = _SCALARS[hint]
    try:
        return read(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise UserError(f"{name} is {shown(value)}: it must be {kind}") from None


def _bool(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    return words[value.lower() if isinstance(value, str) else str(operator.index(value))]


def _int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, str) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return operator.index(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise TypeError
    return float(value)


def _str(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # an order or a number of shots, such as 2
    if isinstance(value, bytes):
        raise TypeError
    return os.fsdecode(value)  # text or a path; raises a TypeError for anything else


_SCALARS: dict[type, tuple[Callable[[Any], Any], str]] = {
    bool: (_bool, "true or false"),
    int: (_int, "a whole number"),
    float: (_float, "a number"),
    str: (_str, "text"),
}
"""For each type, how the value of a setting is read, and what messages call it."""


def _check_range(value: Any, limits: Between, name: str) -> None:
    if value is None:
        return
    low, high = limits.low, limits.high
    if (low is None or value >= low) and (high is None or value <= high):  # a NaN is in no range
        return
    sides = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    raise UserError(f"{name} is {value}: it must be {' and '.join(side for side in sides if side)}")
