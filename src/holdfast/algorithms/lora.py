"""LoRA: low-rank additions to queries and values, one set for each task's head; the encoder stays as it is.

Paper: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models". External modules do not say which of their
layers compute queries and values, so there all linear layers of a block have an addition.
Equation: W x + (scale / rank) B A x, with B at zero in the beginning.
Cost: one forward and one backward pass, as fine-tuning; no gradient of the encoder's own weights is computed.
Memory: none beside the model, which grows by 2 x rank x (width + inner) numbers per block and head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from holdfast.algorithms.adapters import AddedSets
from holdfast.errors import UserError
from holdfast.models.adapters import Attachable
from holdfast.types import Between


@dataclass
class LowRank(AddedSets):
    """Trains low-rank additions for each head, and the heads; the encoder is frozen."""

    version: ClassVar[int] = 1
    pretrained: ClassVar[bool] = True
    name: ClassVar[str] = "lora"

    rank: Annotated[int, Between(1)] = 8
    """The rank of each addition."""
    scale: Annotated[float, Between(0)] = 16.0
    """The scale of the additions, which are multiplied by scale / rank."""

    def make(self, block: Attachable) -> nn.ModuleDict:
        """Its low-rank additions."""
        return additions(block, self.rank, self.scale / self.rank, self.name)


def additions(block: Attachable, rank: int, scale: float, name: str) -> nn.ModuleDict:
    """The low-rank additions to a block; raises a UserError if it has no place for them."""
    made = block.low_rank(rank, scale)
    if not len(made):
        raise UserError(f"{name} adds to linear layers, and a layer of this model has none: choose adapters")
    return made
