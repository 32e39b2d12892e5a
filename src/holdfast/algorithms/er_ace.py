"""ER-ACE: experience replay with an asymmetric cross-entropy, so that new classes do not push old ones aside.

Paper: Caccia et al. 2022, "New Insights on Reducing Abrupt Representation Change in Online Continual Learning".
Equation: L = CE(B_new; over the classes in B_new) + CE(B_memory; over all classes). The CE over some classes is the CE
over all plus logsumexp over some minus logsumexp over all, since the target's logit is in both; the code adds this
difference.
Units: no strength. Mammoth (er_ace) also lets new examples compete with classes that have not appeared yet, replays
from the second task on, and uses a cosine classifier; Avalanche (ER_ACE) uses a class-balanced memory.
Cost: one forward and one backward pass over (new + size) examples per step. Memory: `capacity` examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.algorithms.rows import on_all_ranks, refuse_without_classes, weighted
from holdfast.data.order import mix
from holdfast.memory import Reservoir, refuse_small
from holdfast.types import Batch, Between, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class AsymmetricReplay(Algorithm):
    """New examples compete only with the classes of their own batch; kept ones with all classes."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})

    capacity: Annotated[int, Between(1)] = 200
    """How many past examples the memory holds."""
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples are replayed at once; none: as many as are new."""
    memory: Reservoir = field(init=False, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (Reservoir,)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if the memory cannot fill a batch, or if batches would be split: classes are per batch."""
        refuse_small("er-ace", self.capacity, self.size, stream)
        refuse_accumulation("er-ace", stream)

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory."""
        refuse_without_classes(learner, "er-ace")
        self.memory = Reservoir(self.capacity, mix(learner.seed, 0xACE))

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The difference between the asymmetric and the plain loss of new examples, plus the loss of kept examples."""
        present = on_all_ranks(learner, batch, tuple(part.targets for part in batch.parts))
        changes = []
        for part, output, (_, targets) in zip(batch.parts, outputs, present, strict=True):
            absent = torch.ones(output.shape[-1], dtype=torch.bool, device=output.device)
            absent.index_fill_(0, targets.long(), value=False)
            among = output.masked_fill(absent, -torch.inf).logsumexp(-1)
            changes.append(weighted(among - output.logsumexp(-1), part))
        loss = learner.share(torch.cat(changes), len(batch.ids))
        if len(self.memory) == 0:
            return loss
        kept = learner.fetch(self.memory.sample(self.size or len(batch.ids)))
        learner.examples_backward += len(kept.ids)
        return loss + learner.loss(kept, learner.outputs(kept))

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory."""
        self.memory.add(batch.ids)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory."""
        return {"memory": self.memory.state_dict()}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory."""
        self.memory.load_state_dict(state["memory"])
