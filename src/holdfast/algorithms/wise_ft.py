"""WiSE-FT: after each stage, the weights lie between those that were fine-tuned and those from before.

Paper: Wortsman et al. 2022, "Robust fine-tuning of zero-shot models".
Equation: share * fine-tuned + (1 - share) * before, for each weight that learned; `before` are the weights at the
beginning of the stage or of the run.
Cost: one forward and one backward pass, as fine-tuning. Memory: a copy of the weights that learn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_trait
from holdfast.types import Between, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.learner import Learner


@dataclass
class WiseFT(Algorithm):
    """Interpolates the weights after each stage."""

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})

    share: Annotated[float, Between(0, 1)] = 0.5
    """The share of the fine-tuned weights; 1 is fine-tuning."""
    towards: Literal["stage", "start"] = "stage"
    """The weights with which they are mixed: those at the beginning of the stage, or of the run."""
    _before: dict[str, Tensor] = field(init=False, repr=False, compare=False)

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Refuse an encoder that changes from stage to stage: it has no weights from before."""
        refuse_trait(self, algorithms, "encoder-per-stage", "mixes the encoder's weights with those from before")

    def setup(self, learner: Learner) -> None:
        """Keep the weights of the start."""
        self._before = copied(learner)

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Keep the weights of the stage's beginning."""
        if self.towards == "stage":
            self._before = copied(learner)

    @torch.no_grad()
    def end(self, learner: Learner, stage: Stage) -> None:
        """Mix the weights."""
        for name, weight in learner.trainable().items():
            if name in self._before:  # a head or an addition may be newer than the copy
                weight.lerp_(self._before[name], 1 - self.share)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept weights."""
        return sum(weight.nbytes for weight in self._before.values())

    def state_dict(self) -> dict[str, Any]:
        """The kept weights."""
        return {"before": self._before}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the kept weights."""
        self._before = {name: weight.to(learner.device) for name, weight in state["before"].items()}


def copied(learner: Learner) -> dict[str, Tensor]:
    """A copy of the weights that learn."""
    return {name: weight.detach().clone() for name, weight in learner.trainable().items()}
