"""The names of everything that can be run, built in or external. Looking up a name imports only the thing itself.

`find(word, kind)` is the only place where a word is resolved. A word is

| word                  | for example                    | what it names                                       |
|-----------------------|--------------------------------|-----------------------------------------------------|
| a name                | `replay`, `er`, `patterns`       | something built in, or announced by a package       |
| `path/to/file.py:Name`| `mine.py:StayNear`             | a class (of datasets: an object) in a file          |
| `package.module:Name` | `photos.readers:PHOTOS`        | the same in a module that Python can import         |
| `hf:FOLDER`, `hf:NAME`| `hf:openai/clip-vit-base-patch32` | a model in Hugging Face's format                 |

A package announces its parts by entry points of the groups in `SLOTS`. A built-in name always means the built-in part,
and a name that two packages announce means neither: such parts are listed, and found, as `package.module:Name`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast import builtin
from holdfast.errors import UserError, nearest
from holdfast.usercode import load

BUILT_IN = "built-in"
_OF_RECORDS = ContextVar("of_records", default=False)
_NAMED: set[str] = set()
"""The code outside that the user of this process named, by its place."""


@dataclass(frozen=True)
class Entry:
    """The place of a named part, its purpose, and its other names in papers."""

    place: str
    """`package.module:Name` or `path/to/file.py:Name`; empty for plain fine-tuning, which needs no code."""
    summary: str
    aliases: tuple[str, ...] = ()
    rows: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Rows of the papers' tables: this part with one setting. A K in a name and its value is any whole number."""
    within: bool = False
    """Whether runs of this benchmark are only shown in its family's section, never as an experiment."""
    name: str = ""
    """Its name in settings, tables and records: the registered name, or the name of its class."""
    kind: str = ""
    """Its kind: a key of `SLOTS`. It is checked for external parts."""
    origin: str = BUILT_IN
    """Its origin: built-in, `package NAME VERSION`, or the path of its file."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The settings that the word implies: for a model, the location of its weights."""

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.place.partition(":")[0]

    @property
    def package(self) -> str:
        """The package that contains it."""
        return self.module.rpartition(".")[0]

    def load(self) -> Any:
        """The part itself; None for plain fine-tuning."""
        if not self.place:
            return None
        name = self.place.rpartition(":")[2]
        if self.origin == BUILT_IN:
            return getattr(self.imported(), name)
        found = vars(self.imported()).get(name)
        if self.kind == "model" and (wrapped := importlib.import_module("holdfast.models.module").wrapped(found)):
            return wrapped
        return _checked(self.imported(), name, self)

    def imported(self) -> ModuleType:
        """The module that defines it, imported or, from a file, executed."""
        place = self.place.rpartition(":")[0]
        if place.endswith(".py"):
            return load(Path(place)).module
        try:
            return importlib.import_module(place)
        except Exception as error:
            if self.origin == BUILT_IN:
                raise
            raise UserError(
                f"the {self.kind} {self.name!r} of {self.origin} cannot be imported: {type(error).__name__}: {error}"
            ) from error


def _entries(table: Mapping[str, builtin.Line]) -> dict[str, Entry]:
    return {name: Entry(*each) for name, each in table.items()}


BENCHMARKS = _entries(builtin.BENCHMARKS)
DATASETS = _entries(builtin.DATASETS)
WRITERS = _entries(builtin.WRITERS)
MODELS = _entries(builtin.MODELS)
ALGORITHMS = _entries(builtin.ALGORITHMS)
PLAIN = _entries(builtin.PLAIN)
TRANSFORMS = _entries(builtin.TRANSFORMS)
MEMORIES = _entries(builtin.MEMORIES)


@dataclass(frozen=True)
class Slot:
    """A slot of a run that takes a name: the tables of built-in parts, and the requirements for external ones."""

    tables: tuple[Mapping[str, Entry], ...]
    base: str
    """The class that it must extend or, for datasets, be an instance of."""
    group: str
    """The group of entry points for packages."""
    settings: bool = True
    """Whether it has settings, as the fields of a dataclass."""


SLOTS: dict[str, Slot] = {
    "benchmark": Slot((BENCHMARKS,), "holdfast.benchmarks.base:Benchmark", "holdfast.benchmarks"),
    "algorithm": Slot((PLAIN, ALGORITHMS, TRANSFORMS), "holdfast.algorithms.base:Algorithm", "holdfast.algorithms"),
    "model": Slot((MODELS,), "holdfast.models.base:Model", "holdfast.models"),
    "dataset": Slot((DATASETS,), "holdfast.datasets.base:Dataset", "holdfast.datasets", settings=False),
    "memory": Slot((MEMORIES,), "holdfast.memory.base:Memory", "holdfast.memories", settings=False),
    "task": Slot((), "holdfast.types:Task", "holdfast.tasks", settings=False),
}


