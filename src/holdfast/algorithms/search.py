"""Choosing among paths of modules by validation data, shared by RPSnet and MNTDP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from holdfast.algorithms.importance import Named, copies
from holdfast.errors import UserError
from holdfast.models.modular import ModulePath, as_lists, as_path
from holdfast.types import Stage, Stream

if TYPE_CHECKING:
    from holdfast.algorithms.base import Fit
    from holdfast.engine.learner import Learner


class Search:
    """Fits each of several paths from the same weights and keeps the best; it can be saved during a fit."""

    def __init__(self, paths: list[ModulePath], origin: Named) -> None:
        self.paths, self.origin = paths, origin
        self.tried, self.winner, self.score = 0, 0, -1.0
        self.best: Named = {}

    @property
    def path(self) -> ModulePath:
        """The path that is being tried."""
        return self.paths[min(self.tried, len(self.paths) - 1)]

    def run(self, learner: Learner, stage: Stage, fit: Fit, switch: Callable[[ModulePath], None]) -> ModulePath:
        """Find the best path by the stage's validation data (ties go to the earliest); the learner gets its weights."""

        def start() -> None:
            learner.model.load_state_dict(self.origin)
            switch(self.path)

        while self.tried < len(self.paths):
            fit(start)
            if (score := validation_score(learner, stage)) > self.score or not self.best:
                self.winner, self.score, self.best = self.tried, score, copies(learner.model.state_dict())
            self.tried += 1
        learner.model.load_state_dict(self.best)
        return self.paths[self.winner]

    @property
    def nbytes(self) -> int:
        """The bytes of the weights that it keeps."""
        return sum(value.nbytes for value in (*self.origin.values(), *self.best.values()))

    def state_dict(self) -> dict[str, Any]:
        """The paths, the progress, and the initial and best weights."""
        found = {"tried": self.tried, "winner": self.winner, "score": self.score}
        return found | {"paths": [as_lists(path) for path in self.paths], "origin": self.origin, "best": self.best}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Search:
        """Restore a saved state."""
        search = cls([as_path(path) for path in state["paths"]], state["origin"])
        search.tried, search.winner, search.score = state["tried"], state["winner"], state["score"]
        search.best = state["best"]
        return search


def validation_score(learner: Learner, stage: Stage) -> float:
    """The mean score on the stage's validation sets; every rank scores all of them, so that all choose alike."""
    learner.model.eval()
    scores = []
    for chosen in stage.validation:
        task, found = learner.tasks[chosen.task], []
        for start in range(0, len(chosen.ids), 256):
            batch = learner.data.fetch(chosen.ids[start : start + 256], learner.device)
            with torch.no_grad():
                (output,) = learner.forward(batch)
            found.append(task.predictions(output, batch.parts[0]).cpu())
        scores.append(task.score(torch.cat(found).numpy(), learner.data.targets(chosen.ids).numpy()))
    learner.train_mode()
    return sum(scores) / len(scores)


def refuse_without_validation(name: str, stream: Stream) -> None:
    """Raise a UserError, before training, if a stage has no validation data to choose a path by."""
    for stage in stream.stages:
        if not stage.validation:
            raise UserError(
                f"{name} chooses by validation data, but stage {stage.name!r} has none: choose another algorithm"
            )
