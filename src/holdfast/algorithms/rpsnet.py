"""RPSnet: every few stages a new random path of modules, the best of several, beside the paths before it.

Papers: Rajasegaran et al. 2019, "Random Path Selection for Continual Learning"; CFST with 9 layers of 8 modules, over
ResNet-18 and ViT, a new path every 2 stages, the best of 8 by validation data, 1000 kept examples and T = 2.
Equation: a layer gives its shared part plus the sum of module 0, the modules of earlier paths, and that of this path;
the loss is that of experience replay plus T^2 KL from the model of the last stage, over the units seen before.
Module 0, what layers share, the heads and this path's modules learn; the modules of earlier paths stay as they are.
Cost: `candidates` fits of a stage that begins a path, else one; each as replay and LwF together: one forward and one
backward pass over the new and as many kept examples, and the teacher's forward pass; more modules are on in time.
Memory: `capacity` examples, a copy of the model and, while a path is chosen, two more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, Fit
from holdfast.algorithms.lwf import LwF
from holdfast.algorithms.replay import Replay
from holdfast.errors import UserError
from holdfast.models.modular import ModularEncoder, Path, modular
from holdfast.types import Batch, Between, Stage, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.engine.learner import Learner

Weights = dict[str, Tensor]


@dataclass
class RpsNet(Algorithm):
    """Random paths through a modular network, with replay and distillation."""

    needs: ClassVar[frozenset[str]] = frozenset({"boundaries", "modular"})

    modules: Annotated[int, Between(1)] = 8
    """In each layer."""
    every: Annotated[int, Between(1)] = 2
    """A new path every so many stages."""
    candidates: Annotated[int, Between(1)] = 8
    """How many random paths are tried."""
    capacity: Annotated[int, Between(1)] = 1000
    temperature: Annotated[float, Between(1e-3)] = 2.0
    strength: Annotated[float, Between(0)] = 1.0
    """The weight of distillation."""
    stages: int = field(init=False, repr=False, compare=False)
    """How many have begun."""
    chosen: list[Path] = field(init=False, repr=False, compare=False)
    """The paths so far: one module for each layer."""
    search: Search | None = field(init=False, repr=False, compare=False)

    def check(self, stream: Stream) -> None:
        """Refuse a memory that cannot fill a batch, and stages without data to choose by."""
        self._replay().check(stream)
        refuse_without_validation("RPSnet", stream)

    def setup(self, learner: Learner) -> None:
        """All modules of all layers."""
        for layer in modular(learner.model.encoder, "rpsnet", "branches").layers():
            layer.grow(self.modules)
        self.stages, self.chosen, self.search = 0, [], None
        self.replay, self.teacher = self._replay(), LwF(self.strength, self.temperature)
        self.replay.setup(learner)
        self.teacher.setup(learner)

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Where a path is due, freeze the last one and draw new ones."""
        self.replay.begin(learner, stage)
        self.teacher.begin(learner, stage)
        encoder = _encoder(learner)
        if self.stages % self.every == 0:
            for layer, (index,) in zip(encoder.layers(), self.chosen[-1] if self.chosen else (), strict=False):
                if index:  # module 0 goes on learning
                    learner.freeze(layer.choices[index])
            drawn = torch.randint(self.modules, (self.candidates, len(encoder.layers()))).tolist()
            self.search = Search([as_path([[index] for index in path]) for path in drawn], copied(learner))
        self.stages += 1

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Fit each new path from the same weights, and go on with the best; or fit the path that there is."""
        if self.search is None:
            fit()
            return
        self.chosen.append(self.search.run(learner, stage, fit, partial(self._switch, learner)))
        self._switch(learner, None)
        self.search = None

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """The new examples, and kept ones."""
        return self.replay.batch(learner, self.teacher.batch(learner, batch))

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The divergence from the model of the last stage."""
        return self.teacher.loss(learner, batch, outputs)

    def after(self, learner: Learner, batch: Batch) -> None:
        """Nothing is kept yet: a path that is tried sees what others saw."""
        self.replay.after(learner, batch)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep examples, and a copy that teaches the next stage."""
        self.replay.end(learner, stage)
        self.teacher.end(learner, stage)

    def memory_bytes(self, learner: Learner) -> int:
        """The kept examples, the teacher, and the weights of a search."""
        kept = sum(part.memory_bytes(learner) for part in (self.replay, self.teacher))
        return kept + (0 if self.search is None else self.search.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """The paths, the search, the memory and the teacher with the path that it was taught on."""
        return {
            "stages": self.stages,
            "chosen": [as_lists(path) for path in self.chosen],
            "search": None if self.search is None else self.search.state_dict(),
            "replay": self.replay.state_dict(),
            "teacher": self.teacher.state_dict(),
        }

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Go on from a saved state. The teacher is a copy of the network, so first its path is switched on."""
        self.stages = state["stages"]
        self.chosen = [as_path(path) for path in state["chosen"]]
        self.search = None if state["search"] is None else Search.from_state(state["search"])
        self._switch(learner, None)
        self.replay.load_state_dict(learner, state["replay"])
        self.teacher.load_state_dict(learner, state["teacher"])
        if self.search is not None:
            self._switch(learner, self.search.path)

    def _replay(self) -> Replay:
        return Replay(capacity=self.capacity, memory="experience-balanced")

    def _switch(self, learner: Learner, new: Path | None) -> None:
        """Module 0, all paths so far, and a new one are on."""
        encoder = _encoder(learner)
        paths = [*self.chosen, *([] if new is None else [new])]
        encoder.path = tuple(
            tuple(sorted({0, *(path[layer][0] for path in paths)})) for layer in range(len(encoder.layers()))
        )