def find(word: str, kind: str) -> Entry:
    """The entry for a word; see the table above. Only `Entry.load` imports it.

    >>> find("er", "algorithm").name, find("er", "algorithm").origin
    ('replay', 'built-in')
    >>> find("reply", "algorithm")
    Traceback (most recent call last):
    holdfast.errors.UserError: unknown algorithm 'reply': did you mean replay?
    """
    word = word.strip()
    if kind == "model" and word.startswith("hf:"):
        return replace(MODELS["hf"], name="hf", kind=kind, given={"weights": word.removeprefix("hf:")})
    place, colon, name = word.rpartition(":")
    if word.endswith(".py"):
        raise UserError(f"{word!r} names no {kind}: write it as {word}:Name")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UserError(f"the file {place!r} with the {kind} {name!r} does not exist")
        return _outside(word, kind, place)
    for main, entry in _built_in(kind):
        if _plain(word) in map(_plain, (main, *entry.aliases)):
            return replace(entry, name=main, kind=kind)
    announced = (
        [] if _is_taken(word, kind) else [each for each in _announced(kind) if _plain(each.name) == _plain(word)]
    )
    if len(announced) == 1:
        return announced[0]
    if announced:
        packages = " and ".join(f"{entry.origin} (as {entry.place})" for entry in announced)
        raise UserError(f"the {kind} {word!r} is announced by {packages}: say which one, as {announced[0].place}")
    if colon and _is_module(place):
        return _outside(word, kind, _origin(place))
    rows = [row for _, entry in _built_in(kind) for row in entry.rows]
    known = [each for main, entry in entries(kind).items() for each in (main, *entry.aliases)]
    told = f"no module {place!r} and no {kind} {word!r} exist" if "." in place else f"unknown {kind} {word!r}"
    raise UserError(f"{told}: {nearest(word, [*known, *rows]) if known else f'write it as file.py:{name or word}'}")


def entries(kind: str) -> dict[str, Entry]:
    """All named parts of a kind, by the word that finds them: built-in ones, then those that packages announce.

    >>> list(entries("dataset"))[:2]
    ['vqav2', 'nlvr2']
    """
    found = {main: replace(entry, name=main, kind=kind) for main, entry in _built_in(kind)}
    names = [_plain(entry.name) for entry in _announced(kind)]
    for entry in _announced(kind):
        alone = names.count(_plain(entry.name)) == 1 and not _is_taken(entry.name, kind)
        found[entry.name if alone else entry.place] = entry
    return found


def _is_taken(name: str, kind: str) -> bool:
    """Whether a name is built in, as a part, a row of a paper's table, or a family of benchmarks."""
    plain = _plain(name)
    of_family = kind == "benchmark" and plain.partition(":")[0] in families()
    of_row = kind == "algorithm" and row(plain) != (plain, {})
    return of_family or of_row or any(plain in map(_plain, (main, *e.aliases)) for main, e in _built_in(kind))


@contextmanager
def of_records() -> Iterator[None]:
    """Within this block, words come from records, which may be a stranger's: code is found only if it is trusted.

    Built-in and installed parts are, and so is code that was named before, outside of such a block.
    """
    before = _OF_RECORDS.set(True)
    try:
        yield
    finally:
        _OF_RECORDS.reset(before)


def _outside(word: str, kind: str, origin: str) -> Entry:
    """The entry for a class in a file or module, under the name of the class."""
    place, _, name = word.rpartition(":")
    code = str(Path(place).resolve()) if place.endswith(".py") else place
    if not _OF_RECORDS.get():
        _NAMED.add(code)
    elif code not in _NAMED:
        raise UserError(f"the {kind} {word!r} is code that a record names, which only your own command executes")
    if _is_taken(name, kind) and name == _plain(name):
        raise UserError(
            f"{word} has the name of a built-in {kind}, and records could not distinguish the two: rename it"
        )
    return Entry(word, "", name=name, kind=kind, origin=origin)


def _built_in(kind: str) -> Iterator[tuple[str, Entry]]:
    for table in SLOTS[kind].tables:
        yield from table.items()


@cache
def _announced(kind: str) -> tuple[Entry, ...]:
    """The parts that installed packages announce, from their metadata alone: nothing is imported."""
    found = sorted(importlib.metadata.entry_points(group=SLOTS[kind].group), key=lambda each: (each.name, each.value))
    places = [(point.value.partition("[")[0].strip(), point.name, _package(point.dist)) for point in found]
    return tuple(Entry(place, f"from {of}", name=name, kind=kind, origin=of) for place, name, of in places)


def _package(found: importlib.metadata.Distribution | None) -> str:
    return f"package {found.name} {found.version}" if found is not None else "a package"


def _is_module(name: str) -> bool:
    """Whether Python could import it, as far as is known without executing anything."""
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):  # a name with an empty part; a module without a spec
        return False


