"""External code in a run's id: changed code is a new run.

A class is represented by its file and the files that it imports from its folder or package, by the built-in parts that
it extends or uses, and, if we did not execute its file, also by its state in memory: a file that was edited after it
was imported is not what runs. A class of the running script, or of a shell, is represented by what its code reaches in
memory and by the files that the script imports: changing another line of the script makes no new run. Data files that
code reads are not covered.
"""

from __future__ import annotations

import copyreg
import enum
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.usercode import INSTALLED, PREFIX, dotted, file_of, hashed, imported, loaded

OURS = "holdfast."
BORROWED = (
    "holdfast.algorithms.",
    "holdfast.memory.",
    "holdfast.models.",
    "holdfast.tasks",
    "holdfast.benchmarks.stages",
)
"""Rooms whose functions and helper classes have no version: code that uses one is hashed with its file."""
_RECEIVED: WeakKeyDictionary[type, tuple[Mapping[str, Any], tuple[type, ...]]] = WeakKeyDictionary()
_STANDARD = Path(sysconfig.get_path("stdlib")).resolve()
_SKIPPED = {"__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__", "__builtins__"}
_SKIPPED |= {"__slotnames__"}  # `copy` adds it to a class when it copies an object


def identity(kind: type) -> dict[str, Any]:
    """The configuration's entry for the code of a class; empty for a built-in class, which has a version.

    Code that it uses from other packages is included if it extends something of ours.

    >>> from fractions import Fraction
    >>> from holdfast.errors import UserError
    >>> list(identity(Fraction)), identity(UserError)
    (['code'], {})
    """
    if kind.__module__.startswith(OURS):
        return {}
    if kind in _RECEIVED:
        return dict(_RECEIVED[kind][0])
    return {"code": code_of(kind, kind.__module__), **({} if files_of(kind.__module__) else {"without_file": True})}


def code_of(thing: object, name: str, seen: frozenset[int] = frozenset()) -> str:
    """The hash of the code of a class or dataset reader that the named module defines."""
    module, files, digest = _module(name), files_of(name), hashlib.blake2b(digest_size=8)
    if (file := file_of(module)) is not None:
        digest.update(hashed(file, files - {file} if _in_memory(module) else files).encode())
    if not name.startswith(PREFIX):
        _Reader(digest, module, in_files=not _in_memory(module)).read(thing)
    named = list(_named(thing, name))
    for path in sorted({path for value in named if (path := _borrowed(value)) is not None}):
        digest.update(path.read_bytes())
    seen |= {id(thing)}
    found = {(each.__module__, each.__qualname__): each for value in named for each in _extending(value)}
    for (other, _), each in sorted(found.items()):
        if id(each) not in seen and other != name and file_of(_module(other)) not in files:
            digest.update(code_of(each, other, seen).encode())
    return digest.hexdigest()


def receive(kind: type, code: Mapping[str, Any], takes: tuple[type, ...]) -> None:
    """Note the results of `identity` and `taken` for a class from another process, whose module is missing here."""
    _RECEIVED[kind] = code, takes


def same_code(one: type | FunctionType, other: type | FunctionType) -> bool:
    """Whether two executions of a file, under different names, defined the same class or function."""
    digests = []
    for each in (one, other):
        digests.append(hashlib.blake2b())
        module, files = _module(each.__module__), files_of(other.__module__)
        _Reader(digests[-1], module, in_files=True, files=files).read(each)
    return digests[0].digest() == digests[1].digest()


def files_of(name: str) -> frozenset[Path]:
    """The source files of the named module; none if it was typed into a shell."""
    module = _module(name)
    if (known := loaded(name)) is not None:
        return known.files
    if (file := file_of(module)) is None or not file.is_file():
        return frozenset()
    folder, root = _folder(module)
    return frozenset({file}) if folder.name in INSTALLED else imported(file, folder, root)


def taken(kind: type) -> Iterator[type]:
    """The built-in classes that external code extends, instantiates or calls: all those to which it has a name."""
    if kind in _RECEIVED:
        yield from _RECEIVED[kind][1]
    elif not kind.__module__.startswith(OURS):
        yield from (
            each
            for each in _named(kind, kind.__module__)
            if issubclass(type(each), type) and str(each.__module__).startswith(OURS)
        )


