"""One run, from its configuration to its record: begun, resumed, or found done."""

from __future__ import annotations

import math
import platform
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import torch

from holdfast.data.order import mix
from holdfast.engine import checkpoint
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.files import sweep, write_json
from holdfast.engine.learner import Learner
from holdfast.engine.loop import Log, Position, Stopped, Watch, refuse, train
from holdfast.engine.ranks import Ranks
from holdfast.errors import RunError, UserError
from holdfast.experiments.config import Prepared
from holdfast.experiments.store import Record, RunFolder, ScoreFile, Store
from holdfast.models.base import Inputs
from holdfast.types import Array, Score
from holdfast.version import __version__

DEVICE_SHARE = 0.5
"""Data is put on a GPU as a whole where it takes at most this share of the memory that is free there."""


def run(
    prepared: Prepared,
    store: Store,
    *,
    device: str = "cpu",
    every_steps: int | None = None,
    every_seconds: float | None = 60.0,
    watch: Watch | None = None,
    waiting: Callable[[str], None] = lambda holder: None,
    ranks: Ranks | None = None,
) -> Record:
    """Carry out a run, or go on with it, or return its record if it is done.

    Where another process works on the same run, wait for it, and tell `waiting` who that is.
    """
    refuse(prepared.algorithms, prepared.setup.stream)
    ranks = ranks or Ranks()
    folder = store.folder(prepared.config.id)
    if not ranks.first:
        if ranks.agree(None) == "train":
            _train(prepared, folder, _NoLog(), None, device, watch, ranks)
        ranks.wait()
        return _done(folder)
    try:
        with folder.lock(waiting):
            record = folder.record()
            ranks.agree("train" if record is None else "done")
            if record is None:
                record = _first_rank(prepared, folder, device, (every_steps, every_seconds), watch, ranks)
            ranks.wait()
            return record
    except OSError as error:
        raise RunError(f"could not write to {error.filename or folder.path}: {checkpoint.reason(error)}") from error


def _first_rank(
    prepared: Prepared,
    folder: RunFolder,
    device: str,
    often: tuple[int | None, float | None],
    watch: Watch | None,
    ranks: Ranks,
) -> Record:
    config, log = prepared.config, ScoreFile(folder.path, prepared.config.predictions)
    sweep(folder.path)
    write_json(folder.path / "config.json", config.to_json())
    write_json(folder.path / "environment.json", environment(device, ranks))
    failure = folder.path / "failure.txt"
    checkpoints = Checkpoints(folder.checkpoints, every_steps=often[0], every_seconds=often[1])
    try:
        at, learner = _train(prepared, folder, log, checkpoints, device, watch, ranks)
    except (Stopped, KeyboardInterrupt, UserError):
        raise
    except Exception:
        failure.write_text(traceback.format_exc(), encoding="utf-8")
        raise
    scores = log.scores()
    measures = prepared.benchmark.summary(scores)
    record = Record(
        id=config.id,
        config=config.to_json(),
        environment=environment(device, ranks),
        summary={name: None if math.isnan(value) else float(value) for name, value in measures.items()},
        reasons={n: getattr(v, "reason", "not a number") for n, v in measures.items() if math.isnan(v)},
        scores=scores,
        cost={
            "steps": at.total,
            "seconds": at.seconds,
            "examples_forward": learner.examples_forward,
            "examples_backward": learner.examples_backward,
            "memory_bytes": sum(a.memory_bytes(learner) for a in prepared.algorithms),
            "parameters": sum(p.numel() for p in learner.model.parameters()),
        },
    )
    checkpoint.write(folder.weights, learner.model.state_dict())
    write_json(folder.path / "record.json", record.to_json())
    checkpoints.clear()
    failure.unlink(missing_ok=True)
    return record


def _train(
    prepared: Prepared,
    folder: RunFolder,
    log: Log,
    checkpoints: Checkpoints | None,
    device: str,
    watch: Watch | None,
    ranks: Ranks,
) -> tuple[Position, Learner]:
    learner = make_learner(prepared, device, ranks)
    checkpoints = checkpoints or Checkpoints(folder.checkpoints, writes=False)
    at = train(
        learner,
        prepared.setup.stream,
        prepared.algorithms,
        prepared.setup.protocol,
        log=log,
        checkpoints=checkpoints,
        watch=watch,
    )
    return at, learner


def make_learner(prepared: Prepared, device: str = "cpu", ranks: Ranks | None = None) -> Learner:
    """The learner of a run at its beginning: the same weights on every rank and machine."""
    place = find_device(device)
    setup, config = prepared.setup, prepared.config
    data = setup.data
    if place.type == "cuda" and data.nbytes <= DEVICE_SHARE * torch.cuda.mem_get_info(place)[0]:
        data = data.to(place)
    torch.default_generator.manual_seed(mix(config.seed, 0x1417))
    heads = {task.head: task.outputs for task in setup.tasks.values()}
    model = prepared.recipe.build(Inputs(setup.image), heads)
    model.to(torch.float64 if config.precision == "float64" else torch.float32)
    autocast = torch.bfloat16 if config.precision == "bfloat16" else None
    return Learner(model, data, setup.tasks, seed=config.seed, device=place, ranks=ranks, autocast=autocast)


def find_device(name: str) -> torch.device:
    """A device that is here, or a sentence about which ones are."""
    try:
        place = torch.device(name)
    except RuntimeError:
        raise UserError(f"there is no device {name!r}: give cpu, cuda or cuda:N") from None
    if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device {name!r} is not here: this machine has {torch.cuda.device_count()} CUDA devices")
    if place.type not in ("cpu", "cuda"):
        raise UserError(f"device {name!r} is not supported: give cpu, cuda or cuda:N")
    return place


def environment(device: str, ranks: Ranks) -> dict[str, Any]:
    """Where a run runs: what may explain a difference, and nothing that decides the result."""
    place = find_device(device)
    return {
        "holdfast": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "ranks": ranks.size,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


@contextmanager
def interruptible(watch: Watch) -> Iterator[None]:
    """Let Ctrl-C, or a termination, ask the run to save and stop; a second Ctrl-C stops it at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        if watch.stopping and number == signal.SIGINT:
            raise KeyboardInterrupt
        watch.stopping = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _NoLog:
    """The score log of every rank but the first."""

    def add(self, score: Score, predictions: Array) -> None:
        """The first rank writes."""

    def size(self) -> int:
        return 0

    def cut(self, size: int) -> None:
        """Nothing was written."""


def _done(folder: RunFolder) -> Record:
    record = folder.record()
    assert record is not None, "the first rank wrote the record before it came here"
    return record