def _origin(module: str) -> str:
    """The package of a module; its file if it belongs to none."""
    packages = importlib.metadata.packages_distributions().get(module.partition(".")[0], ())
    if packages:
        return _package(importlib.metadata.distribution(packages[0]))
    spec = importlib.util.find_spec(module.partition(".")[0])
    return spec.origin if spec is not None and spec.origin else module


def _checked(module: ModuleType, name: str, entry: Entry) -> Any:
    """The part of this name in a module, checked against the requirements of its kind."""
    kind, where = SLOTS[entry.kind], entry.place.rpartition(":")[0]
    holder, _, base_name = kind.base.partition(":")
    base = getattr(importlib.import_module(holder), base_name)
    own = {n: thing for n, thing in vars(module).items() if _is_a(thing, base, entry.kind)}
    if module.__name__ != where:  # a file: what it imports is not its own
        own = {n: t for n, t in own.items() if not isinstance(t, type) or t.__module__.split(".")[0] == module.__name__}
    if name not in own:
        wrong = f"has no {entry.kind} {name!r}"
        if name in vars(module) and module.__name__ == where:
            wrong = f"has {name!r}, which does not extend holdfast.{base_name}"
        raise UserError(f"{where} {wrong}: {nearest(name, own)}")
    thing = own[name]
    if isinstance(thing, type):
        if missing := sorted(getattr(thing, "__abstractmethods__", ())):
            raise UserError(f"{where}: {name} does not define {' and '.join(missing)}")
        options = vars(thing).get("__dataclass_params__")
        # Set-ups are cached under the benchmark itself, so it must not change.
        if kind.settings and (options is None or (entry.kind == "benchmark" and not options.frozen)):
            decorator = "@dataclass(frozen=True)" if entry.kind == "benchmark" else "@dataclass"
            raise UserError(f"{where}: {name} must be a dataclass: write {decorator} above it")
    return thing


def _is_a(thing: Any, base: type, kind: str) -> bool:
    if kind == "dataset":
        return isinstance(thing, base)
    return isinstance(thing, type) and issubclass(thing, base) and thing is not base


def families() -> dict[str, str]:
    """The package of each family of benchmarks, which contains everything that belongs to it.

    >>> families()["patterns"]
    'holdfast.benchmarks.patterns'
    """
    return {entry.package.rpartition(".")[2]: entry.package for entry in BENCHMARKS.values()}


def part(benchmark: str, name: str) -> ModuleType | None:
    """A module of a benchmark's folder, by the benchmark's name or its family's; None if there is no such module.

    | module | what the rest of the library uses |
    |---|---|
    | `protocol` | `MEASURES` and `COSTS`: titles, directions, units |
    | `report` | `section(records)`: blocks for reports, in the paper's layout |
    | `commands` | `register(app)`: its own commands; `register_bench(group)`: its speed benchmarks |
    | `building` | `register_build(group)`: `holdfast data build NAME` |
    | `imports` | `register_import(group)`: `holdfast import NAME` |
    | `speed` | `CALIBRATION`: runs that calibrate its synthetic data |

    >>> part("patterns", "protocol").MEASURES["final_accuracy"].title
    'final acc.'
    >>> part("patterns", "commands") is None
    True
    """
    entry = BENCHMARKS.get(benchmark)
    package = entry.package if entry else families().get(benchmark)
    if package is None or importlib.util.find_spec(f"{package}.{name}") is None:
        return None
    return importlib.import_module(f"{package}.{name}")


def resolve(name: str, kind: str, *tables: Mapping[str, Entry]) -> str:
    """The registered name behind a name or alias; raises a UserError with the nearest known names.

    >>> resolve("multitask", "algorithm", ALGORITHMS, PLAIN, TRANSFORMS)
    'joint'
    """
    names = {alias: main for table in tables for main, entry in table.items() for alias in (main, *entry.aliases)}
    plain = {alias.replace("_", "-"): main for alias, main in names.items()}
    if (found := plain.get(_plain(name))) is None:
        rows = [row for table in tables for entry in table.values() for row in entry.rows]
        raise UserError(f"unknown {kind} {name!r}: {nearest(name, [*names, *rows])}")
    return found


def row(name: str) -> tuple[str, dict[str, str]]:
    """The algorithm and setting behind a row of a paper's table; other names are returned unchanged.

    >>> row("ER-MIR-max"), row("frozen_bottom_9"), row("ewc")
    (('mir', {'mir.by': 'max'}), ('frozen-bottom', {'frozen-bottom.k': '9'}), ('ewc', {}))
    """
    for main, entry in ALGORITHMS.items():
        for pattern, (setting, value) in entry.rows.items():
            if found := re.fullmatch(pattern.replace("K", r"(\d+)"), _plain(name)):
                return main, {f"{main}.{setting}": found[1] if found.groups() else value}
    return name, {}


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")
