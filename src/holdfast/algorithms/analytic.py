"""Classifiers that are solved for, not trained: the encoder is frozen, and each stage adds to sums over its examples.

The sums are in float64: the number of examples of each class, the sum of their features, and the sum of the outer
products of the features. So neither the order of the examples nor the number of stages or ranks matters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.base import Algorithm, Fit
from holdfast.algorithms.rows import own_places, refuse_without_classes
from holdfast.models.heads import CLOSED, ClassifyHead
from holdfast.types import Batch, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


class Solved(nn.Module):
    """A linear classifier of lifted features, whose weights are computed; classes not yet seen have probability 0."""

    def __init__(self, lift: nn.Module, width: int, outputs: int) -> None:
        super().__init__()
        self.lift = lift
        self.register_buffer("weight", torch.zeros(outputs, width))
        self.register_buffer("bias", torch.zeros(outputs))
        self.register_buffer("unseen", torch.ones(outputs, dtype=torch.bool))
        self.weight: Tensor
        self.bias: Tensor
        self.unseen: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        return functional.linear(self.lift(x), self.weight, self.bias).masked_fill(self.unseen, CLOSED)


@dataclass
class Sums:
    """Sums over examples: how many of each class, of their features by class, and of the features' outer products."""

    count: Tensor
    features: Tensor
    products: Tensor

    @staticmethod
    def zeros(outputs: int, width: int, products: bool, device: torch.device) -> Sums:
        """Sums over no examples."""
        shapes = (outputs,), (outputs, width), (width, width) if products else (0, 0)
        return Sums(*(torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes))

    def add(self, x: Tensor, y: Tensor) -> None:
        """Add rows of features and their classes, one-hot; a row of zeros does not count."""
        self.count += y.sum(0)
        self.features += y.T @ x
        if len(self.products):
            self.products += (x * y.sum(1, keepdim=True)).T @ x

    def merge(self, other: Sums, sign: int = 1) -> Sums:
        """These sums plus others or, if `sign` is -1, minus others."""
        pairs = zip(self.tensors, other.tensors, strict=True)
        return Sums(*(own + sign * more for own, more in pairs))

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The counts, the sums of features and the sums of products."""
        return self.count, self.features, self.products


@dataclass
class Analytic(Algorithm, ABC):
    """Takes no gradient step: each stage adds to the sums, from which the classifiers follow."""

    products: ClassVar[bool] = True
    """Whether it needs the outer products."""
    holds_out: ClassVar[bool] = False
    """Whether it holds out examples of a stage to choose a setting: a fifth of them, but at most about 4,000."""
    sums: dict[str, Sums] = field(init=False, repr=False, compare=False)
    """The sums of each head."""

    @abstractmethod
    def lift(self, learner: Learner, width: int) -> tuple[nn.Module, int]:
        """The module between the encoder and the classifier, and the width of its output."""

    @abstractmethod
    def solve(self, sums: Sums) -> tuple[Tensor, Tensor]:
        """The weights (outputs, width) and the bias of a classifier."""

    def choose(self, learner: Learner, others: Sums, x: Tensor, y: Tensor) -> None:
        """Choose a setting by this rank's held-out rows, given the sums over all other examples."""

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, and replace the classifiers."""
        refuse_without_classes(learner, str(self))
        learner.freeze(learner.model.encoder)
        self.sums = {}
        for task in learner.tasks.values():
            head = learner.model.heads[task.head]
            assert isinstance(head, ClassifyHead), "its tasks have classes"
            if not isinstance(head.classifier, Solved):
                kind = next(learner.model.parameters())
                lift, width = self.lift(learner, learner.model.encoder.width * task.reads.images)
                head.classifier = Solved(lift, width, task.outputs).to(kind)
                self.sums[task.head] = Sums.zeros(task.outputs, width, self.products, kind.device)

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Nothing is trained."""

    def observe(self, learner: Learner, stage: Stage, batches: Iterator[Batch]) -> None:
        """Add the examples of a stage to the sums, and solve."""
        found: dict[str, Sums] = {}
        one_in = max(5, len(stage.train) // 4096) if self.holds_out else 0
        held: dict[str, list[tuple[Tensor, Tensor]]] = {}
        for batch in batches:
            learner.examples_forward += len(batch.ids)
            for part, places in zip(batch.parts, own_places(learner, batch.ids), strict=True):
                head = learner.tasks[part.task].head
                sums, solved = self.sums[head], self._solved(learner, head)
                x = solved.lift(learner.model.features(part.inputs).flatten(1)).double()
                y = functional.one_hot(part.targets.long(), len(sums.count)).double()
                y = y if part.weights is None else y * part.weights[:, None].double()
                found.setdefault(head, sums.merge(sums, -1)).add(x, y)
                if one_in:
                    apart = torch.from_numpy(batch.ids[places] * 2654435761 % 2**32 % one_in == 0).to(x.device)
                    held.setdefault(head, []).append((x[apart], y[apart]))
        for head, new in found.items():
            learner.ranks.sum(new.tensors)
            self.sums[head] = self.sums[head].merge(new)
            if held:
                x, y = map(torch.cat, zip(*held[head], strict=True))
                without = new.merge(new, -1)
                without.add(x, y)
                learner.ranks.sum(without.tensors)
                self.choose(learner, self.sums[head].merge(without, -1), x, y)
            self._apply(learner, head)

    def _solved(self, learner: Learner, head: str) -> Solved:
        found = learner.model.get_submodule(f"heads.{head}.classifier")
        assert isinstance(found, Solved)
        return found

    def _apply(self, learner: Learner, head: str) -> None:
        solved, sums = self._solved(learner, head), self.sums[head]
        weight, bias = self.solve(sums)
        solved.weight.copy_(weight)
        solved.bias.copy_(bias)
        solved.unseen.copy_(sums.count == 0)

    def memory_bytes(self, learner: Learner) -> int:
        """The sums."""
        return sum(tensor.nbytes for sums in self.sums.values() for tensor in sums.tensors)

    def state_dict(self) -> dict[str, Any]:
        """The sums; the classifiers are the model's."""
        return {"sums": {head: list(sums.tensors) for head, sums in self.sums.items()}}

    def load_state_dict(self, learner: Learner, state: Mapping[str, Any]) -> None:
        """Restore the sums."""
        self.sums = {head: Sums(*(each.to(learner.device) for each in own)) for head, own in state["sums"].items()}
