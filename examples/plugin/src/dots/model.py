from dataclasses import dataclass
from typing import Annotated

import holdfast as hf


@dataclass(frozen=True)
class DotsNet(hf.Model):
    """Two layers over the pixels."""

    width: Annotated[int, hf.Between(1)] = 64

    def encoder(self, inputs):
        return hf.models.Perceptron(width=self.width, depth=1).encoder(inputs)
