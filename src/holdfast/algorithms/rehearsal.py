"""Rehearsal: examples of earlier stages are part of each later stage's training data.

Paper: Robins 1995, "Catastrophic Forgetting, Rehearsal and Pseudorehearsal"; as in Greco et al. 2019, with 100, 1000 or
10000 examples of the first task.
Equation: stage k trains on D_k and on a random part of `count` examples of each D_j, j < k, shuffled together anew in
each epoch.
Cost: epochs that include the kept examples; no other passes. Memory: `count` examples of each stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from holdfast.algorithms.base import Algorithm
from holdfast.data.order import mix
from holdfast.errors import UserError
from holdfast.memory import PerTask
from holdfast.types import Between, Ids, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


def joined(stage: Stage, ids: Ids) -> Stage:
    """The stage with its own examples, plus kept ones that are not among them."""
    kept = ids[~np.isin(ids, stage.train)]
    return replace(stage, train=np.concatenate([stage.train, kept]))


@dataclass
class Rehearsal(Algorithm):
    """Mixes some examples of each stage into the data of all later ones."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})

    count: Annotated[int, Between(1)] = 1000
    """How many examples of each stage are kept; all of them if it has fewer."""
    memory: PerTask = field(init=False, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (PerTask,)

    def check(self, stream: Stream) -> None:
        """Raise a UserError for a stream whose stages already contain all earlier examples."""
        stages = stream.stages
        if len(stages) > 1 and all(np.isin(a.train, b.train).all() for a, b in pairwise(stages)):
            raise UserError(
                "rehearsal adds examples of earlier stages, but each stage of this stream already contains all of them "
                "(cumulative): leave rehearsal out"
            )

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory."""
        self.memory = PerTask(mix(learner.seed, 0x2E4E), self.count)

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """Add kept examples to the stage's own."""
        return joined(stage, self.memory.ids)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep a part of the finished stage's own examples."""
        self.memory.add(stage.train)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory."""
        return {"memory": self.memory.state_dict()}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory."""
        self.memory.load_state_dict(state["memory"])