def _encoder(learner: Learner) -> ModularEncoder:
    return modular(learner.model.encoder, "rpsnet", "branches")


# Choosing among paths by validation data, for any algorithm that does


class Search:
    """Fits each of several paths from the same weights and keeps the best; it can be saved within a fit."""

    def __init__(self, paths: list[Path], origin: Weights) -> None:
        self.paths, self.origin = paths, origin
        self.tried, self.winner, self.score = 0, 0, -1.0
        self.best: Weights = {}

    @property
    def path(self) -> Path:
        """The path that is tried."""
        return self.paths[min(self.tried, len(self.paths) - 1)]

    def run(self, learner: Learner, stage: Stage, fit: Fit, switch: Callable[[Path], None]) -> Path:
        """The best path by the stage's validation data, the earliest of equals; the learner then has its weights."""

        def start() -> None:
            learner.model.load_state_dict(self.origin)
            switch(self.path)

        while self.tried < len(self.paths):
            fit(start)
            if (score := validation_score(learner, stage)) > self.score or not self.best:
                self.winner, self.score, self.best = self.tried, score, copied(learner)
            self.tried += 1
        learner.model.load_state_dict(self.best)
        return self.paths[self.winner]

    @property
    def nbytes(self) -> int:
        """The bytes of the weights that it keeps."""
        return sum(value.nbytes for value in (*self.origin.values(), *self.best.values()))

    def state_dict(self) -> dict[str, Any]:
        """The paths, how far it is, and the weights to begin with and the best ones."""
        found = {"tried": self.tried, "winner": self.winner, "score": self.score}
        return found | {"paths": [as_lists(path) for path in self.paths], "origin": self.origin, "best": self.best}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Search:
        """Go on from a saved state."""
        search = cls([as_path(path) for path in state["paths"]], state["origin"])
        search.tried, search.winner, search.score = state["tried"], state["winner"], state["score"]
        search.best = state["best"]
        return search


def as_path(saved: Any) -> Path:
    """A path from lists of lists."""
    return tuple(tuple(on) for on in saved)


def as_lists(path: Path) -> list[list[int]]:
    """A path as a state holds it."""
    return [list(on) for on in path]


def copied(learner: Learner) -> Weights:
    """The weights as they are now."""
    return {name: value.detach().clone() for name, value in learner.model.state_dict().items()}


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
    """Refuse, before training, a stream whose stages have no data to choose a path by."""
    for stage in stream.stages:
        if not stage.validation:
            raise UserError(f"{name} chooses by validation data, and stage {stage.name!r} has none: choose another")
