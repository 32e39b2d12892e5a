"""O-LoRA: low-rank updates for each stage, trained to read other directions than those of earlier stages.

Paper: Wang et al. 2023, "Orthogonal Subspace Learning for Language Model Continual Learning". As in LoRA, a layer W x
gets (scale / rank) B A x, with B at zero in the beginning of each stage; afterwards it is merged into W.
Equation: the loss gets strength x the sum over layers, and over past stages i, of |A_i A'|^2, the squares of all inner
products of the rows of A_i and of A. The released code adds up their absolute values.
Units: `strength` is the paper's lambda, 0.5.
Cost: one forward and one backward pass, and the products of A with those of past stages.
Memory: rank x width numbers for each layer and stage: 2 x rank x width for each of our blocks. The model grows by one
set of updates, whatever the number of stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.low_rank import MergedUpdates
from holdfast.types import Batch, Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class OLora(MergedUpdates):
    """Low-rank updates for each stage, in subspaces orthogonal to those of earlier stages."""

    version: ClassVar[int] = 1
    strengths: ClassVar[tuple[str, ...]] = ("strength",)

    scale: Annotated[float, Between(0)] = 16.0
    """The scale of the updates, which are multiplied by scale / rank."""
    strength: Annotated[float, Between(0)] = 0.5
    """The weight of the overlap with the subspaces of earlier stages."""

    def factor(self) -> float:
        """As in LoRA."""
        return self.scale / self.rank

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Draw new directions."""
        for update in self.updates(learner).values():
            update.down.reset_parameters()

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The overlap of this stage's subspaces with those of earlier ones."""
        if not self.past:
            return None
        overlaps = [
            (self.past[place] @ update.directions().mT).square().sum()
            for place, update in self.updates(learner).items()
        ]
        return self.strength * torch.stack(overlaps).sum()

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep the directions, and merge the updates."""
        for place, update in self.updates(learner).items():
            new = update.directions().detach().clone()
            self.past[place] = torch.cat([self.past[place], new], 1) if place in self.past else new
        self.merge(learner)
