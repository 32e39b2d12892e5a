"""The index of a store: its finished runs as they were read and checked, so that thousands are not read one by one.

It is kept in the cache, not in the store, so that a store from elsewhere cannot supply one, and a read-only store can
have one. Each line is a run, with the state of the files that it was read from and a checksum. A run without a line, or
whose files have changed since, is read from its folder, and the index is rewritten.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.benchmarks.cache import digest, place
from holdfast.errors import printable
from holdfast.experiments.store import SCHEMA, Record, as_tuples
from holdfast.types import Score
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.reports.runs import Run

VERSION = 1
LEAST = 200
"""A store with fewer runs is read quickly enough without an index."""
FILES = ("config.json", "environment.json", "record.json")
"""The files from which a finished run is read."""


class Index:
    """The lines of an index by the names of the runs' folders."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = dict(_read(path))
        self._used: dict[str, bytes] = {}

    def find(self, folder: Path, state: str) -> tuple[str, dict[str, Any], Record] | None:
        """The command, configuration and record of a run whose files are in this state, if they are known."""
        line = self._lines.get(folder.name, b"")
        checksum, _, text = line.partition(b" ")
        if checksum != _checksum(text):
            return None
        known, command, value = json.loads(text)
        if known != state:
            return None
        self._used[folder.name] = line
        scores = tuple(Score(*score) for score in value["scores"])
        record = Record(**value | as_tuples(value) | {"scores": scores})
        return command, dict(record.config), record

    def add(self, run: Run, state: str) -> None:
        """Remember a finished run, which was read from files in this state."""
        assert run.record is not None
        value = vars(run.record) | {"scores": [list(vars(score).values()) for score in run.record.scores]}
        text = json.dumps([state, run.command, value], separators=(",", ":")).encode()
        self._used[run.path.name] = _checksum(text) + b" " + text

    def save(self) -> None:
        """Write the index if it changed; if it cannot be written, the next reader merely takes as long as this one."""
        if self._used == self._lines:
            return
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            head = json.dumps(_head())
            names = [json.dumps(name).encode() for name in self._used]
            lines = [name + b" " + line for name, line in zip(names, self._used.values(), strict=True)]
            temporary.write_bytes(b"\n".join([head.encode(), *lines]) + b"\n")
            temporary.rename(self._path)


@contextmanager
def index(store: Path, runs: int) -> Iterator[Index | None]:
    """The index of a store with this number of runs, saved at the end of the context; None for a small store."""
    if runs < LEAST:
        yield None
        return
    real = os.path.realpath(store)
    found = Index(
        place("indexes", digest(real), f"the index of the store {printable(real)}", ["holdfast.reports.index"], {})
    )
    yield found
    found.save()


def state_of(folder: Path) -> str:
    """The state of the files of a run; empty if it is not finished, or if they are anything but plain files."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return ""
        found = []
        for name in FILES:
            state = os.lstat(folder / name)
            if not stat.S_ISREG(state.st_mode):
                return ""
            found += [state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]
    except OSError:
        return ""
    return " ".join(map(str, found))


def _head() -> list[Any]:
    return [VERSION, SCHEMA, __version__]


def _checksum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)


def _read(path: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of an index by name; none if it is missing or of another version."""
    try:
        head, *lines = path.read_bytes().splitlines()
        if json.loads(head) != _head():
            return
    except (OSError, ValueError):
        return
    for line in lines:
        with suppress(ValueError):
            name, end = json.JSONDecoder().raw_decode(line[:1000].decode("utf-8", "replace"))
            yield str(name), line[end + 1 :]
