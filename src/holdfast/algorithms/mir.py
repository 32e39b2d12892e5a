"""ER-MIR: replay the kept examples that the next step would harm most.

Papers: Aljundi et al. 2019, "Online Continual Learning with Maximally Interfered Retrieval"; VisCOLL, with 64 or 80
candidates for a batch of 32, and as ER-MIR-max (`by=max`), which ranks a phrase by the word that is harmed most.
Equation: of the candidates, those with the largest loss(x; w') - loss(x; w), where w' are the weights after an
optimiser step on the new examples alone; the real step is then on the new and the chosen examples together.
Cost: a forward and a backward pass over the new and the same number of chosen examples, two forward passes over the
candidates, an additional optimiser step, and waiting for one small vector from the device. With algorithms that inspect
the batch or its gradients, and with batch normalisation, a second pass over the new examples. Memory: `capacity`
examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.algorithms.base import Algorithm, Fit, overrides
from holdfast.data.order import mix
from holdfast.errors import UserError
from holdfast.memory import Reservoir, refuse_small
from holdfast.types import Batch, Between, Ids, Part, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.tasks import MaskedPhrase


@dataclass(frozen=True)
class _New:
    """What the virtual step has computed about the new examples: the gradients of their mean loss, in order."""

    share: float
    """Their share of the mean over them and the chosen examples."""
    gradients: list[Tensor | None]


@dataclass
class Mir(Algorithm):
    """Adds to each batch the kept examples whose loss a step on the new ones would raise most."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})
    remedies: ClassVar[Mapping[str, str]] = {"extra-steps": "set mir.fidelity=paper"}
    recordable: ClassVar[bool] = True

    capacity: Annotated[int, Between(1)] = 200
    """How many past examples the memory holds."""
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples join a batch; none: as many as are new."""
    candidates: Annotated[int, Between(1)] | None = None
    """How many candidates are drawn at random to choose these from; none: twice as many."""
    by: Literal["mean", "max"] = "mean"
    """How the harm to a phrase is measured: by the mean over its words, or by its worst word. Other examples count as
    one word."""
    fidelity: Literal["paper", "released"] = "paper"
    """paper: one step on new and chosen examples together. released: as VisCOLL's code, one step on the new examples
    and then one on the chosen ones."""
    memory: Reservoir = field(init=False, repr=False, compare=False)
    steps: int = field(init=False, repr=False, compare=False)
    alone: bool = field(init=False, default=False, repr=False, compare=False)
    """Whether no other algorithm inspects the batch, or its gradients before they are complete."""
    _new: _New | None = field(init=False, repr=False, compare=False)
    _scored: tuple[Batch, int, list[Tensor]] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.fidelity == "released":
            self.traits = frozenset({"extra-steps"})

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (Reservoir,)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if the memory, or the number of candidates, cannot fill a batch."""
        refuse_small("mir", self.capacity, self.size, stream)
        wanted = self.size or max(stage.training.batch_size for stage in stream.stages)
        if self.candidates is not None and self.candidates < wanted:
            raise UserError(
                f"mir.candidates is {self.candidates}, too few to choose the {wanted} kept examples of one batch from: "
                "raise it, or leave it out"
            )

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Determine whether the others allow a batch without the new examples: penalties do, on complete gradients."""
        self.alone, before = True, True
        for other in algorithms:
            if other is self:
                before = False
                continue
            changes = overrides(other, "grads") and (before or "weight-penalty" not in other.traits)
            self.alone &= not (changes or overrides(other, "batch") or overrides(other, "loss"))

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory.

        The virtual step yields the gradient of the new examples. If no row of a batch affects another's output and no
        other algorithm needs to see them in the batch, this gradient serves as their share of the joint one, which
        saves a pass.
        """
        self._norms = [m for m in learner.model.modules() if isinstance(m, _BatchNorm)]
        self._reuses = self.alone and not self._norms and self.fidelity == "paper"
        self.memory, self.steps = Reservoir(self.capacity, mix(learner.seed, 0x3174)), 0
        self._new = self._scored = None
        self._told = torch.zeros(2, dtype=torch.float64, device=learner.device)
        """The share and the loss of the new examples, as tensors: a share of 0 adds nothing to the loss."""

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Count the steps of each fit: they determine the learning rate of the virtual step."""
        fit(self._restart)

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """The new examples, and the kept ones that a step on them would harm."""
        self._new = self._scored = None
        if len(self.memory) == 0:
            return batch
        count = self.size or len(batch.ids)
        candidates = _fetched(learner, self.memory.sample(self.candidates or 2 * count))
        if self.fidelity == "released":  # the real step on the new examples also serves as the virtual one
            with learner.evaluating():
                self._scored = candidates, count, self._losses(learner, candidates)
            return batch
        with _own_draws(learner), _still(self._norms):
            loss = learner.gradients(batch.ids)
        with learner.evaluating():
            before = self._losses(learner, candidates)
            with virtual_step(learner, self.steps):
                after = self._losses(learner, candidates)
        chosen = most_harmed(learner, candidates, count, before, after)
        if not self._reuses:
            return Batch(np.concatenate([batch.ids, chosen]))
        share = len(batch.ids) / (len(batch.ids) + len(chosen))
        self._new = _New(share, [p.grad for p in learner.parameters.values()])
        self._told[0].fill_(share)
        self._told[1].copy_(loss)
        return Batch(chosen)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """Report the mean over the batch and the new examples; their gradients are combined in `grads`."""
        if not self._reuses:
            return None
        with torch.no_grad():
            own = learner.loss(batch, outputs)
            share, loss = self._told.to(own.dtype)
            return torch.mul(share, loss - own)

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Extend the mean over the batch by the new examples, whose gradient is known."""
        if self._new is None:
            return
        share, both = self._new.share, []
        for parameter, known in zip(learner.parameters.values(), self._new.gradients, strict=True):
            if parameter.grad is not None and known is not None:
                both.append((parameter.grad, known))
            elif known is not None:
                parameter.grad = known * share
            elif parameter.grad is not None:
                parameter.grad *= 1 - share
        if both:
            own, new = zip(*both, strict=True)
            torch._foreach_lerp_(own, new, share)
        self._new = None

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory; with the released code, first take a step on the chosen ones."""
        if self._scored is not None:
            candidates, count, before = self._scored
            self._scored = None
            with learner.evaluating():
                after = self._losses(learner, candidates)
            learner.gradients(most_harmed(learner, candidates, count, before, after))
            learner.step(self.steps)
        self.steps += 1
        self.memory.add(batch.ids)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory, and the number of steps of this fit."""
        return {"memory": self.memory.state_dict(), "steps": self.steps}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory, and the number of steps of this fit."""
        self.memory.load_state_dict(state["memory"])
        self.steps = state["steps"]

    def _restart(self) -> None:
        self.steps = 0

    def _losses(self, learner: Learner, batch: Batch) -> list[Tensor]:
        """The losses of this rank's examples, or of their words: one tensor for each part."""
        learner.examples_forward += len(batch.ids)
        with torch.no_grad():
            outputs = learner.forward(batch)
            return [self._of_part(learner, part, output) for part, output in zip(batch.parts, outputs, strict=True)]

    def _of_part(self, learner: Learner, part: Part, output: Tensor) -> Tensor:
        task = learner.tasks[part.task]
        if self.by == "mean" or task.reads.kind != "phrase":
            return task.losses(output, part)
        words = cast("MaskedPhrase", task).word_losses(output, part)
        return words.masked_fill(part.targets < 0, torch.nan)  # no word, as opposed to a word whose loss is unchanged


