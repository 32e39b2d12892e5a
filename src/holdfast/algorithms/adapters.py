"""Adapters: small bottlenecks in every block, one set for each task's head; all else of the encoder stays as it is.

Papers: Houlsby et al. 2019; CLiMB (Srinivasan et al. 2022), section 3.2, with reduction 16 and one set a task.
Equation: x + up(s(down(x))), on what attention gives and on what the feed-forward network gives. `activation` is s:
Houlsby et al. write "a nonlinearity" and use GELU in their code, CLiMB writes GELU; its code takes a library's swish.
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
from holdfast.models.adapters import Activation, adapters
from holdfast.models.transformer import Block
from holdfast.types import Between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.learner import Learner
    from holdfast.models.base import Model


@dataclass
class AddedSets(Algorithm, ABC):
    """For each head, a set of further modules learns, and the heads; the encoder does not."""

    needs: ClassVar[frozenset[str]] = frozenset({"blocks"})
    name: ClassVar[str]

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, then add the sets: one for each head."""
        blocks = places(learner, self.name)
        learner.freeze(learner.model.encoder)
        for head in learner.model.heads:
            learner.model.add(head, [self.make(block) for block in blocks])

    @abstractmethod
    def make(self, block: Block) -> nn.ModuleDict:
        """What is added to a block."""


@dataclass
class Adapters(AddedSets):
    """A set of adapters for each head learns, and the heads; the encoder does not."""

    version: ClassVar[int] = 1
    name: ClassVar[str] = "adapters"

    reduction: Annotated[int, Between(1)] = 16
    """How many times narrower a bottleneck is than the encoder."""
    activation: Activation = "gelu"
    """gelu, relu, or silu, which is also known as swish."""

    def make(self, block: Block) -> nn.ModuleDict:
        """Two adapters."""
        return adapters(block, self.reduction, self.activation)


def places(learner: Learner, name: str) -> Sequence[Block]:
    """The blocks of a model that an algorithm can add to, or a sentence where it cannot."""
    blocks = learner.model.encoder.blocks()
    if not blocks:
        raise UserError(
            f"{name} adds to transformer blocks, and this model has none: choose a transformer, such as vit or vilt"
        )
    if other := _partner(learner.model):
        raise UserError(f"{name} and {other} add to the same blocks and cannot be combined: leave one of the two out")
    return blocks


def _partner(model: Model) -> str | None:
    """The algorithm that already adds to a model's blocks, if one does."""
    if model.active is not None:
        return "adapter-library"
    for block in model.encoder.blocks():
        for added in block.added.values():
            assert isinstance(added, nn.ModuleDict)
            return "lora" if "projection" in added else "adapters"
    return None
