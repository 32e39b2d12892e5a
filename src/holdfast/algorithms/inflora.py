"""InfLoRA: low-rank updates that read only directions of a stage's inputs which earlier stages did not use.

Paper: Liang and Li 2024, "InfLoRA: Interference-Free Low-Rank Adaptation for Continual Learning". A layer W x gets
B A x, where B learns, from zero in each stage, and A does not; afterwards it is merged into W. The paper adds to
keys and values of attention; here, as with `lora`, it is queries and values, or all linear layers of other modules.
Equation: H = the mean of x x' over a layer's inputs in the new stage; M = an orthonormal basis of what past stages
read; A = the first `rank` left singular vectors of (I - M M') H, divided by sqrt(3). After a stage, M gets the first
left singular vectors of (I - M M') H, with H of the merged network: as few as make |M M' H|^2 >= e |H|^2, where e rises
from `share` to `last_share` in equal steps. One basis gives what the paper's two do: its second only saves memory.
Cost: one forward and one backward pass; before and after each stage, a forward pass over `count` of its examples, which
every rank computes for itself, and a singular value decomposition for each layer.
Memory: at most width x width numbers for each layer. The model grows by one set of updates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.algorithms.low_rank import MergedUpdates
from holdfast.data.order import shuffled
from holdfast.types import Between, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

CHUNK = 256
NOTHING = 1e-9
"""Singular values below this share of the largest one are rounding errors."""


@dataclass
class InfLora(MergedUpdates):
    """Low-rank updates within the directions of a stage's inputs that earlier stages did not use."""

    version: ClassVar[int] = 1

    rank: Annotated[int, Between(1)] = 10
    """The rank of each update."""
    share: Annotated[float, Between(0, 1)] = 0.95
    """How much of the first stage's inputs later stages avoid, as a share of the sum of squares."""
    last_share: Annotated[float, Between(0, 1)] = 1.0
    """The share that `share` approaches in equal steps; a stage after the last one would have it."""
    count: Annotated[int, Between(1)] = 1024
    """The number of examples that describe a stage."""
    stages: int = field(init=False, repr=False, compare=False)
    ended: int = field(init=False, repr=False, compare=False)

    def factor(self) -> float:
        """The factor on the updates: 1, as their directions already have the right length."""
        return 1.0

    def check(self, stream: Stream) -> None:
        """Note the number of stages."""
        self.stages = len(stream.stages)

    def setup(self, learner: Learner) -> None:
        """Add the updates, with frozen directions."""
        super().setup(learner)
        self.ended = 0
        for update in self.updates(learner).values():
            update.down.requires_grad_(False)

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Set the directions."""
        updates = self.updates(learner)
        for place, inputs in self._inputs(learner, stage).items():
            down = updates[place].down
            vectors, _ = singular(beside(inputs, self.past.get(place)), inputs)
            rows = vectors[:, : self.rank].T / math.sqrt(3)
            rows = torch.cat([rows, rows.new_zeros(self.rank - len(rows), rows.shape[1])])
            with torch.no_grad():
                down.weight.copy_(rows.repeat(len(down.weight) // self.rank, 1))

    def end(self, learner: Learner, stage: Stage) -> None:
        """Merge the updates, and add to the basis what the stage's inputs read."""
        self.merge(learner)
        share = self.share + (self.last_share - self.share) * self.ended / self.stages
        for place, inputs in self._inputs(learner, stage).items():
            past = self.past.get(place)
            left = beside(inputs, past)
            vectors, squares = singular(left, inputs)
            total = inputs.square().sum()
            reached = (total - left.square().sum() + torch.cat([squares.new_zeros(1), squares.cumsum(0)])) / total
            chosen = vectors[:, : int((reached < share).sum())]
            self.past[place] = chosen if past is None else torch.cat([past, chosen], 1)
        self.ended += 1

    def _inputs(self, learner: Learner, stage: Stage) -> dict[str, Tensor]:
        """By place: the mean of x x' over the inputs of its layer."""
        chosen = shuffled(stage.train, seed=learner.seed, stage=self.ended, epoch=-1)[: self.count]
        learner.model.eval()
        with torch.no_grad(), _summing(self.updates(learner)) as found:
            for start in range(0, len(chosen), CHUNK):
                for part in learner.data.fetch(chosen[start : start + CHUNK], learner.device).parts:
                    learner.tasks[part.task].forward(learner.model, part)
        learner.examples_forward += len(chosen)
        learner.train_mode()
        return {place: total / count for place, (total, count) in found.items()}

    def state_dict(self) -> dict[str, Any]:
        """The bases, and the number of stages so far."""
        return super().state_dict() | {"ended": self.ended}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore them."""
        super().load_state_dict(learner, state)
        self.ended = state["ended"]


@contextmanager
def _summing(modules: dict[str, Any]) -> Iterator[dict[str, tuple[Tensor, int]]]:
    """Within the context, sum x x' in float64 over what each module gets, and count."""
    found: dict[str, tuple[Tensor, int]] = {}

    def called(place: str, module: nn.Module, args: tuple[Tensor]) -> None:
        rows = args[0].flatten(0, -2).double()
        total, count = found.get(place, (0.0, 0))
        found[place] = rows.T @ rows + total, count + len(rows)

    hooks = [module.register_forward_pre_hook(partial(called, place)) for place, module in modules.items()]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def beside(inputs: Tensor, past: Tensor | None) -> Tensor:
    """The part of the inputs that is orthogonal to a basis."""
    return inputs if past is None else inputs - past @ (past.T @ inputs)


def singular(matrix: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """The left singular vectors, with their largest entries positive, and the squares of their values; no rounding."""
    vectors, values, _ = torch.linalg.svd(matrix)
    vectors = vectors[:, values > NOTHING * whole.norm()]
    top = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * top.sign(), values[: vectors.shape[1]].square()
