"""MLflow: loss, scores and settings of each run, under an experiment named as the benchmark.

It logs to `MLFLOW_TRACKING_URI` or, without one, to the folder `mlruns` beside the store. Each run carries the tag
`holdfast_id`, by which a resumed run continues the same one.
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

TAG = "holdfast_id"


class MLflow(Tracker):
    """Logs to MLflow."""

    def __init__(self) -> None:
        self._client: Any = None
        self._run, self._next, self._stage = "", 0.0, ""

    def open(self, folder: Path) -> None:
        """Start or continue the run."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow asks for it since it recommends a database
        try:
            from mlflow import MlflowClient  # type: ignore[attr-defined, unused-ignore]
        except ImportError:
            raise missing_extra("--log mlflow needs MLflow", "mlflow") from None
        uri = os.environ.get("MLFLOW_TRACKING_URI") or (folder.resolve().parent.parent / "mlruns").as_uri()
        self._client = client = MlflowClient(uri)
        config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
        name = config.get("benchmark", {}).get("name", "holdfast")
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else client.create_experiment(name)
        known = client.search_runs([experiment], f"tags.`{TAG}` = '{folder.name}'")
        if known:
            self._run = known[0].info.run_id
            client.update_run(self._run, status="RUNNING")
            return
        self._run = client.create_run(experiment, tags={TAG: folder.name}, run_name=folder.name).info.run_id
        for owner, own in (("benchmark", config.get("benchmark", {})), ("model", config.get("model", {}))):
            for key, value in own.items():
                client.log_param(self._run, f"{owner}.{key}", value)
        client.log_param(self._run, "seed", config.get("seed"))

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins: its loss has its own curve."""
        self._stage, self._next = f"{index + 1:02d} {stage.name}", 0.0

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + SECONDS
            self._client.log_metric(self._run, f"loss/{self._stage}", float(loss), step=stage_step)

    def score(self, score: Score) -> None:
        """A score was taken."""
        self._client.log_metric(self._run, f"{score.split}/{score.name}", score.score, step=score.step)

    def close(self) -> None:
        """Mark the run as ended."""
        self._client.set_terminated(self._run)