def _named(thing: object, name: str) -> Iterator[Any]:
    """Everything that a module's code can name, in all its files, and what it reaches as `package.module.name`.

    For a shell or the running script, which may contain anything, only what the thing's own code reaches.
    """
    if _in_memory(_module(name)):
        reader = _Reader(hashlib.blake2b(), _module(name), in_files=False)
        reader.read(thing)
        yield from reader.kept
        return
    files = files_of(name)
    for module in list(sys.modules.values()):
        if module.__name__ == name or (_goes_with(name, module.__name__) and file_of(module) in files):
            yield from list(vars(module).values())
            file = file_of(module)
            for first, *rest in set() if file is None else dotted(file):
                value: Any = vars(module).get(first)
                while rest and issubclass(type(value), ModuleType):
                    value = _in_module(value, rest.pop(0))
                yield value


def _in_module(module: ModuleType, name: str) -> Any:
    """A module's attribute; for our modules, also one that is imported on first access."""
    return getattr(module, name, None) if f"{module.__name__}.".startswith(OURS) else vars(module).get(name)


def _module(name: str) -> ModuleType:
    """The module of this name; an empty one if it is gone."""
    return sys.modules.get(name) or ModuleType(name)


def _in_memory(module: ModuleType) -> bool:
    """Whether a module is not an imported file: a shell, or the running script."""
    file = file_of(module)
    return module.__name__ == "__main__" or file is None or not file.is_file()


def _users_own(module: ModuleType) -> bool:
    """Whether a module is not part of Python, not installed, and not ours."""
    file = file_of(module)
    if file is None or module.__name__.partition(".")[0] in {*sys.stdlib_module_names, "holdfast"}:
        return False
    return not set(INSTALLED) & set(file.parts) and not file.is_relative_to(_STANDARD)


def _extending(value: Any) -> Iterator[Any]:
    """External code that extends something of ours: the class itself, and the functions of a dataset's reader."""
    if issubclass(type(value), type):
        own, found = any(str(base.__module__).startswith(OURS) for base in value.__mro__), [value]
    else:
        own, found = str(type(value).__module__).startswith(OURS), list(getattr(value, "__dict__", {}).values())
    for each in found if own else ():
        code = issubclass(type(each), type | FunctionType) and each.__module__ in sys.modules
        if code and not each.__module__.startswith(OURS):
            yield each


def _goes_with(name: str, module: str) -> bool:
    """Exclude what was typed into a shell, and what an earlier execution of a user's file left."""
    own = name.partition(".")[0]
    return module != "__main__" and (not module.startswith(PREFIX) or module.partition(".")[0] == own)


def _folder(module: ModuleType) -> tuple[Path, Path]:
    """The folder whose code counts, and the one to which the names of its modules are relative."""
    file = file_of(module)
    assert file is not None
    if module.__name__.startswith(PREFIX):
        folder = Path(next(iter(sys.modules[module.__name__.partition(".")[0]].__path__)))
        return folder, folder
    depth = len(module.__name__.split(".")) - (file.name != "__init__.py")
    folder = file.parents[max(depth - 1, 0)]
    return folder, folder.parent if depth else folder


def _borrowed(value: Any) -> Path | None:
    """The file of a built-in function or class without a version."""
    if not issubclass(type(value), type | FunctionType) or not str(value.__module__).startswith(BORROWED):
        return None
    return None if hasattr(value, "version") else file_of(sys.modules[value.__module__])


