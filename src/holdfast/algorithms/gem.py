"""GEM: the nearest gradient along which the loss of no past stage rises.

Papers: Lopez-Paz and Ranzato 2017, "Gradient Episodic Memory"; CFST with 32 examples per stage and a strength of 0.3.
Equation: with the rows of G the gradients of past stages' kept examples, g + G'v, where v minimises
v'GG'v / 2 + g'G'v under v >= strength; this applies only if some entry of Gg is negative, else g. (The first paper adds
the strength to v; its code and CFST bound v by it, which preserves every inequality.)
Units: `strength` is the bound on v, called memory_strength in the authors' code and Avalanche, and gamma in Mammoth.
Cost: one forward and one backward pass over the batch and one over each past stage's kept examples, and waiting for
one small matrix from the device. Memory: `examples` of each stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import torch

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.gradients import Gradients, assign, flat, gradients, memory_gradients
from holdfast.data.order import mix
from holdfast.memory import Latest
from holdfast.types import Array, Batch, Between, Ids, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

PIECE, TOGETHER = 2**14, 2**8
"""How many numbers of each gradient are multiplied in one piece, and how many pieces are held in float64 at once."""


@dataclass
class Gem(Algorithm):
    """Projects the gradient so that the mean loss of each past stage's kept examples does not rise."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    strengths: ClassVar[tuple[str, ...]] = ("strength",)

    examples: Annotated[int, Between(1)] = 32
    """How many examples of each stage are kept."""
    strength: Annotated[float, Between(0)] = 0.3
    """The minimum weight of each past stage's gradient in a projected step; above 0, past stages improve."""
    keep: Literal["last", "random"] = "last"
    """Which examples are kept: those of a stage that were seen last, going by when each was first seen, or random
    ones."""
    kept: list[Ids] = field(init=False, repr=False, compare=False)
    recent: Latest = field(init=False, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (Latest,)

    def setup(self, learner: Learner) -> None:
        """Start without past stages."""
        self.kept, self.recent = [], Latest(self.examples, mix(learner.seed, 0x6E3))

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Remove whatever would raise the loss of a past stage."""
        if not self.kept:
            return
        own = gradients(learner)
        past = [memory_gradients(learner, ids) for ids in self.kept]
        gram, products = _products(past, own)
        if (products < 0).any():
            _add(own, past, dual(gram, products, self.strength))
        assign(learner, own)

    def after(self, learner: Learner, batch: Batch) -> None:
        """Note the last new examples."""
        if self.keep == "last":
            self.recent.add(batch.ids)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep examples of the stage."""
        kept = self.recent.take()
        if self.keep == "random":
            kept = stage.train[torch.randperm(len(stage.train))[: self.examples].numpy()]
        if len(kept):  # empty if a stage brought nothing new
            self.kept = [*self.kept, kept]

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        kept = sum(learner.data.example_bytes(ids) + ids.nbytes for ids in self.kept)
        return kept + learner.data.example_bytes(self.recent.ids) + self.recent.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The examples kept of each stage, and of the current one."""
        return {"kept": [{"ids": ids} for ids in self.kept], "recent": self.recent.state_dict()}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the examples kept of each stage, and of the current one."""
        self.kept = [entry["ids"] for entry in state["kept"]]
        self.recent.load_state_dict(state["recent"])


def _products(past: list[Gradients], own: Gradients) -> tuple[Array, Array]:
    """GG' and Gg in float64, fetched from the device at once.

    Computed in pieces: the product of two long and narrow matrices would leave most of a device, or of a cache, idle.
    """
    everyone = [*past, own]
    shapes = {name: gradient for found in everyone for name, gradient in found.items()}
    rows = [f[name] if name in f else torch.zeros_like(like) for f in everyone for name, like in shapes.items()]
    whole = flat(rows).view(len(everyone), -1)
    even = whole.shape[1] - whole.shape[1] % PIECE
    rest = whole[:, even:].double()
    sums = [rest @ rest.T]
    for some in torch.split(whole[:, :even].view(len(everyone), -1, PIECE), TOGETHER, dim=1) if even else ():
        pieces = some.transpose(0, 1).double()
        sums.append(torch.bmm(pieces, pieces.mT).sum(0))
    found = torch.stack(sums).sum(0).cpu().numpy()
    return found[:-1, :-1], found[:-1, -1]


def _add(own: Gradients, past: list[Gradients], weights: Array) -> None:
    """Add the past stages' gradients, weighted, in place."""
    for found, weight in zip(past, weights.tolist(), strict=True):
        if shared := [name for name in found if name in own]:
            torch._foreach_add_([own[name] for name in shared], [found[name] for name in shared], alpha=weight)
        own |= {name: gradient * weight for name, gradient in found.items() if name not in own}


def dual(gram: Array, products: Array, strength: float) -> Array:
    """The v >= strength that minimises v'(gram)v / 2 + products'v.

    The part of v above `strength` solves a least-squares problem with non-negative weights. It is computed exactly by
    Lawson and Hanson's active-set method (1974), which also handles linearly dependent gradients.

    >>> dual(np.eye(2), np.array([-1.0, 2.0]), strength=0.0).tolist()
    [1.0, 0.0]
    """
    lengths = np.sqrt(np.diag(gram))
    scale = 1 / np.where(lengths > 0, lengths, 1)  # gradients of unit length, so that one tolerance fits all
    matrix = gram * np.outer(scale, scale)
    target = -scale * (products + strength * gram.sum(1))
    tolerance = 1e-12 * max(np.abs(target).max(), np.finfo(np.float64).tiny)
    above, free = np.zeros(len(gram)), np.zeros(len(gram), dtype=bool)
    for _ in range(10 * len(gram)):  # each round lowers the objective; only rounding could keep it going
        slope = np.where(free, -np.inf, target - matrix @ above)
        if slope.max() <= tolerance:
            break
        free[slope.argmax()] = True
        while True:
            best = np.zeros(len(gram))
            best[free] = np.linalg.lstsq(matrix[np.ix_(free, free)], target[free], rcond=None)[0]
            blocked = free & (best <= 0)
            if not blocked.any():
                break
            shares = above[blocked] / np.maximum(above[blocked] - best[blocked], np.finfo(np.float64).tiny)
            above = above + shares.min() * (best - above)
            free &= ~(blocked & (above <= tolerance))
            free[np.flatnonzero(blocked)[shares.argmin()]] = False  # the first to reach 0, regardless of rounding
            above[~free] = 0
        above = best
    weights: Array = strength + scale * above
    return weights
