"""ZSCL: distils the first model on reference data that no stage teaches, and averages the weights along each stage.

Paper: Zheng et al. 2023, "Preventing zero-shot transfer degradation in continual learning of vision-language models".
Equation: loss + strength * T^2 * (KL_image + KL_text) + consolidation * |w - w_stage|^2, where the two divergences
compare the first model's softmax over a reference batch's texts for each image, and over its images for each text, with
the current model's, whose texts are the first model's, as in the authors' code. After every `every` steps the current
weights join an average that begins with those of the stage's start; the stage ends with the average.
Reference: the examples of a task that no stage teaches, such as captions. Without it, the stage's own examples.
Units: as in the equation above. The authors' code has strength 1, temperature 2, consolidation 1, every 100 of 1,000
steps, and batches of 64 examples.
Cost: beside fine-tuning, one forward and backward pass over a reference batch, and the first model's forward pass.
Memory: the first model, and two copies of the weights that learn.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_accumulation, refuse_trait
from holdfast.algorithms.rows import weighted
from holdfast.algorithms.teacher import precision, refuse_undistilled
from holdfast.algorithms.wise_ft import copied
from holdfast.data.order import shuffled
from holdfast.models.base import Network
from holdfast.types import Batch, Between, Ids, Part, Stage, Stream, Task

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

logger = logging.getLogger("holdfast")


@dataclass
class Zscl(Algorithm):
    """Keeps the first model's answers on reference data, and averages weights."""

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})
    strengths: ClassVar[tuple[str, ...]] = ("strength", "consolidation")

    strength: Annotated[float, Between(0)] = 1.0
    """The weight of distillation."""
    temperature: Annotated[float, Between(1e-3)] = 2.0
    """The temperature of both softmaxes."""
    consolidation: Annotated[float, Between(0)] = 1.0
    """The weight of the squared distance from the weights at the stage's beginning."""
    every: Annotated[int, Between(1)] = 100
    """After every N steps, the weights join the average."""
    size: Annotated[int, Between(2)] = 64
    """How many reference examples each step uses."""
    reference: str = "reference"
    """The task whose examples are the reference; without such a task, each stage's own examples."""
    _whole: Callable[[], None] = field(init=False, repr=False, compare=False)
    _first: Network = field(init=False, repr=False, compare=False)
    _ask: Callable[..., Tensor] = field(init=False, repr=False, compare=False)
    _reference: Ids = field(init=False, repr=False, compare=False)
    _start: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    _average: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    _steps: int = field(init=False, repr=False, compare=False)
    _used: int = field(init=False, repr=False, compare=False)

    def check(self, stream: Stream) -> None:
        """Remember whether batches are split: each piece would draw a reference batch of its own."""
        self._whole = partial(refuse_accumulation, str(self), stream)

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Refuse an encoder that changes from stage to stage: its weights have no average."""
        refuse_trait(self, algorithms, "encoder-per-stage", "averages the encoder's weights along a stage")
        refuse_trait(self, algorithms, "several-fits", "averages the weights of one fit")

    def setup(self, learner: Learner) -> None:
        """Keep the first model, and find the reference."""
        refuse_undistilled(learner)
        self._be_first(learner, copy.deepcopy(learner.model))
        self._start = self._average = {}
        self._steps = self._used = 0
        which = [place for place, table in enumerate(learner.data.tables) if table.task == self.reference]
        self._reference = np.concatenate([np.zeros(0, np.int64), *(learner.data.ids(place) for place in which)])
        if which:
            self._whole()
        else:
            logger.warning(
                "zscl: this run has no task %r as a reference, so the first model is distilled on each stage's own "
                "examples",
                self.reference,
            )

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Begin the average with the weights of the stage's beginning."""
        self._start, self._average, self._steps = copied(learner), copied(learner), 0

    def passes(self, learner: Learner, stage: Stage) -> Sequence[tuple[Ids, int]]:
        """The reference examples, which each stage passes through more than once."""
        return [(self._reference, 2)] if len(self._reference) else []

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The divergence from the first model on a reference batch, or on this one."""
        if not self.strength:
            return None
        if len(self._reference):
            batch = learner.fetch(self._next(learner.seed), augment=False)
            outputs = learner.outputs(batch)
        learner.examples_forward += len(batch.ids)
        with precision(learner):
            pairs = zip(batch.parts, outputs, strict=True)
            rows = [weighted(self._divergence(learner.tasks[part.task], part, output), part) for part, output in pairs]
        factor = 2 * self.strength * self.temperature**2  # a task's divergence is the mean of both directions
        return factor * learner.share(torch.cat(rows), len(batch.ids))

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Add the gradient of the squared distance from the stage's beginning."""
        if self.consolidation:
            for name, weight in learner.parameters.items():
                if weight.grad is not None and name in self._start:
                    weight.grad.add_(weight.detach() - self._start[name], alpha=2 * self.consolidation)

    @torch.no_grad()
    def after(self, learner: Learner, batch: Batch) -> None:
        """Let the weights join the average."""
        self._steps += 1
        if self._steps % self.every == 0:
            count = self._steps // self.every
            for name, weight in learner.parameters.items():
                if name in self._average:
                    self._average[name].lerp_(weight, 1 / (count + 1))

    @torch.no_grad()
    def end(self, learner: Learner, stage: Stage) -> None:
        """Continue with the average, if the stage was long enough to have one."""
        if self._steps >= self.every:
            for name, weight in learner.trainable().items():
                if name in self._average:
                    weight.copy_(self._average[name])

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the first model and of both copies of the weights."""
        kept = (*self._first.state_dict().values(), *self._start.values(), *self._average.values())
        return sum(value.nbytes for value in kept)

    def state_dict(self) -> dict[str, Any]:
        """The first model, both copies, and the counts."""
        kept = {"first": self._first.state_dict(), "start": self._start, "average": self._average}
        return kept | {"steps": self._steps, "used": self._used}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore them."""
        model = copy.deepcopy(learner.model)
        model.load_state_dict(state["first"])
        self._be_first(learner, model)
        self._steps, self._used = state["steps"], state["used"]
        self._start, self._average = (
            {name: weight.to(learner.device) for name, weight in state[kept].items()} for kept in ("start", "average")
        )

    def _be_first(self, learner: Learner, model: Network) -> None:
        self._first = model.eval().requires_grad_(False)
        self._ask = learner.asking(self._first)

    def _divergence(self, task: Task, part: Part, output: Tensor) -> Tensor:
        with torch.no_grad():
            taught = task.forward(self._ask, part)
        if task.reads.kind == "compare" and output.ndim == 3:  # both are compared by the first model's texts
            output = torch.cat([output[:, :1], taught[:, 1:]], 1)
        return task.divergence(taught, output, part, self.temperature, torch.arange(task.outputs, device=output.device))

    def _next(self, seed: int) -> Ids:
        """The next batch of the reference, in a new order for each pass over it."""
        size = min(self.size, len(self._reference))
        per_epoch = len(self._reference) // size
        epoch, step = divmod(self._used, per_epoch)
        self._used += 1
        order: Ids = shuffled(self._reference, seed=seed, stage=0x25C1, epoch=epoch)
        return order[step * size : (step + 1) * size]
