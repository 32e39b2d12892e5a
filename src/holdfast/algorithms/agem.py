"""A-GEM: if a step would raise the mean loss of kept examples, remove the part of the gradient that does so.

Papers: Chaudhry et al. 2019, "Efficient Lifelong Learning with A-GEM"; VisCOLL uses it without boundaries.
Equation: with g the gradient of the batch and r that of a batch from memory, g - (g.r / r.r) r if g.r < 0, else g.
Units: no strength.
Cost: two forward and two backward passes per step, once something is kept. Memory: `capacity` examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.gradients import Gradients, assign, flat, gradients, memory_gradients
from holdfast.data.order import mix
from holdfast.memory import Reservoir, refuse_small
from holdfast.types import Batch, Between, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class AGem(Algorithm):
    """Projects the gradient so that the mean loss of kept examples does not rise.

    If the stream shows boundaries, only examples of past stages are kept; otherwise, examples of everything seen so
    far. A head that only the memory reads gets the gradient that the equation assigns to it, which is 0 if nothing is
    removed. Unlike no gradient, that lets AdamW's momentum and weight decay move it: keep the decay small, as with
    CLiMB's 0.01.
    """

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})

    capacity: Annotated[int, Between(1)] = 200
    """How many past examples the memory holds."""
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples give the reference gradient; none: as many as are in the batch."""
    memory: Reservoir = field(init=False, repr=False, compare=False)
    bounded: bool = field(init=False, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (Reservoir,)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if the memory cannot fill a batch."""
        refuse_small("agem", self.capacity, self.size, stream)

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory."""
        self.memory, self.bounded = Reservoir(self.capacity, mix(learner.seed, 0xA6E3)), False

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Note that the stream shows boundaries."""
        self.bounded = True

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Remove the part of the gradient that would raise the loss of kept examples."""
        if len(self.memory) == 0:
            return
        own = gradients(learner)
        reference = memory_gradients(learner, self.memory.sample(self.size or len(batch.ids)))
        assign(learner, projected(own, reference))

    def after(self, learner: Learner, batch: Batch) -> None:
        """Without boundaries, offer the new examples immediately."""
        if not self.bounded:
            self.memory.add(batch.ids)

    def end(self, learner: Learner, stage: Stage) -> None:
        """With boundaries, offer a stage's examples when the stage is over."""
        self.memory.add(stage.train)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory, and whether boundaries were shown."""
        return {"memory": self.memory.state_dict(), "bounded": self.bounded}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory, and whether boundaries were shown."""
        self.memory.load_state_dict(state["memory"])
        self.bounded = state["bounded"]


def projected(own: Gradients, reference: Gradients) -> Gradients:
    """The nearest gradients that do not oppose the reference; both arguments are changed in place.

    The decision stays on the device, and every sum is over one vector: one kernel per tensor would mean hundreds.

    >>> own, reference = {"weight": torch.tensor([1.0, -1.0])}, {"weight": torch.tensor([0.0, 2.0])}
    >>> projected(own, reference)["weight"].tolist()
    [1.0, 0.0]
    """
    shared = [name for name in reference if name in own]
    if not shared:
        return own
    ours, theirs, everything = [own[n] for n in shared], [reference[n] for n in shared], list(reference.values())
    whole = flat(everything)
    product = torch.dot(flat(ours), whole if len(theirs) == len(everything) else flat(theirs))
    factor = torch.where(product < 0, -product / torch.dot(whole, whole), 0.0)
    torch._foreach_mul_(everything, factor)
    torch._foreach_add_(ours, theirs)
    return reference | own
