"""The weights that finished runs keep in a store, and which of them no other run starts from."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast import registry
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.store import RunFolder, Store
from holdfast.files import open_own


@dataclass(frozen=True)
class Weights:
    """The weights of a finished run, and why they are kept; empty if nothing needs them."""

    run: RunFolder
    algorithm: str
    bytes: int
    needed: str


def weights_of(store: Store) -> Iterator[Weights]:
    """The weights of all finished runs; active runs are left alone."""
    runs = store.runs()
    starts = _starts(runs)
    for run in runs:
        found = sum(path.stat().st_size for path in _files(run))
        if not found or run.status() != "done":
            continue
        try:
            record = run.record()
        except UserError:  # nothing is deleted from a run that cannot be read
            continue
        assert record is not None
        yield Weights(run, record.algorithm, found, _needed(run, starts))


def drop(found: Iterable[Weights]) -> list[Weights]:
    """Delete the weights that nothing needs; runs that a process holds are left alone."""
    dropped = []
    for each in found:
        if each.needed:
            continue
        with open_own(each.run.path / "lock", "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            each.run.weights.unlink(missing_ok=True)
            shutil.rmtree(each.run.stages, ignore_errors=True)
            shutil.rmtree(each.run.checkpoints, ignore_errors=True)
        dropped.append(each)
    return dropped


def _files(run: RunFolder) -> list[Path]:
    found = (run.weights, *(path for folder in (run.stages, run.checkpoints) for path in folder.glob("*.safetensors")))
    return [path for path in found if path.is_file()]


def _starts(runs: Iterable[RunFolder]) -> dict[str, str]:
    """For the ids of runs, another run that starts from their weights."""
    found = {}
    for run in runs:
        try:
            start = str(run.config().get("start", ""))
        except UserError:
            continue
        if start:
            found[start.partition("@")[0]] = run.id
    return found


def _needed(run: RunFolder, starts: dict[str, str]) -> str:
    """Why a run's weights are needed: a run starts from them, or its measures need one that will."""
    if run.id in starts:
        return f"run {starts[run.id]} starts from them"
    try:
        with registry.of_records():
            config = resolve(Request.from_command(run.command()))
        wanted = [name for name, need in config.benchmark.needs(config.title).items() if need.after is not None]
    except (UserError, KeyError, TypeError, ValueError, StopIteration):
        # It used something that no longer exists, or code of a user, which is not executed because a store names it.
        return "its command cannot be read alone, and it kept weights after its stages" if run.stages.is_dir() else ""
    return f"its measure {wanted[0]} needs a run that starts from them" if wanted else ""
