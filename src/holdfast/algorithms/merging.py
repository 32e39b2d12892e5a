"""The common part of merging methods: stages are fine-tuned, and then the changes that they made are merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_trait
from holdfast.errors import UserError
from holdfast.types import Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class Merging(Algorithm, ABC):
    """Between stages, the weights are the first ones plus the merged changes of all stages so far.

    Running statistics of a network are not merged: they are those of the last stage.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})
    traits = frozenset({"sets-weights"})

    scale: Annotated[float, Between(0)] = 1.0
    """The factor on the merged changes."""
    where: Literal["all", "encoder"] = "all"
    """Which weights are merged; with encoder, the heads keep learning from stage to stage."""
    names: list[str] = field(init=False, repr=False, compare=False)
    """The weights that are merged."""
    first: Tensor | None = field(init=False, repr=False, compare=False)
    """Their values before the first stage, one after another."""
    last: Tensor | None = field(init=False, repr=False, compare=False)
    """Their values at the end of the last stage, before they were merged, if the next one starts from them."""
    changes: Tensor | None = field(init=False, repr=False, compare=False)
    """The changes of past stages that are kept, (any number, weights)."""

    @abstractmethod
    def from_last(self) -> bool:
        """Whether a stage starts from the weights that the last one ended with; if not, from the first ones."""

    @abstractmethod
    def kept(self, changes: Tensor, new: Tensor) -> Tensor:
        """The changes to keep, given the kept ones and those of one more stage."""

    @abstractmethod
    def merged(self, changes: Tensor) -> Tensor:
        """One change of each weight."""

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that set weights between stages, or add weights."""
        refuse_trait(self, algorithms, "sets-weights", "merges the weights after each stage")
        refuse_trait(self, algorithms, "encoder-per-stage", "merges the same weights after each stage")

    def setup(self, learner: Learner) -> None:
        """Start without changes."""
        if learner.model.encoder.structure() is not None:
            raise UserError(
                f"{self} merges the weights of one network, but this model differs from stage to stage: choose "
                "another model"
            )
        self.names, self.first, self.last, self.changes = [], None, None, None

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Go back to the first weights, or to those of the last stage."""
        if self.first is None:
            within = "encoder." if self.where == "encoder" else ""
            self.names = [name for name in learner.trainable() if name.startswith(within)]
            self.first = self._weights(learner)
        else:
            self._set(learner, self.first if self.last is None else self.last)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Merge the changes of this stage with those of earlier ones."""
        assert self.first is not None, "a stage began"
        now = self._weights(learner)
        new = (now - self.first)[None]
        self.last = now if self.from_last() else None
        self.changes = new if self.changes is None else self.kept(self.changes, new)
        self._set(learner, self.first + self.scale * self.merged(self.changes))

    def _weights(self, learner: Learner) -> Tensor:
        return torch.cat([learner.model.get_parameter(name).detach().flatten() for name in self.names])

    def _set(self, learner: Learner, weights: Tensor) -> None:
        own = [learner.model.get_parameter(name) for name in self.names]
        with torch.no_grad():
            values = torch.split(weights, [each.numel() for each in own])
            for parameter, value in zip(own, values, strict=True):
                parameter.copy_(value.view_as(parameter))

    def memory_bytes(self, learner: Learner) -> int:
        """The copies of weights."""
        return sum(each.nbytes for each in (self.first, self.last, self.changes) if each is not None)

    def state_dict(self) -> dict[str, Any]:
        """The copies of weights, and which they are."""
        return {"names": list(self.names), "first": self.first, "last": self.last, "changes": self.changes}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore them."""
        self.names = list(state["names"])
        copies = (state[name] for name in ("first", "last", "changes"))
        self.first, self.last, self.changes = (None if each is None else each.to(learner.device) for each in copies)
