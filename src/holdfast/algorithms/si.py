"""Synaptic intelligence: weights whose movement lowered past losses are held at their values after the last stage.

Paper: Zenke et al. 2017, "Continual Learning Through Synaptic Intelligence"; strength 1 and damping 0.001 are its
values for split MNIST.
Equation: loss + strength * sum_i Omega_i (theta_i - theta*_i)^2, with theta* the weights at the start of the stage and
Omega the sum over past stages of max(omega_i, 0) / ((theta_i(end) - theta_i(start))^2 + damping). omega_i is the fall
of the loss along the way: the sum over steps of -g_i times the step's movement, with g the gradient without penalty.
(The paper does not bound omega from below; a negative one would push its weight away from its anchor.)
Units: `strength` and `damping` are the paper's c and xi, and Mammoth's (si), which also clips each gradient to 1 and
does not bound omega. Avalanche has a half, a damping of 1e-7 and an Omega of at most 0.001: si_lambda = 2 strength.
Cost: no more passes than fine-tuning; a few sweeps over the weights in each step.
Memory: three numbers for each weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.algorithms.base import Algorithm, refuse_trait
from holdfast.algorithms.importance import Named, Penalty, copies, on_device
from holdfast.types import Batch, Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class SI(Algorithm):
    """A quadratic penalty weighted by each weight's contribution to the decrease of past losses."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    strengths: ClassVar[tuple[str, ...]] = ("strength",)

    strength: Annotated[float, Between(0)] = 1.0
    """The weight of the penalty (c)."""
    damping: Annotated[float, Between(1e-12)] = 1e-3
    """Added to the squared movement (xi), so that a weight that hardly moved does not get an unbounded importance."""
    penalty: Penalty = field(init=False, repr=False, compare=False)
    falls: Named = field(init=False, repr=False, compare=False)
    """omega: how far each weight's movement has lowered this stage's loss so far."""
    stages: int = field(init=False, repr=False, compare=False)

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Refuse algorithms that move the weights outside the steps it follows, or that try several fits."""
        refuse_trait(self, algorithms, "extra-steps", "follows one step for each batch")
        refuse_trait(self, algorithms, "several-fits", "follows one path of the weights through a stage")

    def setup(self, learner: Learner) -> None:
        """Start without anchors."""
        self.penalty, self.falls, self.stages = Penalty({}, {}), {}, 0
        self._followed: list[tuple[nn.Parameter, Tensor, Tensor, Tensor]] | None = None
        self._step: tuple[tuple[Tensor, ...], ...] = ()

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Anchor the current weights, by their importance so far, and follow their movement from now on."""
        parameters = learner.trainable()
        weights = {n: self.penalty.weights.get(n, torch.zeros_like(p)) for n, p in parameters.items()}
        before = self.penalty
        self.penalty = Penalty(before.weights | weights, before.anchors | copies(parameters))
        self.falls = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        self._followed = None

    @torch.no_grad()
    def grads(self, learner: Learner, batch: Batch) -> None:
        """Note the gradient and the weights, then add the penalty's gradient."""
        if self._followed is None:
            parameters = dict(learner.model.named_parameters())
            self._followed = [
                (parameters[name], fall, torch.empty_like(fall), torch.empty_like(fall))
                for name, fall in self.falls.items()
            ]
        used = [(p, p.grad, fall, noted, before) for p, fall, noted, before in self._followed if p.grad is not None]
        if used:
            parameters_, gradients, falls, noted, before = zip(*used, strict=True)
            torch._foreach_copy_(noted, gradients)  # later hooks may change gradients in place
            torch._foreach_copy_(before, parameters_)
            self._step = parameters_, falls, noted, before
        if self.stages:
            self.penalty.add_gradient(learner.model, self.strength)

    @torch.no_grad()
    def after(self, learner: Learner, batch: Batch) -> None:
        """Add the effect of the step's movement on the loss."""
        if self._step:
            parameters, falls, gradients, before = self._step
            torch._foreach_sub_(before, parameters)
            torch._foreach_addcmul_(falls, gradients, before)
        self._step = ()

    def end(self, learner: Learner, stage: Stage) -> None:
        """Turn the decrease of the loss into importance."""
        parameters, weights = dict(learner.model.named_parameters()), dict(self.penalty.weights)
        for name, fall in self.falls.items():
            moved = parameters[name].detach() - self.penalty.anchors[name]
            # A weight whose movement raised the loss would be pushed away from its anchor, without bound.
            weights[name] = weights[name] + fall.clamp(min=0) / (moved.square() + self.damping)
        self.penalty, self.falls = Penalty(weights, self.penalty.anchors), {}
        self.stages += 1

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the importance, the anchored weights, and the loss decrease of this stage."""
        return self.penalty.nbytes + sum(fall.nbytes for fall in self.falls.values())

    def state_dict(self) -> dict[str, Any]:
        """The anchors and importance, and this stage's progress."""
        return {"penalty": self.penalty.state_dict(), "falls": self.falls, "stages": self.stages}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.penalty = Penalty.from_state(state["penalty"], learner.device)
        self.falls, self._followed = on_device(state["falls"], learner.device), None
        self.stages = state["stages"]
