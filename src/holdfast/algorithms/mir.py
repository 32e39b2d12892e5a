"""ER-MIR: replay the kept examples that the step to come would harm most.

Papers: Aljundi et al. 2019, "Online Continual Learning with Maximally Interfered Retrieval"; VisCOLL, with 64 or 80
candidates for a batch of 32, and as ER-MIR-max (`by=max`), by the word of a phrase that is harmed most.
Equation: of the candidates, those with the largest loss(x; w') - loss(x; w), where w' is what the optimiser would
make of w by a step on the new examples alone; the step is then on the new and the chosen examples together.
Cost: a forward and a backward pass over the new and as many chosen examples, two forward passes over the candidates,
one more optimiser's step, and the wait for one small vector from the device. Memory: `capacity` examples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.agem import Gradients, gradients
from holdfast.algorithms.base import Algorithm, Fit
from holdfast.data.order import mix
from holdfast.errors import UserError
from holdfast.memory import Reservoir, refuse_small
from holdfast.types import Batch, Between, Ids, Part, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.tasks import MaskedPhrase


@dataclass(frozen=True)
class _New:
    """What the virtual step has found out about the new examples: their mean loss and its gradients."""

    count: int
    loss: Tensor
    gradients: Gradients


@dataclass
class Mir(Algorithm):
    """The kept examples whose loss a step on the new ones would raise most join the batch."""

    capacity: Annotated[int, Between(1)] = 200
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples join a batch; None: as many as are new."""
    candidates: Annotated[int, Between(1)] | None = None
    """Among how many, drawn at random, they are chosen; None: twice as many."""
    by: Literal["mean", "max"] = "mean"
    """A phrase is harmed by the mean over its words, or by its worst word; elsewhere an example is one word."""
    reuse: bool = True
    """Whether the gradient of the new examples, known from the virtual step, is their share of the real one.

    That is the joint batch's gradient where no row of a batch changes another's output, and a pass less. Turn it off
    beside algorithms that read the batch's outputs (LwF, DER++), or with batch normalisation."""
    fidelity: Literal["paper", "released"] = "paper"
    """released: VisCOLL's code takes two steps, one on the new examples and then one on the chosen ones."""
    memory: Reservoir = field(init=False, repr=False, compare=False)
    steps: int = field(init=False, repr=False, compare=False)
    _new: _New | None = field(init=False, repr=False, compare=False)
    _scored: tuple[Batch, int, list[Tensor]] | None = field(init=False, repr=False, compare=False)

    def check(self, stream: Stream) -> None:
        """Refuse a memory, or candidates, that cannot fill a batch."""
        refuse_small("mir", self.capacity, self.size, stream)
        wanted = self.size or max(stage.training.batch_size for stage in stream.stages)
        if self.candidates is not None and self.candidates < wanted:
            raise UserError(
                f"mir.candidates is {self.candidates}, too few to choose the {wanted} kept examples of one batch from: "
                "raise it, or leave it out"
            )

    def setup(self, learner: Learner) -> None:
        """An empty memory."""
        self.memory, self.steps = Reservoir(self.capacity, mix(learner.seed, 0x3174)), 0
        self._new = self._scored = None

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Count the steps of each fit: they set the learning rate of the virtual step."""
        fit(self._restart)

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """The new examples, and the kept ones that a step on them would harm."""
        self._new = self._scored = None
        if len(self.memory) == 0:
            return batch
        count = self.size or len(batch.ids)
        candidates = _fetched(learner, self.memory.sample(self.candidates or 2 * count))
        before = self._losses(learner, candidates)
        if self.fidelity == "released":  # the real step on the new examples will be the virtual one
            self._scored = candidates, count, before
            return batch
        with _own_draws(learner):
            new = learner.fetch(batch.ids)
            loss = learner.loss(new, learner.outputs(new))
            learner.backward(loss, new)
        with virtual_step(learner, self.steps):
            after = self._losses(learner, candidates)
        chosen = most_harmed(learner, candidates, count, before, after)
        if not self.reuse:
            return Batch(np.concatenate([batch.ids, chosen]))
        self._new = _New(len(batch.ids), loss.detach(), gradients(learner))
        return Batch(chosen)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """Make the mean over the batch a mean over it and the new examples, whose gradient is known."""
        if self._new is None:
            return None
        share = self._new.count / (self._new.count + len(batch.ids))
        return share * (self._new.loss - learner.loss(batch, outputs))

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Add the new examples' share."""
        if self._new is None:
            return
        share = self._new.count / (self._new.count + len(batch.ids))
        for name, parameter in learner.trainable().items():
            if (known := self._new.gradients.get(name)) is not None:
                parameter.grad = known * share if parameter.grad is None else parameter.grad.add_(known, alpha=share)
        self._new = None

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory, each once; with the released code, first a step on the chosen ones."""
        if self._scored is not None:
            candidates, count, before = self._scored
            self._scored = None
            after = self._losses(learner, candidates)
            chosen = learner.fetch(most_harmed(learner, candidates, count, before, after))
            learner.backward(learner.loss(chosen, learner.outputs(chosen)), chosen)
            learner.step(self.steps)
        self.steps += 1
        if learner.epoch == 0:
            self.memory.add(batch.ids)

    def memory_bytes(self, learner: Learner) -> int:
        """The kept examples and their ids."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory, and the steps of this fit."""
        return {"memory": self.memory.state_dict(), "steps": self.steps}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """The memory, and the steps of this fit."""
        self.memory.load_state_dict(state["memory"])
        self.steps = state["steps"]

    def _restart(self) -> None:
        self.steps = 0

    def _losses(self, learner: Learner, batch: Batch) -> list[Tensor]:
        """The losses of this rank's examples, or of their words, without dropout: one tensor for each part."""
        learner.examples_forward += len(batch.ids)
        learner.model.eval()
        with torch.no_grad():
            outputs = learner.forward(batch)
            losses = [self._of_part(learner, part, output) for part, output in zip(batch.parts, outputs, strict=True)]
        learner.train_mode()
        return losses

    def _of_part(self, learner: Learner, part: Part, output: Tensor) -> Tensor:
        task = learner.tasks[part.task]
        if self.by == "mean" or task.reads.kind != "phrase":
            return task.losses(output, part)
        words = cast("MaskedPhrase", task).word_losses(output, part)
        return words.masked_fill(part.targets < 0, torch.nan)  # no word: not one that keeps its loss


