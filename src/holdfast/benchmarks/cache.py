"""The cache of expensive results, each with a note on its origin that shows when it has become useless.

```
CACHE/world/<dataset>-<scale>-<seed>-v<version>/   synthetic datasets
CACHE/tables/<hash>...                             prepared tables and vocabularies
CACHE/regions/<hash>/   CACHE/<benchmark>/<hash>   region features, and what benchmarks compute for themselves
CACHE/frozen/<hash>/                               outputs of frozen parts of models
CACHE/indexes/<hash>                               the finished runs of large stores, for tables and reports
CACHE/stores/<hash>/                               local copies of remote stores
CACHE/<kind>/.<name>.about.json                    the note: versions of the code, and the folders that were read
```

CACHE is `$HOLDFAST_CACHE`, or `holdfast` in the user's cache folder. Everything in it can be deleted and recomputed.
A module whose code affects what is kept has a `VERSION`: raise it when the code would produce other content. The
goldens in `tests/golden/cached.json` say when, and of which module.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from holdfast import registry

STORES = "stores"
NAMES = {
    "frozen": "[0-9a-f]{32}",
    "indexes": "[0-9a-f]{32}",
    "regions": "[0-9a-f]{32}",
    "stores": "[0-9a-f]{16}",
    "tables": "[0-9a-f]{32}",
    "world": r"\w+(-\w+)*-\d+-(v\d+|[0-9a-f]{12})(-\w+)*",
    **dict.fromkeys(registry.families(), "[0-9a-f]{32}"),
}
"""The kinds of entries and the patterns of their names: other files in the folder are left alone."""
State = Literal["current", "unused", "half-written", "being written"]


@dataclass(frozen=True)
class CacheEntry:
    """An entry of the cache: all files and folders of one name."""

    kind: str
    title: str
    paths: tuple[Path, ...]
    bytes: int
    used: float
    """When it was last used, in seconds since 1970."""
    state: State
    why: str = ""
    """Why it is no longer needed."""


def cache_folder() -> Path:
    """The folder for data that can be recomputed."""
    if own := os.environ.get("HOLDFAST_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast"


def version_of(module: str) -> int:
    """The version of a module whose code affects what is kept.

    >>> version_of("holdfast.data.prepared") >= 1
    True
    """
    return int(import_module(module).VERSION)


def place(kind: str, name: str, title: str, modules: Iterable[str], files: Mapping[str, str]) -> Path:
    """The path for an entry; the note beside it states the code and the files from which it was made."""
    path = cache_folder() / kind / name
    note = _note(path)
    with suppress(OSError):  # a read-only cache works too
        if note.exists():
            os.utime(note)
        else:
            versions = {module: version_of(module) for module in modules}
            write_json(note, {"title": title, "versions": versions, "files": dict(files)})
    return path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Let one process at a time create the entry at a path; others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the process ends, however it ends
        yield


def digest(*settings: object) -> str:
    """A name for an entry that depends on these settings."""
    return hashlib.blake2b(repr(settings).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def write_json(path: Path, value: object) -> None:
    """Write a file atomically, even if other processes write the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name.lstrip('.')}.{os.getpid()}")
    temporary.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    temporary.rename(path)


def entries() -> Iterator[CacheEntry]:
    """All entries of the cache, by kind and title."""
    for kind, pattern in NAMES.items():
        folder, groups = cache_folder() / kind, dict[str, list[Path]]()
        for path in folder.iterdir() if folder.is_dir() else ():
            name = path.name.lstrip(".").partition(".")[0]
            if re.fullmatch(pattern, name):
                groups.setdefault(name, []).append(path)
        found = [_entry(folder / name, paths) for name, paths in groups.items()]
        yield from sorted((each for each in found if each is not None), key=lambda each: each.title)


