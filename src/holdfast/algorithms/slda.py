"""SLDA: streaming linear discriminant analysis on a frozen encoder; nothing is trained.

Paper: Hayes and Kanan 2020, "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis".
Equation: with m_c the mean feature of class c, S the covariance within classes, and P = ((1 - e) S + e I)^-1,
w_c = P m_c and b_c = -m_c' P m_c / 2. The paper updates S after each example with the means of that moment; here it is
computed from exact sums, as for the whole data at once, so the order of the examples does not matter.
Cost: one forward pass over each example, and a solve of width^3 operations for each stage.
Memory: one vector and one count for each class, and a matrix of width x width numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import torch
from torch import Tensor, nn

from holdfast.algorithms.analytic import Analytic, Sums
from holdfast.types import Between

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class SLDA(Analytic):
    """Linear discriminant analysis of frozen features, with one covariance for all classes."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"statistics"})
    pretrained: ClassVar[bool] = True

    shrinkage: Annotated[float, Between(1e-12, 1)] = 1e-4
    """How far the covariance is moved towards the identity (the paper's epsilon)."""

    def lift(self, learner: Learner, width: int) -> tuple[nn.Module, int]:
        """The features as they are."""
        return nn.Identity(), width

    def solve(self, sums: Sums) -> tuple[Tensor, Tensor]:
        """The discriminants."""
        means = sums.features / sums.count.clamp(min=1)[:, None]
        within = sums.products - means.T @ (means * sums.count[:, None])
        covariance = within / sums.count.sum().clamp(min=1)
        shrunk = torch.lerp(covariance, torch.eye(len(covariance)).to(covariance), self.shrinkage)
        weight = torch.linalg.solve(shrunk, means.T).T
        return weight, -0.5 * (weight * means).sum(1)
