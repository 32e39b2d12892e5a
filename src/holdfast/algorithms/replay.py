"""Experience replay: each batch is joined by examples from memory, and one step learns from both.

Papers: Chaudhry et al. 2019, "On Tiny Episodic Memories"; CFST uses it with 100 new and 100 kept examples.
Equation: the loss is the mean over B_new and B_memory together, B_memory drawn before B_new is offered to the memory.
Cost: one forward and one backward pass over (new + size) examples a step. Memory: `capacity` examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from holdfast.algorithms.base import Algorithm
from holdfast.data.order import mix
from holdfast.memory import Reservoir
from holdfast.types import Batch, Between

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class Replay(Algorithm):
    """A reservoir of past examples joins each batch."""

    capacity: Annotated[int, Between(1)] = 200
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples join a batch; None: as many as are new."""
    memory: Reservoir = field(init=False, repr=False, compare=False)

    def setup(self, learner: Learner) -> None:
        """An empty memory."""
        self.memory = Reservoir(self.capacity, mix(learner.seed, 0x5EED))

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """The new examples, and kept ones."""
        if len(self.memory) == 0:
            return batch
        kept = self.memory.sample(self.size or len(batch.ids))
        return Batch(np.concatenate([batch.ids, kept]))

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory, each once: not again in later epochs."""
        if learner.epoch == 0:
            self.memory.add(batch.ids)

    def memory_bytes(self, learner: Learner) -> int:
        """The kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.ids.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory."""
        return {"memory": self.memory.state_dict()}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """The memory."""
        self.memory.load_state_dict(state["memory"])
