"""Prefixes that are chosen for each example by the frozen encoder's output: the common part of L2P and CODA-Prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.adapter_library import seen
from holdfast.algorithms.adapters import places
from holdfast.errors import UserError
from holdfast.models.heads import CompareHead
from holdfast.models.prefixes import Prefix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.engine.learner import Learner
    from holdfast.models.base import Network

SET = "prompts"


class Noted(list[Tensor]):
    """Tensors that the latest passes computed for the loss; a copy of the model, such as a teacher, has none."""

    def __deepcopy__(self, memo: Any) -> Noted:
        return Noted()

    def take(self, parts: int) -> list[Tensor]:
        """The tensors of the latest passes, one for each part of a batch; then forget all."""
        found = list(self[-parts:])
        self.clear()
        return found


def query(model: Network, inputs: Mapping[str, Tensor]) -> Tensor:
    """The encoder's output without additions, of length 1: (examples, width)."""
    with torch.no_grad():
        return functional.normalize(seen(model, inputs), dim=-1)


def add_prefixes(learner: Learner, name: str, layers: int, length: int, pool: int) -> list[list[Prefix]]:
    """Freeze the encoder, and add pools of prefixes to its lowest blocks; for each block, its pools."""
    model = learner.model
    blocks = places(learner, name)
    if any(isinstance(head, CompareHead) for head in model.heads.values()):
        raise UserError(
            f"{name} chooses prefixes for each example, but this model compares images with texts, whose rows are not "
            "examples: choose another algorithm"
        )
    made = [block.prefixes(length, pool) if place < layers else nn.ModuleDict() for place, block in enumerate(blocks)]
    if not any(map(len, made)):
        raise UserError(f"{name} adds keys and values to attention, which no layer of this model has: choose adapters")
    learner.freeze(model.encoder)
    model.add(SET, made)
    model.active = SET
    return [[each for each in own.modules() if isinstance(each, Prefix)] for own in made]


def parameter(learner: Learner, value: Tensor) -> nn.Parameter:
    """A parameter of the model's type, on its device."""
    return nn.Parameter(value.to(next(learner.model.parameters())))
