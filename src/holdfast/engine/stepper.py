"""How a learner's passes are made: one door, behind which they are eager, compiled or recorded.

The learner calls its model and computes its gradients through a `Stepper` and never asks which one it has. Without
`--compile` it is `Eager`. With it, frequent shapes are compiled (`compiled.py`); on one GPU, if the encoder declares
itself `recordable`, whole passes are recorded as CUDA graphs as well (`passes.py`). Whatever cannot be compiled or
recorded, or proves different from a plain pass, falls back to plain passes with one warning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor, nn

from holdfast.models.base import Network
from holdfast.types import Batch

if TYPE_CHECKING:
    from holdfast.algorithms.base import Algorithm
    from holdfast.engine.learner import Learner

How: TypeAlias = Literal["graphs", "whole", "as it is"]
Call: TypeAlias = Callable[[Mapping[str, Tensor], str], Tensor]


class Stepper(ABC):
    """Calls a learner's model, and computes the gradients of a batch."""

    learns: bool = False
    """Whether calls that need gradients own CUDA graphs, which rules out recording whole passes."""

    call: Call
    """What gives the outputs of one head of the learner's model."""

    @abstractmethod
    def other(self, model: Network) -> Call:
        """Another model, which does not learn (a teacher, say), to be called in the same way."""

    @abstractmethod
    def gradients(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """Compute the gradients of a batch's loss, with what algorithms add to it, and return the loss."""

    def calling(self, how: How) -> AbstractContextManager[None]:
        """Call models in one way within a block: see `compiled.Calling`."""
        return nullcontext()

    @abstractmethod
    def step_done(self) -> None:
        """Note that nothing of this step is needed any more."""

    @abstractmethod
    def model_changed(self, parameters: Iterable[nn.Parameter]) -> None:
        """Note that other parameters learn now, or that the model computes something else."""


class Eager(Stepper):
    """Plain PyTorch, one operation after another."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self.call = learner, learner.model

    def other(self, model: Network) -> Call:
        """The model itself."""
        return model

    def gradients(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """One forward and one backward pass."""
        return self._learner.single_pass(batch, algorithms)

    def step_done(self) -> None:
        """Nothing to do."""

    def model_changed(self, parameters: Iterable[nn.Parameter]) -> None:
        """Nothing to forget."""


def choose(learner: Learner, compiled: bool) -> Stepper:
    """The stepper of a learner, as `--compile` asks."""
    if not compiled:
        return Eager(learner)
    from holdfast.engine.compiled import CompiledStepper
    from holdfast.engine.passes import RecordedStepper

    stepper = CompiledStepper(learner)
    alone_on_gpu = learner.device.type == "cuda" and learner.ranks.size == 1
    return RecordedStepper(learner, stepper) if alone_on_gpu and declares(learner.model.encoder) else stepper


def declares(part: nn.Module | Algorithm) -> bool:
    """Whether an encoder or an algorithm is `recordable` by a declaration of its own class, not an inherited one.

    A subclass may compute something else than the class that made the promise, so it has to repeat it.
    """
    return "recordable" in vars(type(part)) and bool(part.recordable)


def forget_earlier_runs() -> None:
    """Free what compiling left in this process; learners that are still in use compile again."""
    import gc

    gc.collect()  # a learner and its stepper refer to each other
    torch._dynamo.reset()
