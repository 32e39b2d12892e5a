"""Objects in place of names: each becomes a word and plain settings at the edge, if its class can be found by name.

So `Replay(capacity=64)` and `replay` with `replay.capacity=64` ask for the same run. Only what cannot be found by name
is carried beside a request's words: a class of the running script, or an object with fields that are not settings.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cache
from importlib.util import find_spec
from inspect import isabstract
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from torch import nn

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.finetune import Finetune
from holdfast.benchmarks.base import Benchmark
from holdfast.errors import UserError, nearest
from holdfast.experiments.carried import Carried
from holdfast.experiments.request import Request, owner_of, settings_for
from holdfast.foreign import same_code
from holdfast.models.base import Model
from holdfast.models.module import kind_of
from holdfast.settings import fields, shown
from holdfast.usercode import PREFIX, file_of, load, loaded

SLOTS: Mapping[str, tuple[type, str]] = {
    "benchmark": (Benchmark, "'patterns'; `holdfast list benchmarks` shows all"),
    "algorithm": (Algorithm, "'replay', holdfast.algorithms.Replay(capacity=64), or 'file.py:Class' for your own"),
    "model": (Model, "'vilt-tiny', holdfast.models.TinyVilt(width=32), or a torch.nn.Module"),
}
"""The class for each slot of a request, and examples of what to give."""
FIELDS = ("scale", "setting", "order", "data", "skip_bad")
"""Settings of a benchmark for which a request has its own fields."""


@dataclass(frozen=True)
class Word:
    """An object as a word of a request: its settings, and the object itself if it cannot be found by name."""

    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[str, Carried] = field(default_factory=dict)


def requests(
    benchmark: Any, algorithms: Sequence[Any], model: Any = None, seeds: Iterable[int] = (0,), **words: Any
) -> list[Request]:
    """The requests for some algorithms on a benchmark, one for each seed; a tuple of algorithms is one combination.

    >>> [request.text() for request in requests("patterns", [Finetune(), ("joint", "replay")], scale="tiny")]
    ['holdfast run patterns --algorithm finetune --scale tiny',
     'holdfast run patterns --algorithm joint+replay --scale tiny']
    """
    given = words.pop("settings", None) or {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UserError(f"settings is {shown(given)}: give a dictionary such as {{'replay.capacity': 64}}")
    known = [name for name in fields(Request) if name not in ("benchmark", "algorithm", "model", "seed", "objects")]
    if unknown := sorted(set(words) - set(known)):
        raise UserError(f"unknown option {unknown[0]!r}: {nearest(unknown[0], [*known, 'seeds'])}")
    stream, network = word("benchmark", benchmark), Word("") if model is None else word("model", model)
    methods = [_combined([word("algorithm", each) for each in _parts(one)]) for one in algorithms]
    objects = _merged([stream.objects, network.objects, *(method.objects for method in methods)])
    own = {name: value for name, value in stream.settings.items() if name in FIELDS}
    for name in own.keys() & words.keys():
        if words[name] not in (None, 0) and str(words[name]) != str(own[name]):
            raise UserError(f"{name} is {words[name]!r}, and the benchmark was given with {own[name]!r}: give it once")
    shared = {name: value for name, value in stream.settings.items() if name not in FIELDS}
    for_each = settings_for([method.text for method in methods], given, objects)
    return [
        Request(
            stream.text,
            method.text,
            network.text or None,
            seed=seed,
            settings=_once(for_each[method.text], {**shared, **network.settings, **method.settings}),
            objects=objects,
            **{**words, **own},
        )
        for method in methods
        for seed in seeds
    ]


def named(request: Request) -> Request:
    """The same request with a word in the place of each object."""
    given = {name: getattr(request, name) for name in fields(Request)}
    slots = (given.pop(name) for name in ("benchmark", "algorithm", "model"))
    (found,) = requests(next(slots), [next(slots)], next(slots), [given.pop("seed")], **_without(given, "objects"))
    return replace(found, objects={**request.objects, **found.objects})


def _without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


def _parts(one: Any) -> tuple[Any, ...]:
    """The algorithms of one combination."""
    return one if isinstance(one, tuple) else (one,)


def _combined(words: Sequence[Word]) -> Word:
    settings = dict[str, Any]()
    for each in words:
        settings |= each.settings
    return Word("+".join(each.text for each in words), settings, _merged([each.objects for each in words]))


def _merged(found: Iterable[Mapping[str, Carried]]) -> dict[str, Carried]:
    """All objects by their words; each word refers to one thing."""
    objects = dict[str, Carried]()
    for each in (carried for mapping in found for carried in mapping.values()):
        before = objects.setdefault(each.name, each)
        if before.value is not each.value:
            raise UserError(f"{before} and {each} are two things of the same name: rename one of the classes")
    return objects


def _once(given: Mapping[str, Any], of_objects: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run; raises UserError if one is given both in an object and beside it."""
    own = {owner_of(name): value for name, value in of_objects.items()}
    for name, value in given.items():
        if str(own.get(owner_of(name), value)) != str(value):
            raise UserError(
                f"{name} is {shown(value)} in settings, and {shown(own[owner_of(name)])} in the object that was given: "
                "an object states all of its settings, so change it there, or give its class instead"
            )
    return {**of_objects, **{name: value for name, value in given.items() if owner_of(name) not in own}}


