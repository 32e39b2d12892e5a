"""iCaRL: sigmoid outputs distilled on kept exemplars and new data, and classification by the nearest mean of exemplars.

Paper: Rebuffi et al. 2017, "iCaRL: Incremental Classifier and Representation Learning".
Equation: in training, a binary cross-entropy for each output: towards 1 or 0 for new classes, and towards the last
stage's sigmoid for those that past stages taught; it replaces the loss of the task. In evaluation, the class whose
exemplars have the nearest mean feature; features have length 1.
Cost: epochs that include the exemplars, one additional forward pass per step from the second stage on, and after each
stage a forward pass over its examples and over all exemplars.
Memory: `capacity` examples, a copy of the model, and one vector for each class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.algorithms.base import Algorithm, Answer
from holdfast.algorithms.exemplars import Exemplars, features_of
from holdfast.algorithms.rehearsal import joined
from holdfast.algorithms.rows import weighted
from holdfast.algorithms.teacher import Teacher, precision
from holdfast.models.heads import CLOSED
from holdfast.types import Batch, Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class ICarl(Algorithm):
    """Exemplars join each stage; outputs are distilled one by one, and the nearest mean of exemplars answers."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples", "weights", "statistics"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})

    capacity: Annotated[int, Between(1)] = 2000
    """How many exemplars are kept in all, the same number of each class."""
    exemplars: Exemplars = field(init=False, repr=False, compare=False)
    teacher: Teacher = field(init=False, repr=False, compare=False)
    means: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    """By head: the mean of each class (outputs, width), NaN where it has none."""

    def setup(self, learner: Learner) -> None:
        """Start without exemplars."""
        self.exemplars = Exemplars(learner, self.capacity, str(self))
        self.teacher, self.means = Teacher(), {}

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """Add the exemplars to the stage's examples."""
        return joined(stage, self.exemplars.ids)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The difference between the binary cross-entropies and the tasks' own loss, which they replace."""
        rows = []
        with precision(learner):
            for part, output in zip(batch.parts, outputs, strict=True):
                task = learner.tasks[part.task]
                wanted = functional.one_hot(part.targets.long(), output.shape[1]).to(output.dtype)
                if (units := self.teacher.seen.get(task.head)) is not None:
                    taught = self.teacher.outputs(task, part).index_select(1, units)
                    wanted = wanted.index_copy(1, units, taught.sigmoid().to(wanted.dtype))
                losses = functional.binary_cross_entropy_with_logits(output, wanted, reduction="none").sum(1)
                rows.append(weighted(losses, part))
        if any(learner.tasks[part.task].head in self.teacher.seen for part in batch.parts):
            learner.examples_forward += len(batch.ids)
        return learner.share(torch.cat(rows) - learner.losses(batch, outputs), len(batch.ids))

    def end(self, learner: Learner, stage: Stage) -> None:
        """Choose exemplars, and compute the means of all by the network as it is now."""
        self.exemplars.update(learner, stage.train)
        self.teacher.become(learner, stage)
        found: dict[str, dict[int, Tensor]] = {}
        for ids in self.exemplars.by_class.values():
            (index,) = learner.data.by_table(ids[:1])
            head = learner.tasks[learner.data.tables[index].task].head
            mean = functional.normalize(features_of(learner, ids).mean(0), dim=0)
            found.setdefault(head, {})[int(learner.data.targets(ids[:1])[0])] = mean
        for head, means in found.items():
            outputs = next(task.outputs for task in learner.tasks.values() if task.head == head)
            width = len(next(iter(means.values())))
            self.means[head] = torch.full((outputs, width), torch.nan, dtype=torch.float64, device=learner.device)
            for each, mean in means.items():
                self.means[head][each] = mean

    def route(self, learner: Learner, inputs: Mapping[str, Tensor], head: str, answer: Answer) -> Tensor:
        """Minus the distance from each class's mean."""
        if head not in self.means:
            return answer(inputs, head)
        features = learner.model.features(inputs).flatten(1)
        distances = torch.cdist(functional.normalize(features.double(), dim=-1), self.means[head])
        return distances.neg().nan_to_num(CLOSED).to(features.dtype)

    def memory_bytes(self, learner: Learner) -> int:
        """The exemplars, the teacher and the means."""
        kept = learner.data.example_bytes(self.exemplars.ids) + self.exemplars.nbytes
        return kept + self.teacher.nbytes + sum(means.nbytes for means in self.means.values())

    def state_dict(self) -> dict[str, Any]:
        """The exemplars, the teacher and the means."""
        return {"exemplars": self.exemplars.state_dict(), "teacher": self.teacher.state_dict(), "means": self.means}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore them."""
        self.exemplars.load_state_dict(state["exemplars"])
        self.teacher.load_state_dict(learner, state["teacher"])
        self.means = {head: means.to(learner.device) for head, means in state["means"].items()}