def _fetched(learner: Learner, ids: Ids) -> Batch:
    """All ids, in order, with the tensors of those that are this rank's; rows, part after part, are in order too."""
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
    """Draw for dropout and augmentation here without a trace: hooks that follow draw alike on every rank."""
    seed = int(torch.randint(1 << 62, ()))
    with torch.random.fork_rng([learner.device] if learner.device.type == "cuda" else []):
        learner.draw_at(seed, learner.ranks.rank)
        yield


@contextmanager
def virtual_step(learner: Learner, step: int) -> Iterator[None]:
    """The weights as the optimiser's step with the present gradients would leave them; then as they were.

    The step is the real one, schedule and moments included, on copies that stand in for the weights and the
    optimiser's state: what they stand in for is never written to.
    """
    optimiser = learner.optimiser
    moved = [p for p in learner.trainable().values() if p.grad is not None]
    weights, states = [p.data for p in moved], optimiser.state
    copies: defaultdict[Any, Any] = defaultdict(dict)
    known = [p for p in moved if p in states]
    for key in states[known[0]] if known else ():
        values = [states[p][key] for p in known]
        twins = torch._foreach_mul(values, 1) if isinstance(values[0], Tensor) else values  # a copy, in few kernels
        for parameter, twin in zip(known, twins, strict=True):
            copies[parameter][key] = twin
    try:
        for parameter, twin in zip(moved, torch._foreach_mul(weights, 1) if weights else (), strict=True):
            parameter.data = twin
        optimiser.state = copies
        learner.step(step)
        yield
    finally:
        optimiser.state = states
        for parameter, weight in zip(moved, weights, strict=True):
            parameter.data = weight