def word(slot: str, value: Any) -> Word:
    """The word for a name, for a class (its name) or for an object (its name and settings).

    >>> from holdfast.algorithms.frozen import FrozenBottom
    >>> word("algorithm", FrozenBottom(k=2))
    Word(text='frozen-bottom', settings={'frozen-bottom.k': 2}, objects={})
    """
    base, example = SLOTS[slot]
    if isinstance(value, str):
        return Word(value)
    if slot == "model" and (found := _wrapped(value)) is not None:
        return found
    kind = value if isinstance(value, type) else type(value)
    if not issubclass(kind, base) or kind is base:
        raise UserError(f"{slot} is {shown(value)}: give {example}")
    _check(slot, kind)
    text = _word_of(slot, kind)
    if isinstance(value, type):
        return Word(text) if text else _carried(slot, value)
    stated = _stated(slot, value)
    if not all(_is_plain(each) for each in stated.values()):
        return _carried(slot, value)
    found = Word(text) if text else _carried(slot, kind)
    owner = registry.find(text, slot).name if text else found.text
    if slot == "algorithm":
        stated = {f"{owner}.{name}": each for name, each in stated.items()}
    elif slot == "model":
        stated = {f"model.{name}": each for name, each in stated.items()}
    else:
        stated = {name if name in FIELDS else f"benchmark.{name}": each for name, each in stated.items()}
    return replace(found, settings=stated)


def _wrapped(value: Any) -> Word | None:
    """The word for a torch.nn.Module, its class, or a function that returns one; None for anything else."""
    is_class = isinstance(value, type)
    if not (issubclass(value, nn.Module) if is_class else isinstance(value, nn.Module | FunctionType)):
        return None
    wrapped = kind_of(value)
    if isinstance(value, type | FunctionType) and (text := _word_of("model", value)):
        with suppress(UserError):
            if registry.find(text, "model").load().__name__ == wrapped.__name__:
                return Word(text)
    return _carried("model", wrapped)


def _check(slot: str, kind: type) -> None:
    """Raise a UserError for a user's class that no run can use."""
    if isabstract(kind):
        raise UserError(
            f"{kind.__name__} does not define {' and '.join(sorted(getattr(kind, '__abstractmethods__', ())))}"
        )
    options = vars(kind).get("__dataclass_params__")
    if not is_dataclass(kind) or options is None or (slot == "benchmark" and not options.frozen):
        how = "@dataclass(frozen=True)" if slot == "benchmark" else "@dataclass"
        raise UserError(f"{kind.__name__} must be a dataclass, whose fields are its settings: write {how} above it")


def _stated(slot: str, value: Any) -> dict[str, Any]:
    """The settings that an object states: all of them, since a benchmark has presets for models and algorithms."""
    stated = {name: getattr(value, name) for name in fields(type(value))}
    if slot != "benchmark":
        return stated
    if stated.pop("seed", 0):
        raise UserError("the seed of a benchmark is the run's: leave it out there, and give seed= or seeds= to the run")
    return {name: each for name, each in stated.items() if not _same(each, _default(value, name))}


def _default(value: Any, name: str) -> Any:
    (own,) = (each for each in dataclass_fields(value) if each.name == name)
    return own.default if own.default_factory is MISSING else own.default_factory()


def _same(one: Any, other: Any) -> bool:
    return one is other or (_is_plain(one) and type(one) is type(other) and one == other)


def _is_plain(value: Any) -> bool:
    """Whether a setting can express it."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value)) and not any(isinstance(each, tuple) for each in value)
    return value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating)


def _carried(slot: str, value: Any) -> Word:
    """An object that cannot be found by name, under the name of its class."""
    kind = value if isinstance(value, type) else type(value)
    name = getattr(value, "called", "") or kind.__name__
    return Word(name, objects={name: Carried(slot, name, value, script())})


def script() -> str:
    """The running script; empty in a shell or a notebook."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) and Path(file).is_file() else ""  # noqa: PTH100


def _word_of(slot: str, kind: type | FunctionType) -> str:
    """The word that finds a class or function, here and in a later process; empty if there is none."""
    if kind is Finetune:
        return "finetune"
    place = f"{kind.__module__}:{kind.__qualname__}"
    for text, entry in registry.entries(slot).items():
        if entry.place == place:
            return text
    module = sys.modules.get(kind.__module__)
    if module is None or vars(module).get(kind.__qualname__) is not kind or module.__name__ == "__main__":
        return ""
    file = file_of(module)
    if module.__name__.startswith(PREFIX):
        known = loaded(module.__name__)
        current = known is not None and known.module is module and file is not None and load(file) is known
        return _file_word(file, kind) if current and file is not None else ""
    if _is_installed(module.__name__.partition(".")[0]):
        return place
    if file is None or file.suffix != ".py" or "." in module.__name__:
        return ""
    try:
        again = vars(load(file).module).get(kind.__name__)
    except UserError:
        return ""  # it needs more than the files beside it
    return _file_word(file, kind) if isinstance(again, type(kind)) and same_code(kind, again) else ""


def _file_word(file: Path, kind: type | FunctionType) -> str:
    here = Path.cwd()
    return f"{file.relative_to(here) if file.is_relative_to(here) else file}:{kind.__name__}"


@cache
def _installed() -> frozenset[str]:
    return frozenset(importlib.metadata.packages_distributions())


def _is_installed(name: str) -> bool:
    """Whether every process of this Python finds a package, whatever folder it is started in."""
    if name in _installed():
        return True
    try:
        spec = find_spec(name)
    except ValueError:  # a module without a spec, created by hand
        return False
    folders = [Path(each).resolve() for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    places = [Path(each).resolve() for each in spec.submodule_search_locations or [spec.origin or ""]] if spec else []
    return any(place.parent in folders for place in places)
