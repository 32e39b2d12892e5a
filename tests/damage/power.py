"""What a disk may hold after a power cut, from the operations of the process that wrote to it.

Only what was synced is certain: the bytes of a file as they were when it was synced, and the names in a folder as they
were when the folder was synced. Whatever came later may be there or not, except that the changes of one folder are
there in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from damage.shim import Operation


@dataclass
class Content:
    """A file's bytes: as they are, and as they were when they were synced."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


Names = dict[str, Content | None]
"""Files by their paths; None is a folder."""


class Disk:
    """A folder on a disk. It begins empty."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.names: Names = {self.root: None}
        self._synced: Names = {self.root: None}
        self._waiting: list[tuple[str, Operation, Content | None]] = []
        """Changes of names that are not synced: the folder, the operation, the file."""

    def apply(self, operation: Operation) -> None:
        """Carry out an operation."""
        what, path = operation.what, operation.path
        if what == "sync":
            if (content := self.names.get(path)) is not None:
                content.synced = bytes(content.now)
            else:
                self._sync_names(path)
        elif what == "sync all":
            for file in filter(None, self.names.values()):
                file.synced = bytes(file.now)
            for folder in {folder for folder, _, _ in self._waiting}:
                self._sync_names(folder)
        elif what == "content":
            if (content := self.names.get(path)) is not None:
                content.now = bytearray(operation.data)
        elif what in ("write", "truncate"):
            content = self.names[path]
            assert content is not None
            if what == "truncate":
                del content.now[operation.place :]
            content.now.extend(bytes(max(operation.place + len(operation.data) - len(content.now), 0)))
            content.now[operation.place : operation.place + len(operation.data)] = operation.data
        elif what in ("create", "folder", "rename", "remove"):
            content = Content() if what == "create" else self.names.get(path)
            _change(self.names, operation, content)
            self._waiting.append((path.rpartition("/")[0], operation, content))

    def after_a_cut(self, random: np.random.Generator | None) -> dict[str, bytes | None]:
        """What is there afterwards: only what was synced, or, with `random`, also some of the rest."""
        names, kept = dict(self._synced), dict[str, int]()
        for folder in {folder for folder, _, _ in self._waiting}:
            count = sum(folder == each for each, _, _ in self._waiting)
            kept[folder] = int(random.integers(count + 1)) if random is not None else 0
        for folder, operation, content in self._waiting:
            if kept[folder] > 0:
                kept[folder] -= 1
                _change(names, operation, content)
        found: dict[str, bytes | None] = {}
        for path in sorted(names):
            if path == self.root or path.rpartition("/")[0] in found:
                content = names[path]
                found[path] = None if content is None else _some(content, random)
        return found

    def as_it_is(self) -> dict[str, bytes | None]:
        """What a process sees, and what is there after it was killed."""
        return {path: None if content is None else bytes(content.now) for path, content in sorted(self.names.items())}

    def _sync_names(self, folder: str) -> None:
        for waiting in [each for each in self._waiting if each[0] == folder]:
            _change(self._synced, *waiting[1:])
            self._waiting.remove(waiting)


def _change(names: Names, operation: Operation, content: Content | None) -> None:
    """Change a name; the folder that it is in may be lost, and it with it."""
    if operation.what in ("create", "folder"):
        names[operation.path] = content
    elif operation.what == "remove":
        names.pop(operation.path, None)
    elif content is not None:
        names.pop(operation.path, None)
        names[operation.other] = content
    else:
        for path in [path for path in names if path == operation.path or path.startswith(f"{operation.path}/")]:
            names[operation.other + path.removeprefix(operation.path)] = names.pop(path)


def _some(content: Content, random: np.random.Generator | None) -> bytes:
    """The bytes of a file after a cut: as synced, as written, cut short, or zeros in place of the last ones."""
    now = bytes(content.now)
    if random is None or now == content.synced:
        return content.synced
    kept = int(random.integers(len(now) + 1))
    return (content.synced, now, now[:kept], now[:kept] + bytes(len(now) - kept))[int(random.integers(4))]


def write(state: dict[str, bytes | None], root: str, folder: Path) -> None:
    """Make a folder hold such a state."""
    for path, content in state.items():
        target = folder / path.removeprefix(root).lstrip("/")
        if content is None:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(content)


def replayed(operations: Iterable[Operation], root: Path) -> Disk:
    """A disk after all of some operations."""
    disk = Disk(root)
    for operation in operations:
        disk.apply(operation)
    return disk
