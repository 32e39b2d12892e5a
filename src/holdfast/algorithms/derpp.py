"""DER++: kept examples are learned again from their targets, and from the logits at the time they were kept.

Paper: Buzzega et al. 2020, "Dark Experience for General Continual Learning: a Strong, Simple Baseline".
Equation: L = loss(B_new) + alpha * mean over B_1 of |z - h(x)|^2 + beta * loss(B_2), where B_1 and B_2 are drawn from
memory one after the other, and z are the stored logits. B_1 and B_2 go through the model together. The memory is a
reservoir of everything seen, in every epoch: z are the logits of the step at which the example took its place, and an
example that took two places has two rows of logits.
Units: `beta` is the same in the paper, Mammoth and Avalanche. `alpha` is that of the paper, which sums over the logits;
Mammoth (derpp) and Avalanche (DER) take the mean over all C classes: with fidelity=paper, alpha = theirs / C; with
fidelity=released, alpha = theirs. For a growing head, C counts the classes that were open. Avalanche stores logits at
the end of a stage, and draws one batch for both terms.
Cost: forward and backward passes over (new + 2 size) examples per step; on several ranks, the logits of new examples
are gathered. Memory: `capacity` examples, and a row of logits for each, as wide as the widest output so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.algorithms.logits import StoredLogits, meaning, refuse_large
from holdfast.algorithms.rows import on_all_ranks, own_places, some_rows, weighted
from holdfast.data.order import mix
from holdfast.memory import Reservoir, refuse_small
from holdfast.types import Batch, Between, Ids, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class DarkReplay(Algorithm):
    """Replays kept examples with their targets and their logits at the time they were kept."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples", "statistics"})
    strengths: ClassVar[tuple[str, ...]] = ("alpha", "beta")

    capacity: Annotated[int, Between(1)] = 200
    """How many past examples the memory holds."""
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples are in each of the two batches; none: as many as are new."""
    alpha: Annotated[float, Between(0)] = 0.1
    """The weight of the loss on stored logits."""
    beta: Annotated[float, Between(0)] = 0.5
    """The weight of the loss on stored targets; 0 gives DER."""
    fidelity: Literal["paper", "released"] = "paper"
    """paper: the squared differences of the logits are summed. released: they are averaged, as in the authors' code."""
    memory: Reservoir = field(init=False, repr=False, compare=False)
    logits: StoredLogits = field(init=False, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (Reservoir,)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if the memory cannot fill a batch, or if batches would be split: it draws per batch."""
        refuse_small("derpp", self.capacity, self.size, stream)
        refuse_accumulation("derpp", stream)

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory."""
        refuse_large(learner, "derpp", self.capacity)
        self.memory, self.logits = Reservoir(self.capacity, mix(learner.seed, 0xDE2)), StoredLogits(self.capacity)
        self._new: list[tuple[Ids, Tensor]] = []

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The distance from stored logits, and the loss of other kept examples."""
        self._new = on_all_ranks(learner, batch, meaning(learner, batch, outputs))
        if len(self.memory) == 0:
            return None
        size = self.size or len(batch.ids)
        dark = self.memory.draw(size)
        return self._again(learner, dark, self.memory.draw(size) if self.beta else dark[:0])

    def _again(self, learner: Learner, dark: Ids, plain: Ids) -> Tensor:
        """Both terms, for the examples at these places of the memory, in one pass."""
        places = np.concatenate([dark, plain])
        ids = self.memory.ids[places]
        batch = learner.fetch(ids)
        outputs = learner.outputs(batch)
        learner.examples_backward += len(ids)
        distances, losses = [], []
        for part, output, own in zip(batch.parts, outputs, own_places(learner, ids), strict=True):
            count = int(np.searchsorted(own, len(dark)))  # rows are in the order of the ids: dark ones come first
            first, rest = some_rows(part, slice(count)), some_rows(part, slice(count, None))
            squares, stored = self.logits.squares(output[:count], places[own[:count]])
            distances.append(weighted(squares / stored.clamp(min=1) if self.fidelity == "released" else squares, first))
            if self.beta:
                losses.append(weighted(learner.tasks[part.task].losses(output[count:], rest), rest))
        loss = self.alpha * learner.share(torch.cat(distances), len(dark))
        return loss + self.beta * learner.share(torch.cat(losses), len(plain)) if self.beta else loss

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory, and store the logits of those that it took."""
        taken = self.memory.offer(batch.ids)
        self.logits.store(taken, self.memory.ids[taken], self._new)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples, their ids and their logits."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes + self.logits.rows.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory and the logits."""
        return {"memory": self.memory.state_dict(), "logits": self.logits.rows}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory and the logits."""
        self.memory.load_state_dict(state["memory"])
        self.logits.rows = state["logits"].to(learner.device)
