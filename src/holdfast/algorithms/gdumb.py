"""GDumb: keep a balanced memory of the stream, and train from the starting weights on nothing else.

Paper: Prabhu et al. 2020, "GDumb: A Simple Approach that Questions Our Progress in Continual Learning".
Equation: after each stage, the weights are the result of training from scratch on the memory, in the way the stage is
trained. Cost: passes over the memory instead of the stage's data. Memory: `capacity` examples. The starting weights do
not count: they come from the run's seed or checkpoint, which a resumed run reads again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, Fit
from holdfast.algorithms.rows import grouping
from holdfast.data.order import mix, shuffled
from holdfast.memory import GreedyBalanced, refuse_small
from holdfast.types import Between, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class GDumb(Algorithm):
    """Trains each stage from scratch on a class-balanced memory of all stages so far."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})

    capacity: Annotated[int, Between(1)] = 200
    """How many past examples the memory holds."""
    memory: GreedyBalanced = field(init=False, repr=False, compare=False)
    stages: int = field(init=False, default=0, repr=False, compare=False)
    start: dict[str, Tensor] = field(init=False, default_factory=dict, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (GreedyBalanced,)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if the memory cannot fill a batch."""
        refuse_small("gdumb", self.capacity, None, stream, sized=False)

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory."""
        group = grouping(learner, "class", "gdumb")
        self.memory = GreedyBalanced(self.capacity, mix(learner.seed, 0xD04B), group)
        self.stages, self.start = 0, {}

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Note the starting weights; offer the stage's examples to the memory, in random order."""
        if not self.start:
            self._note(learner)
        self.memory.add(shuffled(stage.train, seed=learner.seed, stage=self.stages, epoch=0))
        self.stages += 1

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """Replace the stage's data by the memory."""
        return replace(stage, train=self.memory.ids.copy())

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Run one fit, from the starting weights."""

        def restart() -> None:
            learner.model.load_state_dict(self.start, strict=False)

        fit(restart)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory, and how many stages it has seen."""
        return {"memory": self.memory.state_dict(), "stages": self.stages}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory, and how many stages it has seen. The weights are still those of the run's start."""
        self.memory.load_state_dict(state["memory"])
        self.stages = state["stages"]
        self._note(learner)

    def _note(self, learner: Learner) -> None:
        """Copy the weights once every algorithm is set up, except which classes are open (a bool)."""
        weights = learner.model.state_dict().items()
        self.start = {name: value.clone() for name, value in weights if value.dtype != torch.bool}
