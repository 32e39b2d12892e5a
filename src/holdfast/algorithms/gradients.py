"""Gradients by parameter name, as compared and combined by A-GEM and GEM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from torch._utils import _flatten_dense_tensors

from holdfast.types import Ids

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

Gradients = dict[str, Tensor]
"""Gradients by parameter name; a missing one is 0."""


def gradients(learner: Learner) -> Gradients:
    """The learner's current gradients."""
    return {name: p.grad for name, p in learner.parameters.items() if p.grad is not None}


def memory_gradients(learner: Learner, ids: Ids) -> Gradients:
    """The gradients of the mean loss of these examples, averaged over the ranks, also set as the learner's."""
    learner.gradients(ids)
    return gradients(learner)


def assign(learner: Learner, found: Gradients) -> None:
    """Set the learner's gradients."""
    for name, parameter in learner.parameters.items():
        parameter.grad = found.get(name)


def flat(tensors: list[Tensor]) -> Tensor:
    """Many tensors as one vector, in one call."""
    found: Tensor = _flatten_dense_tensors(tensors)  # type: ignore[no-untyped-call]
    return found
