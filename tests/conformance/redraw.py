"""An algorithm that draws random numbers wherever it may: they must be the same on every rank."""

from dataclasses import dataclass

import numpy as np
import torch

from holdfast.algorithms.base import Algorithm
from holdfast.types import Batch


@dataclass
class Redraw(Algorithm):
    """Draws the head anew in each stage, and drops one example of each batch at random."""

    def begin(self, learner, stage):
        for head in learner.model.heads.values():
            torch.nn.init.normal_(head.classifier.weight, std=0.1)

    def batch(self, learner, batch):
        if len(batch.ids) == 1:
            return batch
        return Batch(np.delete(batch.ids, torch.randint(len(batch.ids), ()).item()))
