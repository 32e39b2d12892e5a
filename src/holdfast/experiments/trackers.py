"""Trackers that follow a run: `holdfast watch` through a small file, and TensorBoard, W&B and MLflow.

They do not affect a run: they are not part of its id, and the only value that they read from the
device is the loss, at most once a second.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.engine.files import temporary_name
from holdfast.engine.watch import Log, Watch
from holdfast.errors import UserError, missing_extra, nearest
from holdfast.experiments.following import PROGRESS
from holdfast.settings import shown
from holdfast.types import Array, Score, Stage

if TYPE_CHECKING:
    from torch import Tensor

SECONDS = 1.0
"""The minimum number of seconds between two reports of progress."""


class Tracker(Watch):
    """Follows runs while they train: extend it, override the methods that you need, and pass it to `run(log=[...])`.

    It follows one run after another, each from `open` to `close`. Set `stopping` to ask the run to save and stop.
    """

    def open(self, folder: Path) -> None:
        """A run starts or resumes; `folder` is its folder in the store, named by its id."""

    def score(self, score: Score) -> None:
        """A score was taken."""

    def close(self) -> None:
        """The run ends: done, stopped or failed."""


class Several(Watch):
    """Several trackers as one: each is informed of everything, and any of them may ask to stop."""

    def __init__(self, *watches: Watch) -> None:
        self.watches = watches

    @property
    def stopping(self) -> bool:  # type: ignore[override]
        """Whether one of them asks for a stop."""
        return any(watch.stopping for watch in self.watches)

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins."""
        for watch in self.watches:
            watch.stage(index, stages, stage, steps)

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done."""
        for watch in self.watches:
            watch.step(stage_step, loss)

    def observing(self) -> None:
        """A batch is observed."""
        for watch in self.watches:
            watch.observing()

    def evaluating(self, name: str) -> None:
        """An evaluation begins."""
        for watch in self.watches:
            watch.evaluating(name)


class Progress(Tracker):
    """The progress of a run, in `<id>/progress.json`, written at most once a second.

    The file is only for display, so it is renamed into place but not fsynced, and a full disk does not stop the run.
    `began` and `done_at_begin` refer to this try of the run: from them, a reader estimates the time left.
    """

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.path, self._seconds, self._next = folder / PROGRESS, seconds, 0.0
        self._now: dict[str, Any] = {"began": time.time(), "done_at_begin": None}
        self._size, self._from = 1, (0, time.monotonic())

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins or resumes; the first step shows where."""
        self._now |= {"stage": stage.name, "index": index, "stages": stages, "step": 0, "steps": steps}
        self._now |= {"evaluating": "", "loss": None, "examples_per_second": None}
        self._size, self._from = min(stage.training.batch_size, len(stage.train)), (-1, time.monotonic())
        self._write()

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done."""
        now = time.monotonic()
        if now < self._next:
            return
        before, since = self._from
        self._now |= {"step": stage_step, "evaluating": "", "loss": _finite(float(loss))}
        if self._now["done_at_begin"] is None:
            done = (self._now["index"] + (stage_step - 1) / max(self._now["steps"], 1)) / self._now["stages"]
            self._now["done_at_begin"] = done
        if before >= 0 and now > since:
            self._now["examples_per_second"] = (stage_step - before) * self._size / (now - since)
        self._from = stage_step, now
        self._write()

    def evaluating(self, name: str) -> None:
        """An evaluation begins."""
        self._now |= {"evaluating": name}
        self._from = -1, time.monotonic()  # its time does not count as training
        if time.monotonic() >= self._next:
            self._write()

    def _write(self) -> None:
        self._next = time.monotonic() + self._seconds
        temporary = temporary_name(self.path)
        try:
            temporary.write_text(json.dumps(self._now | {"updated": time.time()}), encoding="utf-8")
            temporary.replace(self.path)
        except OSError:
            temporary.unlink(missing_ok=True)


class TensorBoard(Tracker):
    """Loss and scores as TensorBoard's events, in `<id>/tensorboard`.

    Each stage has its own curve of the loss, over the steps of that stage, so that a run that resumes after a stop
    continues the same curve.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._writer: Any = None
        self._seconds, self._next, self._stage = seconds, 0.0, ""

    def open(self, folder: Path) -> None:
        """Start or continue the run's event file."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing_extra("--log tensorboard needs TensorBoard", "tensorboard") from None
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins."""
        self._stage, self._next = f"{index + 1:02d} {stage.name}", 0.0

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + self._seconds
            self._writer.add_scalar(f"loss/{self._stage}", float(loss), stage_step)

    def score(self, score: Score) -> None:
        """A score was taken."""
        self._writer.add_scalar(f"{score.split}/{score.name}", score.score, score.step)

    def close(self) -> None:
        """Write what is still buffered."""
        self._writer.close()


def _from(module: str, name: str) -> Callable[[], Tracker]:
    """A tracker in a file of its own, imported only when it is requested."""

    def made() -> Tracker:
        found: Tracker = getattr(import_module(f"holdfast.experiments.{module}"), name)()
        return found

    return made


TRACKERS: dict[str, Callable[[], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": _from("tracking_wandb", "WeightsAndBiases"),
    "mlflow": _from("tracking_mlflow", "MLflow"),
}


def open_trackers(asked: Sequence[str | Tracker], folder: Path) -> list[Tracker]:
    """The trackers of a run in `folder`, from names or objects.

    >>> open_trackers(["tensorbord"], Path("runs"))
    Traceback (most recent call last):
    holdfast.errors.UserError: unknown log 'tensorbord': did you mean tensorboard?
    """
    check_trackers(asked)
    found = [TRACKERS[each]() if isinstance(each, str) else each for each in dict.fromkeys(asked)]
    for tracker in found:
        tracker.open(folder)
    return found


def check_trackers(asked: Sequence[str | Tracker]) -> None:
    """Raise a UserError for unknown names, and for objects that are not trackers."""
    for each in asked:
        if isinstance(each, str) and each not in TRACKERS:
            raise UserError(f"unknown log {each!r}: {nearest(each, TRACKERS)}")
        if not isinstance(each, str | Tracker):
            raise UserError(
                f"log holds {shown(each)}: give names such as 'tensorboard', or objects of holdfast.Tracker"
            )


class TrackedLog:
    """A score log that also passes scores to the trackers."""

    def __init__(self, log: Log, trackers: Sequence[Tracker]) -> None:
        self.log, self.trackers = log, trackers

    def add(self, scores: Sequence[tuple[Score, Array]]) -> None:
        """Append scores, then pass them on."""
        self.log.add(scores)
        for score, _ in scores:
            for tracker in self.trackers:
                tracker.score(score)

    def size(self) -> int:
        """The bytes that the log holds."""
        return self.log.size()

    def cut(self, size: int) -> None:
        """Truncate the log."""
        self.log.cut(size)

    def damage(self, size: int) -> str:
        """A description of damage to the log."""
        return self.log.damage(size)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
