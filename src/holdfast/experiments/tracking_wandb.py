"""Weights & Biases: loss, scores and configuration of each run.

It writes offline, to `<id>/wandb`, unless `WANDB_MODE=online` is set; `wandb sync` uploads it later. The run has the
same id there, so a resumed run continues the same one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import missing_extra
from holdfast.experiments.store import read_json
from holdfast.experiments.trackers import SECONDS, Tracker
from holdfast.types import Score, Stage

if TYPE_CHECKING:
    from torch import Tensor


class WeightsAndBiases(Tracker):
    """Logs to Weights & Biases."""

    def __init__(self) -> None:
        self._run: Any = None
        self._next, self._stage = 0.0, ""

    def open(self, folder: Path) -> None:
        """Start or continue the run."""
        try:
            import wandb
        except ImportError:
            raise missing_extra("--log wandb needs Weights & Biases", "wandb") from None
        config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
        os.environ.setdefault("WANDB_MODE", "offline")
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "holdfast"),
            id=folder.name,
            name=folder.name,
            dir=str(folder),
            config=config,
            resume="allow",
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
        )
        self._run.define_metric("loss/*", step_metric="stage_step")
        for split in ("validation", "test"):
            self._run.define_metric(f"{split}/*", step_metric="step")

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins: its loss has its own curve."""
        self._stage, self._next = f"{index + 1:02d} {stage.name}", 0.0

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + SECONDS
            self._run.log({f"loss/{self._stage}": float(loss), "stage_step": stage_step})

    def score(self, score: Score) -> None:
        """A score was taken."""
        self._run.log({f"{score.split}/{score.name}": score.score, "step": score.step})

    def close(self) -> None:
        """Write what is still buffered."""
        self._run.finish()
