from dataclasses import dataclass

import holdfast as hf


@dataclass(frozen=True)
class Locate(hf.Task):
    """Where something is, as a row and a column; scored by the share that is found to within a pixel."""

    name: str
    head: str
    outputs: int = 2
    chance: float = 0.25

    def forward(self, model, part):
        return model(part.inputs, self.head)

    def losses(self, output, part):
        return ((output - part.targets) ** 2).mean(-1)

    def predictions(self, output, part):
        return output

    def score(self, predictions, targets):
        return float((abs(predictions - targets) < 1.5).all(-1).mean())