def clean(everything: bool = False) -> list[CacheEntry]:
    """Remove unused and incomplete entries, or everything; return what was removed.

    Entries that another process is writing stay, and so do locks, for which a process may be waiting.
    """
    removed = []
    for entry in entries():
        if entry.state == "being written" or (entry.state == "current" and not everything):
            continue
        with _alone(entry.paths) as alone:
            if alone:
                for path in sorted(entry.paths, key=lambda path: path.name.startswith(".")):
                    remove(path)
                removed.append(entry)
    return removed


def remove(path: Path) -> None:
    """Remove a file or a folder; a folder is renamed before its first file is deleted."""
    if path.is_dir():
        gone = path if path.name.startswith(".") else path.with_name(f".{path.name}.gone")
        if gone != path:
            shutil.rmtree(gone, ignore_errors=True)
            path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def size(path: Path) -> int:
    """The bytes of a file, or of all files under a folder, not counting holes in sparse files."""
    files = [path] if path.is_file() else [Path(root, name) for root, _, names in os.walk(path) for name in names]
    return sum(min(state.st_size, 512 * state.st_blocks) for state in map(os.lstat, files))


def _entry(path: Path, paths: Sequence[Path]) -> CacheEntry | None:
    """The entry of a name; None if only a lock or a note is left."""
    content = [each for each in paths if not each.name.startswith(".")]
    rest = [each for each in paths if each not in content and each != _note(path) and not _is_lock(each)]
    if not content and not rest:
        return None
    about = _read(_note(path))
    with _alone(paths) as alone:
        state: State = "unused" if content else "half-written"
        why = (_why_unused(about) if path.parent.name != STORES else "") if content else "its process ended early"
        if not alone:
            state, why = "being written", ""
        elif content and not why:
            state = "current"
    title = str(about.get("title", "a copy of a remote store" if path.parent.name == STORES else path.name))
    used = max(each.stat().st_mtime for each in paths)
    own = tuple(each for each in paths if not _is_lock(each))
    return CacheEntry(path.parent.name, title, own, sum(map(size, own)), used, state, why)


def _why_unused(about: Mapping[str, Mapping[str, object]]) -> str:
    from holdfast.data.prepared import files_fingerprint  # it imports torch, which those who only read runs do not need

    if not about:
        return "an earlier holdfast made it"
    if not all(isinstance(about.get(part, {}), Mapping) for part in ("versions", "files")):
        return "its note is damaged"
    for module, version in about.get("versions", {}).items():
        try:
            now = version_of(module)
        except (ImportError, AttributeError):
            return f"{module} no longer exists"
        if now != version:
            return f"{module} is at version {now}, and this is of version {version}"
    for folder, files in ((Path(folder), files) for folder, files in about.get("files", {}).items()):
        ours = folder.is_relative_to(cache_folder().absolute())
        if folder.exists() and files_fingerprint(folder) != files:
            return f"the files in {folder} have changed"
        if ours and not folder.is_dir():  # other folders may be on a disk that is mounted again
            return f"it was made from {folder.name}, which is gone"
        if ours and (why := _why_unused(_read(_note(folder)))):
            return f"it was made from {folder.name}, which is no longer needed: {why}"
    return ""


@contextmanager
def _alone(paths: Iterable[Path]) -> Iterator[bool]:
    """Whether no other process is writing these; within the context, none can start to."""
    with ExitStack() as open_files:
        alone = True
        for path in paths:
            locks = [*path.glob("*/lock")] if path.parent.name == STORES else [path]
            for lock in locks:
                alone = alone and _locked(lock, open_files)
        yield alone


def _locked(path: Path, open_files: ExitStack) -> bool:
    """Acquire the lock of a file or folder, if it has one and it is free."""
    last = path.name.rpartition(".")[2]
    if path.name.startswith(".") and last.isdigit():  # the temporary file of the process with this number
        return int(last) == os.getpid() or not _runs(int(last))
    if not (_is_lock(path) or path.name.endswith(".part")):
        return True
    try:
        handle = os.open(path, os.O_RDONLY)
        open_files.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _is_lock(path: Path) -> bool:
    return path.name == "lock" or path.name.endswith(".lock")


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.about.json")


def _read(note: Path) -> dict[str, dict[str, object]]:
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
