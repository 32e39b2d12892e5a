"""Memory aware synapses: weights to which the outputs are sensitive are held at their values after the last stage.

Paper: Aljundi et al. 2018, "Memory Aware Synapses: Learning what (not) to forget".
Equation: loss + strength * sum_i Omega_i (theta_i - theta*_i)^2, with theta* the weights at the end of the last stage
and Omega the sum over past stages of the mean over examples of |d ||f(x)||^2 / d theta_i|; f is the task's output
before any softmax, and the places of a phrase that hide no word do not count.
Units: `strength` is the paper's lambda. Avalanche (MASPlugin): lambda_reg = strength in the second stage with batches
of one example and share=1; its Omega uses whole batches' gradients, |mean| instead of the mean of |.|, and so is
smaller; from the third stage on it is a moving average (alpha), not a sum. Mammoth has no MAS.
Cost: a step takes no more passes than fine-tuning; the end of a stage takes two forward passes and one backward pass
over `most` of its examples, or a `share` of them. Memory: two numbers for each weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.importance import Penalty, copies, importance, some_of
from holdfast.data.order import mix
from holdfast.types import Batch, Between, Ids, Part, Stage, Stream, Task

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class MAS(Algorithm):
    """A quadratic penalty weighted by how much the outputs' norm changes with each weight."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    instead: ClassVar[Mapping[str, str]] = {"most": "share"}
    strengths: ClassVar[tuple[str, ...]] = ("strength",)
    traits = frozenset({"weight-penalty"})

    strength: Annotated[float, Between(0)] = 1.0
    """The weight of the penalty (lambda)."""
    most: Annotated[int, Between(1)] = 1000
    """Estimate the importance from at most N examples of a stage, drawn at random; each takes a pass of its own."""
    share: Annotated[float, Between(0, 1)] | None = None
    """In place of `most`: the share of a stage's examples, at least one."""
    penalty: Penalty | None = field(init=False, repr=False, compare=False)
    stages: int = field(init=False, repr=False, compare=False)
    in_all: int | None = field(init=False, default=None, repr=False, compare=False)
    """The number of stages in the stream; None if unknown."""

    def check(self, stream: Stream) -> None:
        """Note the number of stages: nothing follows the last one, so no penalty is made for it."""
        self.in_all = len(stream.stages)

    def setup(self, learner: Learner) -> None:
        """Start without past stages."""
        self.penalty, self.stages = None, 0

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Add the penalty's gradient."""
        if self.penalty is not None:
            self.penalty.add_gradient(learner.model, self.strength)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Add the stage's importance, and anchor the weights at their current values, if another stage follows."""
        if self.stages + 1 == self.in_all:
            self.stages += 1
            return
        parameters = learner.trainable()
        ids = some_of(stage, self.share, self.most, mix(learner.seed, 0x3A5, self.stages))
        weights, anchors = importance(learner, ids, parameters, _norm_slope, torch.abs), copies(parameters)
        if self.penalty is not None:
            before = self.penalty.weights
            weights = before | {n: before[n] + value if n in before else value for n, value in weights.items()}
            anchors = self.penalty.anchors | anchors
        self.penalty, self.stages = Penalty(weights, anchors), self.stages + 1

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the importance and of the anchored weights."""
        return 0 if self.penalty is None else self.penalty.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The penalty."""
        return {"penalty": None if self.penalty is None else self.penalty.state_dict(), "stages": self.stages}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        saved = state["penalty"]
        self.penalty = None if saved is None else Penalty.from_state(saved, learner.device)
        self.stages = state["stages"]


def _norm_slope(task: Task, part: Part, output: Tensor, ids: Ids) -> Iterator[Tensor]:
    """The slope of each row's squared norm."""
    slope = 2 * output
    yield slope * (part.targets >= 0).unsqueeze(-1) if task.reads.kind == "phrase" else slope
