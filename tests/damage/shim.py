"""Watches what a process does to files, and makes single operations fail: `shim.c`, loaded before the C library.

A program that wants it calls `start_again` first, which builds the shim and starts the program anew with it. Each
`child` is then a fork in which the shim has its own log and its own failure.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("shim.c")


@dataclass(frozen=True)
class Operation:
    """What was done to a file: create, write, truncate, sync, rename, remove or folder; or read, for one opened.

    `content` is all that a file holds when it is closed, for it may have been written through mapped memory; `sync all`
    is for the whole disk.
    """

    what: str
    path: str
    other: str = ""
    """The new path of what is renamed."""
    place: int = 0
    """Where the bytes begin, or the length to which a file is cut."""
    data: bytes = b""


def read_log(path: Path) -> Iterator[Operation]:
    """The operations of a log, in order.

    Where a library renames a file by a system call of its own, the file's number shows it.
    """
    names: dict[str, str] = {}
    with path.open("rb") as file:
        while line := file.readline():
            what, where, other, place, size = line.decode().rstrip("\n").split("\t")
            if what in ("write", "truncate", "sync", "content") and (before := names.get(other, where)) != where:
                yield Operation("rename", before, where)
            if what in ("create", "write", "truncate", "sync", "content"):
                names[other] = where
            elif what in ("rename", "remove"):  # the number of a file that is gone may become that of another
                gone = other if what == "rename" else where
                names = {number: name for number, name in names.items() if name != gone}
            if what == "rename":
                names |= {number: other for number, name in names.items() if name == where}
            yield Operation(what, where, other if what == "rename" else "", int(place), file.read(int(size)))


def compiler() -> str:
    """The C compiler; empty if there is none, or if this is no Linux."""
    return (shutil.which("cc") or "") if sys.platform == "linux" else ""


def start_again() -> None:
    """Start this program again with the shim, unless it is there."""
    if "SHIM_FOLDER" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="shim-")
    library = Path(folder) / "shim.so"
    try:
        subprocess.run([compiler(), "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        environment = os.environ | {"LD_PRELOAD": str(library), "SHIM_FOLDER": folder, "OMP_NUM_THREADS": "1"}
        raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)
    finally:
        shutil.rmtree(folder)


def child(job: Callable[[], Any], root: Path, log: Path | None = None, fail: str = "") -> Any:
    """What a job gives, as JSON, in a process of its own.

    Operations below `root` are logged; with `fail`, such as `7:EIO` or `7+:ENOSPC`, the seventh of them fails, or all
    from the seventh on.
    """
    ours, theirs = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(ours)
        number, _, name = fail.partition(":")
        settings = {"SHIM_ROOT": str(root.resolve()), "SHIM_LOG": str(log or "")}
        settings["SHIM_FAIL"] = f"{number}:{getattr(errno, name)}" if fail else ""
        os.environ.update({name: value for name, value in settings.items() if value})
        ctypes.CDLL(None).shim_begin()
        try:
            found = job()
        except BaseException as error:  # whatever it is, the parent must see it
            found = f"TRACEBACK {type(error).__name__}: {error}"
        with os.fdopen(theirs, "w") as file:
            json.dump(found, file)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as file:
        told = file.read()
    os.waitpid(pid, 0)
    return json.loads(told) if told else "TRACEBACK it died"
