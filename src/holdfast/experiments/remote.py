"""A store elsewhere: on an object store, or any file system that fsspec knows, by its address (s3://bucket/runs).

Runs work on a folder of this machine, their copy of the store. What a run needs is copied down before it begins, and
what it made is copied up when it ends: a record last, so that a run which has one is whole. Checkpoints go up when a
run is stopped or fails, not while it runs; a machine that is lost takes those since with it. No lock reaches across
machines: two plans that share such a store may both make a run, which gives the same record twice.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from holdfast.benchmarks.source import cache_folder
from holdfast.errors import RunError, UserError
from holdfast.experiments.config import Request
from holdfast.experiments.store import Store

LIGHT = ("config.json", "environment.json", "scores.jsonl", "record.json")
"""What tables and reports are made of."""
LAST = "record.json"
OURS = ("lock", "progress.json")
"""Files that mean nothing elsewhere."""


def is_remote(name: str) -> bool:
    """Whether the name of a store is an address.

    >>> is_remote("s3://bucket/runs"), is_remote("runs")
    (True, False)
    """
    return "://" in name


def local_copy(address: str) -> Store:
    """The folder of this machine that stands for a store elsewhere."""
    return Store(cache_folder() / "stores" / hashlib.blake2b(address.encode(), digest_size=8).hexdigest())


class Remote:
    """A store elsewhere, and how runs are copied from it and to it."""

    def __init__(self, address: str) -> None:
        try:
            fsspec: Any = importlib.import_module("fsspec")
        except ImportError:
            raise UserError(f"a store at {address} needs fsspec: pip install fsspec, and what it says") from None
        try:
            self.files, self.root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise UserError(f"there is no way to {address}: {error}") from None
        self.address = address

    def done(self) -> set[str]:
        """The ids of the runs that are done there."""
        return {str(path).split("/")[-2] for path in self._try(self.files.glob, f"{self.root}/*/{LAST}")}

    def down(self, run: str, store: Store, only: Sequence[str] = ()) -> None:
        """Copy what a run has there and this machine has not."""
        base = f"{self.root}/{run}"
        if not self._try(self.files.exists, base):
            return
        names = [str(path).removeprefix(base).lstrip("/") for path in self._try(self.files.find, base)]
        folder = store.folder(run).path
        for name in _record_last(name for name in names if not only or name in only):
            target = folder / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = target.with_name(f".{target.name}.writing")
                self._try(self.files.get_file, f"{base}/{name}", str(temporary))
                temporary.replace(target)

    def up(self, run: str, store: Store, only: Sequence[str] = ()) -> None:
        """Copy what this machine has of a run, and take away the checkpoints of one that is done."""
        folder, base = store.folder(run).path, f"{self.root}/{run}"
        found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        names = [name for name in found if name not in OURS and not Path(name).name.startswith(".")]
        for name in _record_last(name for name in names if not only or name in only):
            self._try(self.files.makedirs, f"{base}/{name}".rpartition("/")[0], exist_ok=True)
            self._try(self.files.put_file, str(folder / name), f"{base}/{name}")
        if LAST in names and self._try(self.files.exists, f"{base}/checkpoints"):
            self._try(self.files.rm, f"{base}/checkpoints", recursive=True)

    def fetch(self, request: Request, run: str, store: Store) -> None:
        """Copy down what one run needs: what it did so far, and the weights that it begins with."""
        self.down(run, store)
        if request.start:
            self.down(request.start.partition("@")[0], store)

    def _try(self, call: Any, *given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        except OSError as error:
            raise RunError(f"the store {self.address} cannot be reached: {error}") from error


def _record_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name == LAST, name))