def _fetched(learner: Learner, ids: Ids) -> Batch:
    """All ids, in order, with the tensors of this rank's examples; rows, part after part, are in order too."""
    ids = np.sort(ids)
    own = ids[learner.ranks.rank :: learner.ranks.size]
    return Batch(ids, learner.data.fetch(own if len(own) else ids[:1], learner.device).parts)


def most_harmed(learner: Learner, batch: Batch, count: int, before: list[Tensor], after: list[Tensor]) -> Ids:
    """The examples of a batch whose loss has risen most, the same on every rank."""
    rises = []
    for old, new in zip(before, after, strict=True):
        rise = new - old
        rises.append(rise if rise.ndim == 1 else rise.nan_to_num(nan=-torch.inf).amax(-1))
    ids, ranks = batch.ids, learner.ranks
    own = torch.cat(rises)[: len(ids[ranks.rank :: ranks.size])]
    every = ranks.gather_rows(own, len(ids)).cpu().numpy()
    return ids[np.argsort(-every, kind="stable")[:count]]


@contextmanager
def _own_draws(learner: Learner) -> Iterator[None]:
    """Seed this rank's own draws for dropout and augmentation; hooks that follow draw alike on every rank again."""
    seed = int(torch.randint(1 << 62, ()))
    learner.draw_at(seed, learner.ranks.rank)
    yield
    learner.draw_at(seed, -1)


@contextmanager
def _still(norms: list[_BatchNorm]) -> Iterator[None]:
    """Normalise by the batch without updating the running statistics: the step is not a real one."""
    tracked = [norm.track_running_stats for norm in norms]
    for norm in norms:
        norm.track_running_stats = norm.track_running_stats and not norm.training
    try:
        yield
    finally:
        for norm, before in zip(norms, tracked, strict=True):
            norm.track_running_stats = before


@contextmanager
def virtual_step(learner: Learner, step: int) -> Iterator[None]:
    """The weights as a step with the current gradients would leave them, schedule and moments included."""
    learner.set_rate(step)
    with learner.optimiser.virtual_step():  # not `learner.step`, which ends a step: the gradients are still needed
        yield
