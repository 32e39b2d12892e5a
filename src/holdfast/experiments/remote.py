"""A remote store: on an object store or any file system that fsspec supports, by its address (s3://bucket/runs).

Runs use a local folder, their copy of the store. What a run needs is downloaded before it starts, and
its results are uploaded when it ends, the record last, so that a run with a record is complete. Checkpoints are
uploaded when a run is stopped or fails, not while it runs; if a machine is lost, so are those since.

A run is locked by an object `lock` in its folder. Its holder creates it, which the store must refuse if it exists,
and rewrites it at intervals: a lock that no longer changes belongs to a machine that is gone, and is removed.
Should two machines take it at the same moment, both execute the run and write the same record.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.benchmarks.cache import cache_folder
from holdfast.errors import RunError, Stopped, UserError
from holdfast.experiments.config import Config
from holdfast.experiments.store import Store

LIGHT = ("config.json", "environment.json", "scores.jsonl", "record.json")
"""The files that tables and reports need."""
LAST = "record.json"
LOCK = "lock"
OURS = (LOCK, "progress.json")
"""Files that are meaningless on another machine."""
BEAT, STILL = 20.0, 120.0
"""The seconds after which the holder rewrites its lock, and after which an unchanged lock is considered abandoned."""
PAUSE = 1.0
"""The seconds between two checks of a lock that another machine holds."""


def is_remote(name: str) -> bool:
    """Whether the name of a store is an address.

    >>> is_remote("s3://bucket/runs"), is_remote("runs")
    (True, False)
    """
    return "://" in name


def local_copy(address: str) -> Store:
    """The local copy of a remote store."""
    return Store(cache_folder() / "stores" / hashlib.blake2b(address.encode(), digest_size=8).hexdigest())


class Remote:
    """A remote store, and how runs are copied from and to it."""

    def __init__(self, address: str) -> None:
        try:
            fsspec: Any = importlib.import_module("fsspec")
        except ImportError:
            raise UserError(
                f"a store at {address} needs fsspec: pip install fsspec, and the package that it names"
            ) from None
        try:
            self.files, self.root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise UserError(f"{address} cannot be opened: {error}") from None
        self.address = address

    def done(self) -> set[str]:
        """The ids of the runs that are done in the remote store."""
        return {str(path).split("/")[-2] for path in self._try(self.files.glob, f"{self.root}/*/{LAST}")}

    def down(self, run: str, store: Store, only: Sequence[str] = ()) -> None:
        """Download the files of a run that this machine does not have."""
        base = f"{self.root}/{run}"
        if not self._try(self.files.exists, base):
            return
        names = [str(path).removeprefix(base).lstrip("/") for path in self._try(self.files.find, base)]
        folder = store.folder(run).path
        for name in _record_last(name for name in names if name not in OURS and (not only or name in only)):
            target = folder / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = target.with_name(f".{target.name}.writing")
                self._try(self.files.get_file, f"{base}/{name}", str(temporary))
                temporary.replace(target)

    def up(self, run: str, store: Store, only: Sequence[str] = ()) -> None:
        """Upload what this machine has of a run, and remove the checkpoints that a finished run no longer has."""
        folder, base = store.folder(run).path, f"{self.root}/{run}"
        found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        names = [name for name in found if name not in OURS and not Path(name).name.startswith(".")]
        for name in _record_last(name for name in names if not only or name in only):
            self._try(self.files.makedirs, f"{base}/{name}".rpartition("/")[0], exist_ok=True)
            self._try(self.files.put_file, str(folder / name), f"{base}/{name}")
        if LAST in names and not only and self._try(self.files.exists, f"{base}/checkpoints"):
            for path in map(str, self._try(self.files.find, f"{base}/checkpoints")):
                if path.removeprefix(base).lstrip("/") not in found:
                    self._try(self.files.rm, path)

    def fetch(self, config: Config, store: Store) -> None:
        """Download what a run needs: its earlier progress, and the weights that it starts from."""
        self.down(config.id, store)
        if config.after:
            self.down(config.after, store)

    @contextmanager
    def lock(self, run: str, waiting: Callable[[str], None], stopping: Callable[[], bool]) -> Iterator[None]:
        """Lock a run. If another machine holds it, wait; `waiting` is called once with the name of the holder."""
        path, own = f"{self.root}/{run}/{LOCK}", _Holder()
        told, seen, since = False, b"", time.monotonic()
        while not self._create(path, own.beat()):
            if (found := self._read(path)) != seen:
                seen, since = found, time.monotonic()  # by our own clock: those of other machines may be wrong
            if seen and (_gone(seen) or time.monotonic() - since > STILL):
                if self._read(path) == seen:
                    self._remove(path)
                continue
            if seen and not told:
                told = True
                waiting(_name(seen))
            if stopping():
                raise Stopped
            time.sleep(PAUSE)
        over = threading.Event()
        beating = threading.Thread(target=self._keep, args=(path, own, over), daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()
            if own.wrote(self._read(path)):  # otherwise another machine assumed that this one was gone
                self._remove(path)

    def _create(self, path: str, text: bytes) -> bool:
        """Whether the object is new: S3, GCS, Azure and folders all refuse to create one that exists."""
        self._try(self.files.makedirs, path.rpartition("/")[0], exist_ok=True)
        for last in (False, False, True):
            try:
                self._write_new(path, text)
            except FileExistsError:
                return False
            except OSError as error:  # a store may raise its own error, or require another attempt
                if self._try(self.files.exists, path):
                    return False
                if last:
                    raise RunError(f"the store {self.address} cannot be written to: {error}") from error
                time.sleep(PAUSE)
            else:
                return True
        raise AssertionError

    def _write_new(self, path: str, text: bytes) -> None:
        if "file" in (self.files.protocol if isinstance(self.files.protocol, tuple) else (self.files.protocol,)):
            with self.files.open(path, "xb") as file:
                file.write(text)
        else:
            self.files.pipe_file(path, text, mode="create")

    def _read(self, path: str) -> bytes:
        try:
            found: bytes = self.files.cat_file(path)
        except OSError:  # it was removed
            return b""
        return found

    def _remove(self, path: str) -> None:
        with suppress(OSError):
            self.files.rm_file(path)

    def _keep(self, path: str, own: _Holder, over: threading.Event) -> None:
        while not over.wait(BEAT):
            with suppress(OSError):  # the next attempt may succeed
                self.files.pipe_file(path, own.beat())

    def _try(self, call: Any, *given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        except OSError as error:
            raise RunError(f"the store {self.address} cannot be reached: {error}") from error


class _Holder:
    """The holder of a lock: this process, with a count of its updates."""

    def __init__(self) -> None:
        self.beats, self.last = 0, b""

    def beat(self) -> bytes:
        """The content of the lock at this moment."""
        self.beats += 1
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        told = {"process": os.getpid(), "machine": socket.gethostname(), "seen": since, "beats": self.beats}
        self.last = json.dumps(told).encode()
        return self.last

    def wrote(self, lock: bytes) -> bool:
        """Whether a lock has the content that this holder wrote last."""
        return lock == self.last


def _told(lock: bytes) -> dict[str, Any]:
    try:
        found = json.loads(lock)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _name(lock: bytes) -> str:
    """The holder of a lock, as text for messages.

    >>> _name(b'{"process": 7, "machine": "one", "seen": "12:00"}'), _name(b"?")
    ('process 7 on one, last seen 12:00', 'another machine')
    """
    told = _told(lock)
    if not {"process", "machine", "seen"} <= told.keys():
        return "another machine"
    return f"process {told['process']} on {told['machine']}, last seen {told['seen']}"


def _gone(lock: bytes) -> bool:
    """Whether its holder was a process of this machine that has ended."""
    told = _told(lock)
    if told.get("machine") != socket.gethostname() or not isinstance(told.get("process"), int):
        return False
    try:
        os.kill(told["process"], 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _record_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name == LAST, name))
