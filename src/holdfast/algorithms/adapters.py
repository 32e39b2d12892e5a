"""Adapters: small bottlenecks in every block, one set for each task's head; all else of the encoder stays as it is.

Papers: Houlsby et al. 2019; CLiMB (Srinivasan et al. 2022), section 3.2, with reduction 16 and one set a task.
Equation: x + up(relu(down(x))), on what attention gives and on what the feed-forward network gives.
Cost: one forward and one backward pass, as fine-tuning; no gradient of the encoder's own weights is computed.
Memory: none beside the model, which grows by one set for each head: 1.6 % of ViLT each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from torch import nn

from holdfast.algorithms.base import Algorithm
from holdfast.errors import UserError
from holdfast.models.adapters import adapters
from holdfast.models.transformer import Block
from holdfast.types import Between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.learner import Learner


@dataclass
class AddedSets(Algorithm, ABC):
    """For each head, a set of further modules learns, and the heads; the encoder does not."""

    needs: ClassVar[frozenset[str]] = frozenset({"blocks"})

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, then add the sets: one for each head."""
        blocks = places(learner, type(self).__name__)
        learner.freeze(learner.model.encoder)
        for head in learner.model.heads:
            learner.model.add(head, [self.make(block) for block in blocks])

    @abstractmethod
    def make(self, block: Block) -> nn.ModuleDict:
        """What is added to a block."""


@dataclass
class Adapters(AddedSets):
    """A set of adapters for each head learns, and the heads; the encoder does not."""

    reduction: Annotated[int, Between(1)] = 16
    """How many times narrower a bottleneck is than the encoder."""

    def make(self, block: Block) -> nn.ModuleDict:
        """Two adapters."""
        return adapters(block, self.reduction)


def places(learner: Learner, what: str) -> Sequence[Block]:
    """The blocks of a model, or a sentence where it has none."""
    blocks = learner.model.encoder.blocks()
    if not blocks:
        name = type(learner.model.encoder).__name__
        raise UserError(f"{name} has no transformer blocks to put {what} in: choose a transformer, such as vit or vilt")
    if any(len(block.added) for block in blocks):
        raise UserError(f"{what} cannot be combined with another algorithm that adds to the same blocks")
    return blocks
