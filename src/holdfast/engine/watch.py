"""Interfaces to a run while it trains: the log of its scores, and a watch that may ask it to stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from holdfast.engine.ranks import Ranks
from holdfast.types import Array, Score, Stage

AGREE_STEPS, AGREE_SECONDS = 16, 0.5
"""With several ranks, the interval (in steps, and in seconds' worth of steps) at which they agree whether to stop."""


class Log(Protocol):
    """The log to which scores are appended."""

    def add(self, scores: Sequence[tuple[Score, Array]]) -> None:
        """Append scores that were taken together, each with the predictions behind it, which may be empty."""

    def size(self) -> int:
        """The current size: a mark for `cut`."""

    def cut(self, size: int) -> None:
        """Drop everything after a mark."""

    def damage(self, size: int) -> str:
        """A description of damage to the log before a mark; empty if it is intact."""


class Watch:
    """Observes a run, and may ask it to stop. This one does nothing; others show a progress bar or write a log."""

    stopping: bool = False
    """Whether the run has been asked to stop."""

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins, or is resumed."""

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done. Reading the loss waits for the device, so do it rarely."""

    def observing(self) -> None:
        """A batch of `Algorithm.observe` begins."""

    def evaluating(self, name: str) -> None:
        """A batch of an evaluation begins, with the examples of this set."""


class NoLog:
    """A log that keeps nothing: for speed tests, and for every rank but the first."""

    def add(self, scores: Sequence[tuple[Score, Array]]) -> None:
        """Discard the scores."""

    def size(self) -> int:
        """Always 0."""
        return 0

    def cut(self, size: int) -> None:
        """There is nothing to cut."""

    def damage(self, size: int) -> str:
        """Always empty."""
        return ""


class AgreedStop:
    """Whether the run has been asked to stop. Ranks agree on the answer, so that all stop after the same step."""

    def __init__(self, watch: Watch, ranks: Ranks) -> None:
        self.watch, self.ranks = watch, ranks
        self.next, self.last, self.time = 0, 0, time.monotonic()

    def to_stop(self, step: int, now: bool = False) -> bool:
        """Whether to stop after this step."""
        if self.ranks.size == 1:
            return self.watch.stopping
        if step < self.next and not now:
            return False
        pace = (time.monotonic() - self.time) / max(step - self.last, 1)
        flag, pace = self.ranks.most(float(self.watch.stopping), pace)
        self.next = step + max(1, min(AGREE_STEPS, int(AGREE_SECONDS / max(pace, 1e-9))))
        self.last, self.time = step, time.monotonic()
        return flag > 0
