"""SimpleCIL: the mean feature of each class is its weight, and the cosine to it its logit; nothing is trained.

Paper: Zhou et al. 2023, "Revisiting Class-Incremental Learning with Pre-Trained Models: Generalizability and Adaptivity
are All You Need", section 3.3: the frozen encoder of a pre-trained model, with a prototype for each class.
Equation: w_c = mean of f(x) over the examples x of class c; the class of x is argmax_c f(x)' w_c / (|f(x)| |w_c|). The
logits here are |f(x)| times the cosine, which has the same largest one.
Cost: one forward pass over each example. Memory: one vector and one count for each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.analytic import Analytic, Sums

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class SimpleCil(Analytic):
    """The class whose mean feature is most similar, by the cosine, in a frozen encoder."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"statistics"})
    pretrained: ClassVar[bool] = True
    products: ClassVar[bool] = False

    def lift(self, learner: Learner, width: int) -> tuple[nn.Module, int]:
        """The features as they are: their length does not change which class is nearest."""
        return nn.Identity(), width

    def solve(self, sums: Sums) -> tuple[Tensor, Tensor]:
        """The direction of each class's mean."""
        return functional.normalize(sums.features, dim=-1), torch.zeros_like(sums.count)
