"""L2P: a pool of prompts, of which each example gets those whose keys are nearest to the frozen encoder's output.

Paper: Wang et al. 2022, "Learning to Prompt for Continual Learning". As in the baselines of later papers (Smith et al.
2023: "Deep L2P++"), prompts are keys and values before those of attention in the lowest `layers` blocks; the paper puts
them before the sequence of the first one. Each example has prompts of its own, as in the paper; the released code gives
all examples of a batch those that the batch prefers.
Equation: q = f(x), the frozen encoder's output without prompts; K = the `top` keys with the largest cos(q, k); the loss
gets strength x the sum of 1 - cos(q, k) over K. Only prompts, keys and heads learn.
Units: `strength` is the paper's lambda, 0.5.
Cost: two forward passes and one backward pass, in which no gradient of the encoder's weights is computed.
Memory: none beside the model, which grows by pool x (2 x length x width x layers + width) numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.algorithms.adapters import refuse_second_set
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.prompts import Noted, add_prefixes, parameter, query
from holdfast.algorithms.rows import weighted
from holdfast.errors import UserError
from holdfast.types import Batch, Between, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.models.base import Network


@dataclass
class L2P(Algorithm):
    """Prompts of a pool, chosen for each example by the nearest keys; the encoder is frozen."""

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"blocks"})
    pretrained: ClassVar[bool] = True
    traits = frozenset({"adds-to-blocks"})
    strengths: ClassVar[tuple[str, ...]] = ("strength",)

    pool: Annotated[int, Between(1)] = 10
    """The number of prompts."""
    top: Annotated[int, Between(1)] = 5
    """The number of prompts that an example gets."""
    length: Annotated[int, Between(1)] = 5
    """The number of keys, and of values, in a prompt."""
    layers: Annotated[int, Between(1)] = 5
    """The number of blocks that have prompts, counted from the bottom."""
    strength: Annotated[float, Between(0)] = 0.5
    """The weight of the distance between an example and the keys of its prompts."""
    _near: Noted = field(init=False, repr=False, compare=False)

    def check(self, stream: Stream) -> None:
        """Raise a UserError for more prompts than the pool has."""
        if self.top > self.pool:
            raise UserError(f"{self}.top is {self.top}, but the pool has {self.pool} prompts: raise {self}.pool")

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that add to the same blocks."""
        refuse_second_set(self, algorithms)

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, and add the pool with its keys."""
        add_prefixes(learner, str(self), self.layers, self.length, self.pool)
        keys = torch.empty(self.pool, learner.model.encoder.width).uniform_(-1, 1)
        learner.model.register_parameter("prompt_keys", parameter(learner, keys))
        self._near = Noted()
        learner.model.choose = partial(_choose, learner.model, self.top, self._near)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The distance between each example and the keys of its prompts."""
        learner.examples_forward += len(batch.ids)
        near = self._near.take(len(batch.parts))
        rows = [weighted((1 - own).sum(1), part) for own, part in zip(near, batch.parts, strict=True)]
        return self.strength * learner.share(torch.cat(rows), len(batch.ids))


def _choose(model: Network, top: int, noted: Noted, inputs: Mapping[str, Tensor], head: str) -> Tensor:
    """The numbers of the prompts whose keys are nearest, (examples, top)."""
    keys = model.get_parameter("prompt_keys")
    near, chosen = (query(model, inputs).to(keys) @ functional.normalize(keys, dim=-1).T).topk(top)
    if model.training:
        noted.append(near)
    return chosen
