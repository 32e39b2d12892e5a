"""Elastic weight consolidation: weights that past stages depend on are held near where those stages left them.

Paper: Kirkpatrick et al. 2017, "Overcoming catastrophic forgetting in neural networks"; the online form: Schwarz et
al. 2018, "Progress & Compress".
Equation: loss + strength (/ 2 if half) * sum_k sum_i F_ki (theta_i - theta_ki)^2 over past stages k, with F_k the
diagonal Fisher of stage k and theta_k the weights at its end. `past` is sum (all past stages), one (each step draws
one of them), or online (F = decay * F + F_k, and only the last stage's weights).
Presets: CLiMB strength=100 half=false where=encoder past=one share=0.01; Greco et al. strength=100, 1000 or 10000;
CFST past=sum half=false fisher=batched share=1 with strength from 0.1 to 100 by dataset.
Units: `strength` is the paper's lambda. Avalanche (EWCPlugin) has no half and a Fisher of whole batches: ewc_lambda =
strength with half=false fisher=batched share=1; with half=true, strength = 2 ewc_lambda. Squared gradients of batches
are smaller than the mean of the examples' squared gradients, by up to a factor of the batch size: at the same strength,
the other Fisher constrains that much more. Mammoth (ewc-on): e_lambda = strength with half=false past=online
decay=gamma fisher=empirical share=1, except that its Fisher weights an example's square by the probability of its
answer.
Cost: a step takes no more passes than fine-tuning, only three sweeps over the weights; the end of a stage takes the
passes of the Fisher (see fisher.py) over `most` of its examples, or a `share` of them.
Memory: two numbers for each weight; with past=one, two for each weight and past stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.fisher import Kind, batched, check_fisher, fisher
from holdfast.algorithms.importance import Named, Penalty, copies, some_of
from holdfast.data.order import mix
from holdfast.errors import UserError
from holdfast.types import Batch, Between, Stage, Stream

if TYPE_CHECKING:
    from torch import nn

    from holdfast.engine.learner import Learner


@dataclass
class EWC(Algorithm):
    """A quadratic penalty weighted by the Fisher information of past stages."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    instead: ClassVar[Mapping[str, str]] = {"most": "share"}
    strengths: ClassVar[tuple[str, ...]] = ("strength",)
    traits = frozenset({"weight-penalty"})

    strength: Annotated[float, Between(0)] = 100.0
    """The weight of the penalty (lambda)."""
    fisher: Kind = "sampled"
    """exact: over all of the model's own answers. sampled: over one answer drawn from them. empirical: over the true
    answer. batched: the square of a batch's gradient."""
    past: Literal["sum", "one", "online"] = "sum"
    """sum: hold weights for all past stages together. one: for one of them, drawn in each step. online: for a running
    sum that fades by `decay`."""
    decay: Annotated[float, Between(0, 1)] = 1.0
    """With past=online: how much of the earlier Fisher remains at the end of a stage."""
    half: bool = True
    """Whether the penalty is halved, as in the paper's equation."""
    where: Literal["all", "encoder"] = "all"
    """Which weights are held: all of them, or the encoder's."""
    most: Annotated[int, Between(1)] = 1000
    """Estimate the Fisher from at most N examples of a stage, drawn at random; each takes a pass of its own."""
    share: Annotated[float, Between(0, 1)] | None = None
    """In place of `most`: the share of a stage's examples, at least one."""
    fidelity: Literal["paper", "released"] = "paper"
    """paper: as the paper describes it. released: as CLiMB's code, where gradients accumulate over the batches of a
    batched Fisher."""
    penalties: list[Penalty] = field(init=False, repr=False, compare=False)
    stages: int = field(init=False, repr=False, compare=False)
    in_all: int | None = field(init=False, default=None, repr=False, compare=False)
    """The number of stages in the stream; None if unknown."""

    def __post_init__(self) -> None:
        if self.fidelity == "released" and self.fisher != "batched":
            raise UserError(
                f"ewc.fidelity is released, which supports only a batched Fisher, but ewc.fisher is {self.fisher}: "
                "set ewc.fisher=batched"
            )

    def check(self, stream: Stream) -> None:
        """Note the number of stages: nothing follows the last one, so no penalty is made for it."""
        self.in_all = len(stream.stages)

    def setup(self, learner: Learner) -> None:
        """Start without past stages."""
        check_fisher(learner, self.fisher)
        self.penalties, self.stages = [], 0
        self._random = np.random.default_rng(mix(learner.seed, 0xE3C))

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Add the penalty's gradient."""
        if self.penalties:
            chosen = self.penalties[self._random.integers(len(self.penalties)) if len(self.penalties) > 1 else 0]
            chosen.add_gradient(learner.model, self.strength * (0.5 if self.half else 1.0))

    def end(self, learner: Learner, stage: Stage) -> None:
        """Compute the stage's Fisher and keep its weights, if another stage follows."""
        if self.stages + 1 == self.in_all:
            self.stages += 1
            return
        parameters = learner.trainable()
        if self.where == "encoder":
            parameters = {name: p for name, p in parameters.items() if name.startswith("encoder.")}
        weights, anchors = self._fisher(learner, stage, parameters), copies(parameters)
        self.stages += 1
        if self.past == "one" or not self.penalties:
            self.penalties.append(Penalty(weights, anchors))
        elif self.past == "sum":
            self.penalties = [self.penalties[0].plus(weights, anchors)]
        else:
            before = self.penalties[0]
            kept = {name: self.decay * value for name, value in before.weights.items()}
            weights = kept | {n: kept[n] + value if n in kept else value for n, value in weights.items()}
            self.penalties = [Penalty(weights, before.anchors | anchors)]

    def _fisher(self, learner: Learner, stage: Stage, parameters: dict[str, nn.Parameter]) -> Named:
        seed = mix(learner.seed, 0xF15, self.stages)
        ids = some_of(stage, self.share, self.most, seed)
        if self.fisher == "batched":
            return batched(learner, ids, parameters, stage.training.batch_size, running=self.fidelity == "released")
        return fisher(learner, ids, parameters, self.fisher, seed)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the Fishers and of the weights they anchor."""
        return sum(penalty.nbytes for penalty in self.penalties)

    def state_dict(self) -> dict[str, Any]:
        """The penalties, and which of them is drawn next."""
        return {
            "penalties": [penalty.state_dict() for penalty in self.penalties],
            "stages": self.stages,
            "random": self._random.bit_generator.state,
        }

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.penalties = [Penalty.from_state(saved, learner.device) for saved in state["penalties"]]
        self.stages = state["stages"]
        self._random.bit_generator.state = state["random"]
