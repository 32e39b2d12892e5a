from dataclasses import dataclass
from typing import Annotated

import holdfast as hf


@dataclass
class StayNear(hf.Algorithm):
    """A penalty on leaving the weights with which the stage began."""

    needs = frozenset({"boundaries"})
    strengths = ("strength",)

    strength: Annotated[float, hf.Between(0)] = 0.01

    def setup(self, learner):
        self.anchor = {}

    def begin(self, learner, stage):
        self.anchor = {name: p.detach().clone() for name, p in learner.trainable().items()}

    def loss(self, learner, batch, outputs):
        return self.strength * sum(((p - self.anchor[n]) ** 2).sum() for n, p in learner.trainable().items())

    def memory_bytes(self, learner):
        return sum(value.nbytes for value in self.anchor.values())

    def state_dict(self):
        return {"anchor": self.anchor}

    def load_state_dict(self, learner, state):
        self.anchor = state["anchor"]
