"""The active runs of a store: the progress of each, and how long it may still take."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.errors import UserError
from holdfast.experiments.following import read_progress
from holdfast.experiments.store import RunFolder, Store
from holdfast.reports.runs import Run, read_run

QUIET = 15.0
"""After this many seconds without an update, a run is reported as silent."""


@dataclass(frozen=True)
class Going:
    """An active run."""

    id: str
    title: str
    stage: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None
    examples_per_second: float | None = None
    seconds_left: float | None = None
    doing: str = "beginning"


@dataclass(frozen=True)
class StoreProgress:
    """The state of a store at one moment."""

    going: tuple[Going, ...]
    """The active runs."""
    counts: Mapping[str, int]
    """The number of runs of each status."""
    broken: Mapping[str, str]
    """What is wrong with unreadable runs, by id."""


def look(path: Path, now: float | None = None) -> StoreProgress:
    """The active runs of a store, the number of runs of each status, and which are broken."""
    if not path.is_dir():
        raise UserError(f"no store exists at {path}: `holdfast run --out {shlex.quote(str(path))}` makes one")
    going, broken, counts = [], {}, Counter[str]()
    for folder in Store(path).runs():
        run = _read(folder)
        counts[run.status] += 1
        if run.status == "broken":
            broken[run.id] = run.problem
        elif run.status == "running":
            title = f"{run.benchmark} · {run.algorithm} · seed {run.seed}"
            going.append(standing(run.id, title, read_progress(run.path), time.time() if now is None else now))
    return StoreProgress(tuple(going), counts, broken)


def _read(folder: RunFolder) -> Run:
    """The status of a run. A finished run is read again only if one of its files changed."""
    if folder.status() != "done":
        return read_run(folder.path)
    files = (folder.path / name for name in ("config.json", "environment.json", "record.json"))
    return _read_done(folder.path, tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files))


@cache
def _read_done(path: Path, changed: tuple[int, ...]) -> Run:
    run = read_run(path)
    return Run(run.id, run.path, run.status, problem=run.problem)  # without its record: there may be thousands


def standing(run: str, title: str, told: Mapping[str, Any], now: float) -> Going:
    """The progress of a run, from what it wrote last.

    >>> told = {"stage": "b", "index": 1, "stages": 2, "step": 50, "steps": 100, "loss": 0.5, "evaluating": "",
    ...         "examples_per_second": 320.0, "began": 100.0, "done_at_begin": 0.0, "updated": 160.0}
    >>> found = standing("4af3c1", "patterns", told, now=160.0)
    >>> found.stage, found.seconds_left, found.doing  # three quarters took 60 s
    ('b (2 of 2)', 20.0, 'training')
    """
    try:
        done = (told["index"] + told["step"] / max(told["steps"], 1)) / told["stages"]
        before, elapsed = told["done_at_begin"], told["updated"] - told["began"]
        left = elapsed * (1 - done) / (done - before) if before is not None and done > before else None
        silent = now - told["updated"]
        doing = f"evaluating {told['evaluating']}" if told["evaluating"] else "training"
        return Going(
            run,
            title,
            f"{told['stage']} ({told['index'] + 1} of {told['stages']})",
            told["step"],
            told["steps"],
            told["loss"],
            told["examples_per_second"],
            None if left is None else max(left - silent, 0.0),
            f"{doing}, silent for {silent:.0f} s" if silent > QUIET else doing,
        )
    except (KeyError, TypeError):
        return Going(run, title)
