"""Adapters: small bottlenecks in every block, one set for each task's head; the rest of the encoder is frozen.

Papers: Houlsby et al. 2019; CLiMB (Srinivasan et al. 2022), section 3.2, with reduction 16 and one set per task.
Equation: x + up(s(down(x))), on the outputs of attention and of the feed-forward network. `activation` is s:
Houlsby et al. write "a nonlinearity" and use GELU in their code, CLiMB writes GELU; its code takes a library's swish.
Cost: one forward and one backward pass, as fine-tuning; no gradient of the encoder's own weights is computed.
Memory: none apart from the model, which grows by one set for each head: 1.6 % of ViLT each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from torch import nn

from holdfast.algorithms.base import Algorithm, refuse_trait
from holdfast.errors import UserError
from holdfast.models.adapters import Activation, Attachable
from holdfast.types import Between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.learner import Learner


@dataclass
class AddedSets(Algorithm, ABC):
    """Trains a set of additional modules for each head, and the heads; the encoder is frozen."""

    needs: ClassVar[frozenset[str]] = frozenset({"blocks"})
    traits = frozenset({"encoder-per-head", "adds-to-blocks"})
    name: ClassVar[str]

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that add to the same blocks."""
        refuse_second_set(self, algorithms)

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, then add the sets: one for each head."""
        blocks = places(learner, self.name)
        learner.freeze(learner.model.encoder)
        for head in learner.model.heads:
            learner.model.add(head, [self.make(block) for block in blocks])

    @abstractmethod
    def make(self, block: Attachable) -> nn.ModuleDict:
        """The additions to a block."""


@dataclass
class Adapters(AddedSets):
    """Trains a set of adapters for each head, and the heads; the encoder is frozen."""

    version: ClassVar[int] = 1
    pretrained: ClassVar[bool] = True
    name: ClassVar[str] = "adapters"

    reduction: Annotated[int, Between(1)] = 16
    """The width of the encoder divided by that of a bottleneck."""
    activation: Activation = "gelu"
    """The nonlinearity inside a bottleneck; silu is also known as swish."""

    def make(self, block: Attachable) -> nn.ModuleDict:
        """Its adapters."""
        return block.adapters(self.reduction, self.activation)


def places(learner: Learner, name: str) -> Sequence[Attachable]:
    """The blocks of a model to which an algorithm can add; raises a UserError if there are none."""
    blocks = learner.model.encoder.blocks()
    if not blocks:
        raise UserError(
            f"{name} adds to transformer blocks, but this model has none: choose a transformer, such as vit or vilt, "
            "or a module of your own with repeated layers, or with a method layers() that lists them"
        )
    return blocks


def refuse_second_set(algorithm: Algorithm, algorithms: Sequence[Algorithm]) -> None:
    """Raise a UserError, before training, for another algorithm that adds to the same blocks."""
    refuse_trait(algorithm, algorithms, "adds-to-blocks", "needs the transformer blocks to itself")
