"""The user's code: its files, their hash, and how a file is executed.

A file and the modules that it imports from its own folder form a set. They are executed together, again if one of
them changed, under separate names: two files in different folders may both have a `helper.py`.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from holdfast.errors import UserError

PREFIX = "holdfast_user_"
INSTALLED = ("site-packages", "dist-packages")
OURS = Path(__file__).parent


@dataclass(frozen=True)
class Loaded:
    """An executed file: its module, and the hash of everything that it imports from its folder."""

    module: ModuleType
    files: frozenset[Path]
    hash: str


_LOADED: dict[Path, Loaded] = {}
_EXECUTING: list[Path] = []


def executing() -> bool:
    """Whether a user's file is being executed to resolve a name."""
    return bool(_EXECUTING)


def load(path: Path) -> Loaded:
    """Execute a file, unless it was executed before and none of its files have changed since."""
    file, folder = path.resolve(), path.resolve().parent
    before = _LOADED.get(file)
    files = imported(file, folder, folder) | (frozenset() if before is None else before.files)
    found = hashed(file, files)
    if before is not None and before.hash == found:
        return before
    for name, module in list(sys.modules.items()):  # modules that it imported in other ways than import statements
        if (
            before is not None
            and not name.startswith((PREFIX, "__main__"))
            and file_of(module) in before.files - {file}
        ):
            del sys.modules[name]
    known = set(sys.modules)
    name = hashlib.blake2b(f"{folder}/{found}".encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    module = _execute(path, file, f"{PREFIX}{file.stem}_{name}")
    new = {file_of(each) for name, each in list(sys.modules.items()) if name not in known}
    files |= {each for each in new if each is not None and _belongs(each, folder)}
    _LOADED[file] = Loaded(module, files, hashed(file, files))
    return _LOADED[file]


def loaded(name: str) -> Loaded | None:
    """The last execution that created a module of this name."""
    package = name.partition(".")[0]
    return next((each for each in _LOADED.values() if each.module.__name__ == package), None)


def imported(file: Path, folder: Path, root: Path) -> frozenset[Path]:
    """A file and all modules in its folder or below that its import statements reach, directly or not.

    The names of modules are relative to `root`.
    """
    found, waiting = set[Path](), [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [each for each in _imports(path, root) if _belongs(each, folder)]
    return frozenset(found)


def hashed(file: Path, files: Iterable[Path]) -> str:
    """A hash of a file and the files that belong to it, by content and by location relative to the file."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(files):
        if path.is_file():
            where = "" if path == file else os.path.relpath(path, file.parent)
            digest.update(
                f"{where}/{hashlib.blake2b(path.read_bytes()).hexdigest()};".encode("utf-8", "surrogateescape")
            )
    return digest.hexdigest()


def _imports(path: Path, root: Path) -> Iterator[Path]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _modules(root, name.name)
        elif isinstance(node, ast.ImportFrom):
            start = root if not node.level else path.parents[min(node.level, len(path.parents)) - 1]
            for name in node.names:  # each may be a module or something in one
                yield from _modules(start, ".".join(filter(None, (node.module, name.name))), first=not node.level)
        elif isinstance(node, ast.Call) and _called(node.func) in ("import_module", "__import__"):
            for word in node.args[:1]:
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    yield from _modules(root, word.value)


def dotted(path: Path) -> set[tuple[str, ...]]:
    """The dotted names in a file, as in `package.module.name`."""
    found = set()
    for node in _nodes(path):
        words = list[str]()
        while isinstance(node, ast.Attribute):
            words.insert(0, node.attr)
            node = node.value
        if words and isinstance(node, ast.Name):
            found.add((node.id, *words))
    return found


def _nodes(path: Path) -> Sequence[ast.AST]:
    return _parsed(path.read_bytes()) if path.is_file() else ()


@lru_cache(maxsize=256)
def _parsed(content: bytes) -> Sequence[ast.AST]:
    try:
        return tuple(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):
        return ()  # executing it reports what is wrong


def _called(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _modules(start: Path, name: str, first: bool = True) -> Iterator[Path]:
    """The files of a dotted name relative to a folder: each package's own, then the module's."""
    words = name.split(".")
    if first and not is_own(start, words[0]):
        return
    if (start / "__init__.py").is_file() and not first:
        yield start / "__init__.py"
    for place in (start.joinpath(*words[:count]) for count in range(1, len(words) + 1)):
        yield from (each for each in (place / "__init__.py", place.with_suffix(".py")) if each.is_file())


def is_own(folder: Path, name: str) -> bool:
    """Whether files in a folder get a module of this name from there, not from Python or a package."""
    if name in sys.stdlib_module_names or name == "holdfast":
        return False
    if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
        return True
    try:
        return (folder / name).is_dir() and find_spec(name) is None
    except ValueError:
        return False


def _belongs(path: Path, folder: Path) -> bool:
    inside = path.is_relative_to(folder) and not path.is_relative_to(OURS)
    return inside and not set(INSTALLED) & set(path.relative_to(folder).parts)


def file_of(module: ModuleType) -> Path | None:
    """The file of a module; None if it has none."""
    file = getattr(module, "__file__", None)
    return _resolved(file) if isinstance(file, str) else None


@lru_cache(maxsize=8192)
def _resolved(file: str) -> Path:
    return Path(file).resolve()


def _execute(path: Path, file: Path, name: str) -> ModuleType:
    """Execute a file as a package of this name, which contains the modules of its folder."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    importlib.invalidate_caches()
    for old in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[old]
    spec = ModuleSpec(name, _Loader(name, str(path)), origin=str(path), is_package=True)
    spec.submodule_search_locations = [str(file.parent)]
    spec.has_location = True
    module = module_from_spec(spec)
    module.__file__ = str(file)  # a relative path would mean another file after a change of folder
    sys.modules[name] = module  # dataclasses look up their module by name
    assert spec.loader is not None
    _EXECUTING.append(path)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UserError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        place = f"{path}, line {lines[-1]}" if lines else path
        named = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        raise UserError(f"{place}: {named}{error}") from error
    finally:
        _EXECUTING.pop()
    return module


class _Loader(SourceFileLoader):
    """Reads a file's current content as code, whose import statements can find the modules of the user's folder."""

    def get_code(self, fullname: str) -> CodeType:
        """Do not use cached bytecode: an edit within the same second does not change the file's time."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Execute it."""
        package = module.__name__.partition(".")[0]
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": partial(_import, package)}
        exec(self.get_code(module.__name__), vars(module))


class _Finder:
    """Finds modules in the folder of a user's file."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module, which is executed from its source."""
        if not name.startswith(PREFIX):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


def _import(
    package: str,
    name: str,
    given: Mapping[str, object] | None = None,
    local: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """Resolve an import statement in a user's file, whenever it is executed."""
    (folder,), top = sys.modules[package].__path__, name.partition(".")[0]
    if level or not is_own(Path(folder), top):
        return builtins.__import__(name, given, local, fromlist or (), level)
    found = builtins.__import__(f"{package}.{name}", given, local, fromlist or (), 0)
    return found if fromlist else sys.modules[f"{package}.{top}"]
