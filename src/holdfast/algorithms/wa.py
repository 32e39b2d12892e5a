"""WA: exemplars, distillation, and new classes' weights scaled to the length of the old ones' after each stage.

Paper: Zhao et al. 2020, "Maintaining Discrimination and Fairness in Class Incremental Learning".
Equation: (1 - l) CE + l KL(softmax(teacher(x) / T) || softmax(model(x) / T)), with T = 2, over the classes that past
stages taught, and l their share of all classes so far; after a stage, w_new <- w_new mean|w_old| / mean|w_new|.
Cost: epochs that include the exemplars, and one additional forward pass per step from the second stage on.
Memory: `capacity` examples, chosen by herding, and a copy of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.exemplars import Exemplars
from holdfast.algorithms.rehearsal import joined
from holdfast.algorithms.rows import weighted
from holdfast.algorithms.teacher import Teacher, precision, refuse_undistilled
from holdfast.errors import UserError
from holdfast.models.heads import Linear
from holdfast.types import Batch, Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class WeightAlignment(Algorithm):
    """Exemplars and distillation; after each stage, the new classes' weights get the mean length of the old ones'."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples", "weights"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})

    capacity: Annotated[int, Between(1)] = 2000
    """How many exemplars are kept in all, the same number of each class."""
    temperature: Annotated[float, Between(1e-3)] = 2.0
    """The temperature of distillation."""
    exemplars: Exemplars = field(init=False, repr=False, compare=False)
    teacher: Teacher = field(init=False, repr=False, compare=False)
    classes: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    """By head: the classes of the stage that is being learned."""

    def setup(self, learner: Learner) -> None:
        """Start without exemplars."""
        refuse_undistilled(learner)
        self.exemplars, self.teacher = Exemplars(learner, self.capacity, str(self)), Teacher()
        for name, head in learner.model.heads.items():
            if last_layer(head) is None:
                wanted = f"{self} scales the weights of a linear classifier"
                raise UserError(f"{wanted}, but the head {name!r} has none: choose another algorithm")

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """Note the classes of the stage, and add the exemplars to its examples."""
        self.classes = {}
        for index, rows in learner.data.by_table(stage.train).items():
            table = learner.data.tables[index]
            found, head = table.targets.cpu()[torch.from_numpy(rows)], learner.tasks[table.task].head
            self.classes[head] = torch.unique(torch.cat([self.classes.get(head, found[:0]), found]))
        return joined(stage, self.exemplars.ids)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The divergence from the teacher, in place of a part of the tasks' own loss."""
        if not any(learner.tasks[part.task].head in self.teacher.seen for part in batch.parts):
            return None
        learner.examples_forward += len(batch.ids)
        rows, own = [], torch.split(learner.losses(batch, outputs), [len(output) for output in outputs])
        with precision(learner):
            for part, output, losses in zip(batch.parts, outputs, own, strict=True):
                task = learner.tasks[part.task]
                units = self.teacher.seen.get(task.head)
                if units is None:
                    rows.append(torch.zeros_like(losses))
                    continue
                taught = self.teacher.outputs(task, part)
                share = len(units) / (len(units) + len(self._new(task.head)))
                divergence = task.divergence(taught, output, part, self.temperature, units)
                rows.append(share * (weighted(divergence, part) - losses))
        return learner.share(torch.cat(rows), len(batch.ids))

    def end(self, learner: Learner, stage: Stage) -> None:
        """Scale the new classes' weights, choose exemplars, and keep the network as the next teacher."""
        for name, head in learner.model.heads.items():
            old, new, layer = self.teacher.seen.get(name), self._new(name), last_layer(head)
            if old is not None and len(new) and layer is not None:
                with torch.no_grad():
                    new = new.to(layer.weight.device)
                    lengths = layer.weight.norm(dim=1)
                    layer.weight[new] *= lengths[old].mean() / lengths[new].mean()
        self.exemplars.update(learner, stage.train)
        self.teacher.become(learner, stage)

    def _new(self, head: str) -> Tensor:
        """The classes of the stage that no earlier one has taught."""
        here, old = self.classes.get(head, torch.empty(0, dtype=torch.int64)), self.teacher.seen.get(head)
        return here if old is None else here[~torch.isin(here, old.cpu())]

    def memory_bytes(self, learner: Learner) -> int:
        """The exemplars and the teacher."""
        return learner.data.example_bytes(self.exemplars.ids) + self.exemplars.nbytes + self.teacher.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The exemplars and the teacher."""
        return {"exemplars": self.exemplars.state_dict(), "teacher": self.teacher.state_dict()}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore them."""
        self.exemplars.load_state_dict(state["exemplars"])
        self.teacher.load_state_dict(learner, state["teacher"])


def last_layer(head: nn.Module) -> Linear | None:
    """The layer of a head with one row of weights for each class."""
    return next((module for module in reversed(list(head.modules())) if isinstance(module, Linear)), None)
