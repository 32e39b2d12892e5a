"""RanPAC: frozen features, a fixed random projection with a ReLU, and a ridge regression on the classes.

Paper: McDonnell et al. 2023, "RanPAC: Random Projections and Pre-trained Models for Continual Learning" (its second
phase; the first, which adapts the encoder to the first stage, is left out).
Equation: h = max(f(x)' W, 0), with W drawn once from a normal distribution; G = sum of h h', C = sum of h y', and the
logits are h' (G + r I)^-1 C. The ridge r is the power of ten, from 1e-8 to 1e8, with the smallest squared error on
examples of the stage that are held out for it: a fifth of them, but at most about 4,000, by a hash of their numbers.
Cost: one forward pass over each example and, for each stage, two eigendecompositions, each of about 9 `dimensions`^3
operations.
Memory: `dimensions`^2 numbers in float64, and `dimensions` numbers for each class: 32 MB at 2,000 dimensions, 800 MB at
the paper's 10,000. The model grows by the projection and the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.analytic import Analytic, Sums
from holdfast.data.order import mix
from holdfast.types import Between

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

RIDGES = [10.0**power for power in range(-8, 9)]


class RandomProjection(nn.Module):
    """Features through random weights and a ReLU."""

    def __init__(self, width: int, dimensions: int, seed: int) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.register_buffer("weight", torch.randn(dimensions, width, generator=draw))
        self.weight: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """The lifted features."""
        return functional.linear(x, self.weight).relu()


@dataclass
class RanPAC(Analytic):
    """Ridge regression on random non-linear features of a frozen encoder."""

    version: ClassVar[int] = 2
    keeps: ClassVar[frozenset[str]] = frozenset({"statistics"})
    pretrained: ClassVar[bool] = True
    holds_out: ClassVar[bool] = True

    dimensions: Annotated[int, Between(1)] = 2000
    """The width of the random projection; the paper uses 10,000, which takes 800 MB and minutes for each stage."""
    ridge: Annotated[float, Between(0)] | None = None
    """The strength of the ridge; none: chosen at each stage on held-out examples of it."""
    chosen: float = field(init=False, repr=False, compare=False)

    def setup(self, learner: Learner) -> None:
        """Start with the given ridge."""
        super().setup(learner)
        self.chosen = 1.0 if self.ridge is None else self.ridge

    def lift(self, learner: Learner, width: int) -> tuple[nn.Module, int]:
        """The random projection, which follows from the seed."""
        return RandomProjection(width, self.dimensions, mix(learner.seed, 0x2A4D)), self.dimensions

    def choose(self, learner: Learner, others: Sums, x: Tensor, y: Tensor) -> None:
        """The ridge with which the other examples predict the held-out ones best."""
        if self.ridge is not None:
            return
        values, vectors = _spectrum(others)
        errors = []
        for ridge in RIDGES:
            weight = _solution(values, vectors, others, ridge)
            errors.append((x @ weight.T - y).square().sum())
        total = torch.stack(errors)
        learner.ranks.sum([total])
        self.chosen = RIDGES[int(total.argmin())]

    def solve(self, sums: Sums) -> tuple[Tensor, Tensor]:
        """The solution of the ridge regression."""
        return _solution(*_spectrum(sums), sums, self.chosen), torch.zeros_like(sums.count)

    def state_dict(self) -> dict[str, Any]:
        """The sums and the ridge."""
        return super().state_dict() | {"ridge": self.chosen}

    def load_state_dict(self, learner: Learner, state: Mapping[str, Any]) -> None:
        """Restore the sums and the ridge."""
        super().load_state_dict(learner, state)
        self.chosen = state["ridge"]


def _spectrum(sums: Sums) -> tuple[Tensor, Tensor]:
    """The eigenvalues and eigenvectors of G, without those that only rounding keeps from 0.

    With the smallest ridges, a factorisation of G + r I would divide that rounding by r, and the fifth digit of the
    weights would depend on the machine.
    """
    values, vectors = torch.linalg.eigh(sums.products)
    large = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    return values[large], vectors[:, large]


def _solution(values: Tensor, vectors: Tensor, sums: Sums, ridge: float) -> Tensor:
    """The weights (outputs, width): C' V (D + r I)^-1 V', where G = V D V'."""
    return (sums.features @ vectors / (values + ridge)) @ vectors.T
