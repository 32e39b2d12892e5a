"""EASE: adapters for each stage span subspaces of features; the classes' mean features in all of them answer.

Paper: Zhou et al. 2024, "Expandable Subspace Ensemble for Pre-Trained Model-Based Class-Incremental Learning".
Equation: f_k = the features with the adapters of stage k; P_ck = the mean of f_k over the examples of class c. A class
of stage b < k has no example left for f_k: P_ck = the sum over j of s_cj P_jk, with s_cj the softmax over j of the
cosine of P_cb and P_jb, and j the classes of stage k and later. The logit of a class of stage b is cos(f_b(x), P_cb)
plus `alpha` times the mean over the other k of cos(f_k(x), P_ck). As in the released code, means are completed anew
after each stage. The head with which the adapters are trained is not used for answers.
Units: no strength; `alpha` is a weight of logits.
Cost: training as with adapters; after each stage, a forward pass over its examples for each stage so far, and at a test
as many for each example.
Memory: for each class, a vector for each stage up to its own. The model grows by one set of adapters for each stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.algorithms.adapter_library import switched
from holdfast.algorithms.adapters import places, refuse_second_set
from holdfast.algorithms.base import Algorithm, Answer
from holdfast.algorithms.rows import refuse_without_classes
from holdfast.models.heads import CLOSED
from holdfast.types import Batch, Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

_name = "ease-{}".format


@dataclass
class Ease(Algorithm):
    """A set of adapters for each stage, and the classes' mean features in all of them."""

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"blocks", "boundaries"})
    keeps: ClassVar[frozenset[str]] = frozenset({"statistics"})
    pretrained: ClassVar[bool] = True
    traits = frozenset({"encoder-per-stage", "adds-to-blocks"})

    reduction: Annotated[int, Between(1)] = 12
    """The width of the encoder divided by that of a bottleneck; the paper's are 64 wide, in a ViT of 768."""
    alpha: Annotated[float, Between(0)] = 0.1
    """The weight of the other stages' features in the logit of a class."""
    sets: int = field(init=False, repr=False, compare=False)
    means: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    """By head: the means that were measured, (stages, outputs, width), and 0 elsewhere."""
    stage_of: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    """By head: the last stage with examples of a class, -1 if there is none."""
    _whole: dict[str, Tensor] = field(init=False, repr=False, compare=False)

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that add to the same blocks."""
        refuse_second_set(self, algorithms)

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder; sets are added at each stage."""
        refuse_without_classes(learner, str(self))
        places(learner, str(self))
        learner.freeze(learner.model.encoder)
        learner.model.active = ""
        self.sets, self.means, self.stage_of, self._whole = 0, {}, {}, {}

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Add a new set, which is active until the stage ends; earlier ones are frozen."""
        if self.sets:
            learner.freeze(*(block.added[_name(self.sets - 1)] for block in learner.model.encoder.blocks()))
        self._add(learner)

    def observe(self, learner: Learner, stage: Stage, batches: Iterator[Batch]) -> None:
        """Measure the means of the stage's classes in all subspaces, and complete those of earlier classes."""
        sums: dict[str, tuple[Tensor, Tensor]] = {}
        for batch in batches:
            learner.examples_forward += self.sets * len(batch.ids)
            for part in batch.parts:
                task = learner.tasks[part.task]
                y = functional.one_hot(part.targets.long(), task.outputs).double()
                y = y if part.weights is None else y * part.weights[:, None].double()
                found = (y.T @ self._features(learner, part.inputs), y.sum(0))
                before = sums.get(task.head)
                sums[task.head] = found if before is None else (before[0] + found[0], before[1] + found[1])
        for head, (total, count) in sums.items():
            learner.ranks.sum([total, count])
            here, means = count > 0, torch.zeros_like(total)
            if (old := self.means.get(head)) is not None:
                means[: len(old)] = old
            means[:, here] = total[:, here] / count[here, None]
            of = self.stage_of.get(head, torch.full_like(count, -1).long())
            self.means[head], self.stage_of[head] = means, of.masked_fill(here, self.sets - 1)
            self._whole[head] = completed(means, self.stage_of[head])

    def route(self, learner: Learner, inputs: Mapping[str, Tensor], head: str, answer: Answer) -> Tensor:
        """The cosines to the means in all subspaces; within the first stage of a head, the head's own answer."""
        if head not in self._whole or learner.model.training:
            return answer(inputs, head)
        whole, of = self._whole[head], self.stage_of[head]
        features = functional.normalize(self._features(learner, inputs)[: len(whole)], dim=-1)
        cosines = torch.einsum("kew,kcw->kec", features, functional.normalize(whole, dim=-1))
        own = functional.one_hot(of.clamp(min=0), len(whole)).T.double()
        weights = own + (1 - own) * self.alpha / max(len(whole) - 1, 1)
        logits = torch.einsum("kec,kc->ec", cosines, weights).masked_fill(of < 0, CLOSED)
        return logits.to(learner.model.encoder.blocks()[0].weight())

    def _features(self, learner: Learner, inputs: Mapping[str, Tensor]) -> Tensor:
        """The features with each set: (sets, examples, width)."""
        found = []
        for number in range(self.sets):
            with switched(learner.model, _name(number)):
                found.append(learner.model.features(inputs).flatten(1).double())
        return torch.stack(found)

    def _add(self, learner: Learner) -> None:
        learner.model.active = name = _name(self.sets)
        learner.model.add(name, [block.adapters(self.reduction, "relu") for block in learner.model.encoder.blocks()])
        self.sets += 1

    def memory_bytes(self, learner: Learner) -> int:
        """The means, and the stage of each class."""
        return sum(each.nbytes for each in (*self.means.values(), *self.stage_of.values()))

    def state_dict(self) -> dict[str, Any]:
        """The means; the sets belong to the model."""
        return {"sets": self.sets, "means": dict(self.means), "stage_of": dict(self.stage_of)}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Create the sets again; their weights come with the model's."""
        for _ in range(state["sets"]):
            self._add(learner)
        self.means = {head: means.clone().to(learner.device) for head, means in state["means"].items()}
        self.stage_of = {head: of.to(learner.device) for head, of in state["stage_of"].items()}
        self._whole = {head: completed(means, self.stage_of[head]) for head, means in self.means.items()}


def completed(means: Tensor, of: Tensor) -> Tensor:
    """The means of all classes in all subspaces, (stages, classes, width), from those up to each class's own stage."""
    whole = means.clone()
    for k in range(len(means)):
        later = (of >= k).nonzero().squeeze(1)
        for b in range(k):
            earlier = (of == b).nonzero().squeeze(1)
            near = functional.normalize(means[b], dim=-1)
            whole[k, earlier] = (near[earlier] @ near[later].T).softmax(1) @ means[k, later]
    return whole