class _Reader:
    """Feeds a hash with code in memory, and with everything that it refers to in its own modules.

    If there are files, they contain a module's initial lists and tables; in memory these may be caches.
    If there are none, all of the user's own modules to which the code refers count as well.
    """

    def __init__(self, digest: Any, module: ModuleType, in_files: bool, files: frozenset[Path] = frozenset()) -> None:
        self.digest, self.own, self.in_files = digest, module.__name__.partition(".")[0], in_files
        self.files = files
        """Treat these modules as the user's own, under whatever names they were executed."""
        self.seen: set[int] = set()
        self.kept: list[Any] = []

    def read(self, value: Any) -> None:
        """Feed a value."""
        if isinstance(value, bool | int | float | complex | str | bytes | None):
            self._say(type(value).__name__, repr(value))
            return
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        self.kept.append(value)  # otherwise its address could be reused
        self._say(type(value).__qualname__)
        if isinstance(value, tuple):
            self._all(value)
        elif isinstance(value, frozenset):
            self._all(sorted(value, key=repr))
        elif isinstance(value, list | set | dict | MappingProxyType) or hasattr(value, "tolist"):
            if not self.in_files:
                self._mutable(value)
        elif isinstance(value, enum.Enum):
            self._say(str(value))
        elif isinstance(value, CodeType):
            self._say(value.co_name, str(value.co_argcount), str(value.co_flags))
            self._all((value.co_code, value.co_names, value.co_varnames, value.co_consts))
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, staticmethod | classmethod):
            self.read(value.__func__)
        elif isinstance(value, property):
            self._all((value.fget, value.fset))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, ModuleType):
            self._module(value)
        elif isinstance(value, partial):
            self._all((value.func, value.args, *(each for item in sorted(value.keywords.items()) for each in item)))
        elif hasattr(value, "__wrapped__"):
            self.read(value.__wrapped__)
        elif type(value).__module__.startswith(OURS):  # a dataset: its reader's functions
            self._all(sorted(getattr(value, "__dict__", {}).items()))
        elif not self.in_files:
            self._object(value)

    def _object(self, value: Any) -> None:
        """Feed what else an object is made of, as `copy` and `pickle` see it: of a builtin function, its name."""
        self.read(type(value))
        self._say(str(getattr(value, "__module__", "")))
        registered = copyreg.dispatch_table.get(type(value))
        try:
            found = registered(value) if registered else value.__reduce_ex__(4)
        except Exception:  # for example an open file or a lock, which cannot affect a result
            return
        self._all([*found[:3], *map(list, filter(None, found[3:5]))] if isinstance(found, tuple) else [found])

    def _mutable(self, value: Any) -> None:
        if isinstance(value, list):
            self._all(value)
        elif isinstance(value, set):
            self._all(sorted(value, key=repr))
        elif isinstance(value, dict | MappingProxyType):
            self._all(each for key in sorted(value, key=repr) for each in (key, value[key]))
        elif hasattr(value, "tolist"):
            self._array(value)

    def _array(self, value: Any) -> None:
        """Feed an array or a tensor, which may be large."""
        import numpy as np

        with suppress(AttributeError, TypeError):
            value = value.detach().cpu()
        self._say(str(getattr(value, "dtype", "")), str(getattr(value, "shape", "")))
        try:
            found = np.ascontiguousarray(value)
        except TypeError:  # a type of torch that numpy lacks
            found = np.ascontiguousarray(value.float())
        if found.dtype.hasobject:
            self.read(found.tolist())
        else:
            self.digest.update(found.tobytes())

    def _all(self, values: Any) -> None:
        for each in values:
            self.read(each)
        self._say(";")

    def _function(self, value: FunctionType, of_class: bool = False) -> None:
        self._say(self._place(value.__module__), value.__qualname__)
        if not of_class and not self._is_own(value.__module__):
            return
        self._all((value.__code__, value.__defaults__, *sorted((value.__kwdefaults__ or {}).items())))
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # an empty cell
                self.read(cell.cell_contents)
        names = _names(value.__code__)
        for name in sorted(names):
            if name in value.__globals__:
                self._say(name)
                self.read(found := value.__globals__[name])
                self.kept += _through(found, names)

    def _class(self, value: type) -> None:
        self._say(self._place(value.__module__), value.__qualname__)
        if self._is_own(value.__module__):
            self._all((type(value), *value.__bases__))
            for name, each in sorted(vars(value).items()):
                if name not in _SKIPPED:
                    self._say(name)
                    if isinstance(each, FunctionType):
                        self._function(each, of_class=True)
                    else:
                        self.read(each)

    def _module(self, value: ModuleType) -> None:
        self._say(self._place(value.__name__))
        if self._is_own(value.__name__):
            for name, each in sorted(vars(value).items()):
                if isinstance(each, type | FunctionType | int | float | str | tuple) and name not in _DUNDERS:
                    self._say(name)
                    self.read(each)

    def _is_own(self, name: str | None) -> bool:
        module = _module(name or "")
        if self.files:
            return file_of(module) in self.files
        own = name is not None and name.partition(".")[0] == self.own
        return own or (not self.in_files and _users_own(module))

    def _place(self, name: str | None) -> str:
        """A module by its name, or by its file if it may have several names."""
        file = file_of(_module(name or "")) if self.files else None
        return str(file if file in self.files else name)

    def _say(self, *words: str) -> None:
        self.digest.update("\0".join(words).encode("utf-8", "surrogatepass") + b"\0\0")


_DUNDERS = {"__name__", "__file__", "__path__", "__cached__", "__package__", "__doc__"}


def _through(value: Any, names: set[str]) -> Iterator[Any]:
    """What code with these names may reach through one of our modules, as in `hf.algorithms.Replay`."""
    if isinstance(value, ModuleType) and f"{value.__name__}.".startswith(OURS):
        for name in sorted(names):
            if (found := _in_module(value, name)) is not None:
                yield found
                yield from _through(found, names - {name})


def _names(code: CodeType) -> set[str]:
    """The names that code refers to, including its inner functions."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _names(each)
    return found
