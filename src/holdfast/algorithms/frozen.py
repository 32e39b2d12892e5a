"""Freezing: keep the encoder, or its lower part, as it was, and learn the rest.

Paper: CLiMB (Srinivasan et al. 2022), section 3.2; there with K = 9 of ViLT's 12 layers.
Modules that other algorithms add to the encoder (adapters) still learn, in whichever order the algorithms are named.
Cost: no more passes than fine-tuning; the backward pass ends at the lowest trainable layer. Memory: none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from holdfast.algorithms.base import Algorithm
from holdfast.errors import UserError
from holdfast.types import Between

if TYPE_CHECKING:
    from torch import nn

    from holdfast.engine.learner import Learner


@dataclass
class FrozenEncoder(Algorithm):
    """Only the heads learn."""

    version: ClassVar[int] = 1
    pretrained: ClassVar[bool] = True

    def setup(self, learner: Learner) -> None:
        """Freeze the whole encoder."""
        _freeze(learner, learner.model.encoder)


@dataclass
class FrozenTowers(Algorithm):
    """Freezes the towers of a dual encoder, so that only linear maps learn; freezes any other encoder as a whole."""

    version: ClassVar[int] = 1

    def setup(self, learner: Learner) -> None:
        """Freeze the towers."""
        encoder = learner.model.encoder
        _freeze(learner, *(encoder.towers() or [encoder]))


@dataclass
class FrozenBottom(Algorithm):
    """The embeddings and the lowest k layers stay as they are."""

    version: ClassVar[int] = 1
    pretrained: ClassVar[bool] = True

    k: Annotated[int, Between(0)] = 1
    """How many layers are frozen, counted from the bottom; the embeddings always are."""

    def setup(self, learner: Learner) -> None:
        """Freeze the stem and the first k layers."""
        encoder = learner.model.encoder
        if self.k > len(encoder.layers()):
            raise UserError(
                f"frozen-bottom.k is {self.k}, but this encoder has {len(encoder.layers())} layers: "
                f"give a number from 0 to {len(encoder.layers())}, or run plain frozen-bottom with the benchmark's own"
            )
        _freeze(learner, *encoder.stem(), *encoder.layers()[: self.k])


def _freeze(learner: Learner, *modules: nn.Module) -> None:
    """Freeze an encoder's own modules; additions still learn, whether made before or after."""
    added = [parameter for block in learner.model.encoder.blocks() for parameter in block.added.parameters()]
    learning = [parameter for parameter in added if parameter.requires_grad]
    learner.freeze(*modules)
    for parameter in learning:
        parameter.requires_grad_(True)
