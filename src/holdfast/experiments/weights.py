"""The weights that finished runs keep in a store, and which of them no other run begins with."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.store import RunFolder, Store
from holdfast.files import open_own


@dataclass(frozen=True)
class Weights:
    """The weights of a finished run, and why they are kept; empty where nothing needs them."""

    run: RunFolder
    algorithm: str
    bytes: int
    needed: str


def weights_of(store: Store) -> Iterator[Weights]:
    """The weights of all finished runs; those of runs that are under way are no concern of anyone else."""
    runs = store.runs()
    starts = _starts(runs)
    for run in runs:
        found = sum(path.stat().st_size for path in _files(run))
        if not found or run.status() != "done":
            continue
        try:
            record = run.record()
        except UserError:  # whatever it is, it is not ours to empty
            continue
        assert record is not None
        yield Weights(run, record.algorithm, found, _needed(run, starts))


def drop(found: Iterable[Weights]) -> list[Weights]:
    """Delete the weights that nothing needs; a run that a process holds is left alone."""
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
    """By the ids of runs, another run that begins with their weights."""
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
    """Why a run's weights are needed: a run begins with them, or its measures want one that will."""
    if run.id in starts:
        return f"run {starts[run.id]} begins with them"
    try:
        config = resolve(Request.from_command(run.command()))
        wanted = [name for name, need in config.benchmark.needs(config.title).items() if need.after is not None]
    except (UserError, KeyError, TypeError, ValueError, StopIteration):
        # It was made with what is no longer there, such as a user's algorithm.
        return "its command can no longer be read, and it kept its stages" if run.stages.is_dir() else ""
    return f"its measure {wanted[0]} takes a run that begins with them" if wanted else ""
