"""One set of low-rank updates, which is merged into the layers' own weights after each stage and then starts again.

So the model remains one network for all stages, evaluation needs no task id, and the model grows by one set only. The
methods differ in the directions of a layer's input that a stage's update reads: `past` describes those of earlier
stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from torch import Tensor

from holdfast.algorithms.adapters import places, refuse_second_set
from holdfast.algorithms.base import Algorithm, refuse_trait
from holdfast.algorithms.lora import additions
from holdfast.models.adapters import LowRankAddition
from holdfast.types import Between

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

SET = "merged"


@dataclass
class MergedUpdates(Algorithm, ABC):
    """Trains one set of low-rank updates and the heads; after each stage, the updates are merged."""

    needs: ClassVar[frozenset[str]] = frozenset({"blocks", "boundaries"})
    keeps: ClassVar[frozenset[str]] = frozenset({"statistics"})
    pretrained: ClassVar[bool] = True
    traits = frozenset({"adds-to-blocks", "sets-weights"})

    rank: Annotated[int, Between(1)] = 8
    """The rank of each update."""
    past: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    """By place: directions of the inputs of past stages."""

    @abstractmethod
    def factor(self) -> float:
        """The scale of the updates."""

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that add to the same blocks, or set weights between stages."""
        refuse_second_set(self, algorithms)
        refuse_trait(self, algorithms, "sets-weights", "merges its updates into the weights after each stage")

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, and add the set."""
        made = [additions(block, self.rank, self.factor(), str(self)) for block in places(learner, str(self))]
        learner.freeze(learner.model.encoder)
        learner.model.add(SET, made)
        learner.model.active, self.past = SET, {}

    def updates(self, learner: Learner) -> dict[str, LowRankAddition]:
        """The updates by their places."""
        return {
            f"{number}/{name}": update
            for number, block in enumerate(learner.model.encoder.blocks())
            for name, update in block.updates(SET).items()
        }

    def merge(self, learner: Learner) -> None:
        """Merge the updates into the layers' weights, so that they are zero again."""
        for block in learner.model.encoder.blocks():
            block.merge(SET)

    def memory_bytes(self, learner: Learner) -> int:
        """The directions of past stages."""
        return sum(directions.nbytes for directions in self.past.values())

    def state_dict(self) -> dict[str, Any]:
        """The directions; the updates are the model's."""
        return {"past": dict(self.past)}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the directions."""
        self.past = {place: directions.to(learner.device) for place, directions in state["past"].items()}
