"""How a learner's passes are computed: one interface, behind which they are eager, compiled or recorded.

The learner calls its model and computes its gradients through a `Stepper` and never asks which kind it has. Without
`--compile` it is `Eager`. With it, frequent shapes are compiled (`compiled.py`); on one GPU, if the encoder declares
itself `recordable`, whole passes are also recorded as CUDA graphs (`passes.py`). Anything that cannot be compiled or
recorded, or turns out to differ from a plain pass, falls back to plain passes with a single warning.
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
    """Returns the outputs of one head of the learner's model."""

    @abstractmethod
    def other(self, model: Network) -> Call:
        """A callable for another model that does not learn (such as a teacher), called in the same way."""

    @abstractmethod
    def gradients(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """Compute the gradients of a batch's loss, including what algorithms add to it, and return the loss."""

    def calling(self, how: How) -> AbstractContextManager[None]:
        """Call models in one way within a block: see `compiled.Calling`."""
        return nullcontext()

    @abstractmethod
    def step_done(self) -> None:
        """Report that nothing of this step is needed any more."""

    @abstractmethod
    def model_changed(self, parameters: Iterable[nn.Parameter]) -> None:
        """Report that other parameters are trainable now, or that the model's computation changed."""


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
        """Nothing to reset."""


def choose(learner: Learner, compiled: bool) -> Stepper:
    """The stepper for a learner, according to `--compile`."""
    if not compiled:
        return Eager(learner)
    from holdfast.engine.compiled import CompiledStepper
    from holdfast.engine.passes import RecordedStepper

    stepper = CompiledStepper(learner)
    alone_on_gpu = learner.device.type == "cuda" and learner.ranks.size == 1
    return RecordedStepper(learner, stepper) if alone_on_gpu and declares(learner.model.encoder) else stepper


def declares(part: nn.Module | Algorithm) -> bool:
    """Whether an encoder or an algorithm is `recordable` by a declaration of its own class, not an inherited one.

    A subclass may compute something different from the class that made the promise, so it has to repeat it.
    """
    return "recordable" in vars(type(part)) and bool(part.recordable)


def forget_earlier_runs() -> None:
    """Free what compilation left in this process; learners that are still in use compile again."""
    import gc

    gc.collect()  # a learner and its stepper refer to each other
    torch._dynamo.reset()
