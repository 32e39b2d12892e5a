"""The runs of a store that are being worked on now: where each stands, and how long it may still take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UserError
from holdfast.experiments.store import Store, algorithm_of
from holdfast.reports.runs import read_progress

QUIET = 15.0
"""A run that has told nothing for so many seconds is said to be silent."""


@dataclass(frozen=True)
class Going:
    """A run that is being worked on."""

    id: str
    title: str
    stage: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None
    examples_per_second: float | None = None
    seconds_left: float | None = None
    doing: str = "beginning"


def look(path: Path, now: float | None = None) -> tuple[list[Going], Counter[str]]:
    """The runs of a store that go on now, and how many runs there are of each status."""
    if not path.is_dir():
        raise UserError(f"there is no store at {path}: `holdfast run --out {path}` makes one")
    going, counts = [], Counter[str]()
    for folder in Store(path).runs():
        status = folder.status()
        counts[status] += 1
        if status == "running":
            try:
                config = folder.config()
                title = f"{config['benchmark']['name']} · {algorithm_of(config)} · seed {config['seed']}"
            except (UserError, KeyError, TypeError):
                title = "its configuration is broken"
            going.append(standing(folder.id, title, read_progress(folder.path), time.time() if now is None else now))
    return going, counts


def standing(run: str, title: str, told: Mapping[str, Any], now: float) -> Going:
    """Where a run stands, from what it told last.

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
