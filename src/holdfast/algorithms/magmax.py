"""MagMax: stages are fine-tuned one after another; each weight takes the largest change that it had after any of them.

Paper: Marczak et al. 2024, "MagMax: Leveraging Model Merging for Seamless Continual Learning".
Equation: t_i = w_i - w_0, with w_0 the weights before the first stage and w_i those after stage i, from which the next
stage continues; m = the t_i with the largest |t_i|, weight by weight. After each stage the weights are w_0 + scale x m.
Units: `scale` is the paper's lambda; the released code has 0.5 for a pre-trained CLIP, whose heads are fixed.
Cost: no more passes than fine-tuning; after each stage, a few operations for each weight.
Memory: three copies of the weights: the first ones, those of the last stage, and the largest changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.merging import Merging


@dataclass
class MagMax(Merging):
    """Each stage continues from the last one; each weight then takes its largest change so far."""

    version: ClassVar[int] = 1

    def from_last(self) -> bool:
        """True: each stage starts from the weights with which the last one ended."""
        return True

    def kept(self, changes: Tensor, new: Tensor) -> Tensor:
        """The largest change of each weight."""
        return torch.where(new.abs() >= changes.abs(), new, changes)

    def merged(self, changes: Tensor) -> Tensor:
        """The largest changes."""
        return changes[0]
