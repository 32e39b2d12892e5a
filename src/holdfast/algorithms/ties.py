"""TIES merging: stages are fine-tuned from the same weights; of their changes, the large ones of one sign are averaged.

Paper: Yadav et al. 2023, "TIES-Merging: Resolving Interference When Merging Models".
Equation: t_i = the change of all weights in stage i; trim: keep the share `density` with the largest |t_i|, and set the
rest to 0; elect: s = sign(sum of t_i), weight by weight; merge: m = the mean of those t_i that are not 0 and have the
sign s. After each stage the weights are w_0 + scale x m.
Units: `density` is the paper's k, 20 %, and `scale` its lambda, 1.
Cost: no more passes than fine-tuning; after each stage, a few operations for each weight and stage so far.
Memory: a copy of the weights, and one more for each stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.merging import Merging
from holdfast.types import Between


@dataclass
class Ties(Merging):
    """Each stage starts from the first weights; their changes are trimmed, and averaged where their signs agree."""

    version: ClassVar[int] = 1

    density: Annotated[float, Between(0, 1)] = 0.2
    """The share of the changes of each stage that is kept: those with the largest absolute value."""

    def from_last(self) -> bool:
        """False: each stage starts from the first weights."""
        return False

    def kept(self, changes: Tensor, new: Tensor) -> Tensor:
        """The changes of each stage."""
        return torch.cat([changes, new])

    def merged(self, changes: Tensor) -> Tensor:
        """Trim, elect signs, and average."""
        large = torch.stack([self._trimmed(change) for change in changes])
        agreeing = large * (large.sign() == large.sum(0).sign())
        return agreeing.sum(0) / (agreeing != 0).sum(0).clamp(min=1)

    def _trimmed(self, change: Tensor) -> Tensor:
        size = change.abs()
        count = round(self.density * len(size))
        if count == 0:
            return torch.zeros_like(change)
        return change * (size >= size.kthvalue(len(size) - count + 1).values)
