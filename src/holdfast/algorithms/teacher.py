"""A teacher: the model at the end of a stage, with the units of each head that it had learned."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.models.heads import CLOSED
from holdfast.types import Part, Stage, Task, cannot_distil

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.engine.stepper import Call
    from holdfast.models.base import Network

logger = logging.getLogger("holdfast")


class Teacher:
    """A copy of a learner's model that does not learn; none before `become`."""

    def __init__(self) -> None:
        self.model: Network | None = None
        self.seen: dict[str, Tensor] = {}
        """The units of each head that past stages have taught."""
        self._ask: Call

    def become(self, learner: Learner, stage: Stage) -> None:
        """Copy the learner's model at the end of a stage."""
        weights, changes = learner.model.state_dict(), learner.model.encoder.structure() is not None
        if self.model is None or changes or self.model.state_dict().keys() != weights.keys():
            self._be(learner, copy.deepcopy(learner.model))
        else:  # keep the same module: replacing it would discard what was prepared for it
            self.model.load_state_dict(weights)
        for index, table in enumerate(learner.data.tables):
            start, stop = learner.data.offsets[index], learner.data.offsets[index + 1]
            ids = stage.train[(stage.train >= start) & (stage.train < stop)]
            if len(ids):
                task = learner.tasks[table.task]
                units = task.units(learner.data.targets(ids))
                units = torch.arange(task.outputs) if units is None else units
                before = self.seen.get(task.head, units[:0])
                self.seen[task.head] = torch.unique(torch.cat([before.cpu(), units])).to(learner.device)

    @torch.no_grad()
    def outputs(self, task: Task, part: Part) -> Tensor:
        """Its outputs, called as fast as the learner calls its own model."""
        return task.forward(self._ask, part)

    @property
    def nbytes(self) -> int:
        """The bytes of its weights, and of the unit numbers."""
        weights = {} if self.model is None else self.model.state_dict()
        return sum(value.nbytes for value in (*weights.values(), *self.seen.values()))

    def state_dict(self) -> dict[str, Any]:
        """Its weights, its structure if the model's can change, and the units it has learned."""
        if self.model is None:
            return {"seen": dict(self.seen), "teacher": None, "structure": None}
        structure = self.model.encoder.structure()
        return {"seen": dict(self.seen), "teacher": self.model.state_dict(), "structure": structure}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.seen = {head: units.to(learner.device) for head, units in state["seen"].items()}
        self.model = None
        if state["teacher"] is not None:
            model = copy.deepcopy(learner.model)
            if state["structure"] is not None:  # the learner's may have grown, or be on another path
                model.encoder.rebuild(state["structure"])
            model.load_state_dict(state["teacher"])
            self._be(learner, model)

    def _be(self, learner: Learner, model: Network) -> None:
        self.model = model.eval().requires_grad_(False)
        self._ask = learner.asking(self.model)


def completed(taught: Tensor, output: Tensor, targets: Tensor, seen: Tensor) -> Tensor:
    """The teacher's logits, with 1 (the answer) or 0 for classes that it has not learned; closed ones stay closed.

    This is how RPSnet's code keeps new classes from drowning old ones.

    >>> taught, output = torch.tensor([[3.0, -1.0, CLOSED, CLOSED]]), torch.tensor([[0.0, 0.0, 0.0, CLOSED]])
    >>> completed(taught, output, torch.tensor([2]), torch.tensor([0, 1])).tolist()
    [[3.0, -1.0, 1.0, -10000.0]]
    """
    known = (targets[:, None] == torch.arange(output.shape[-1], device=targets.device)).to(taught.dtype)
    known = known.index_copy(-1, seen, taught.index_select(-1, seen))
    return known.masked_fill(output < CLOSED / 2, CLOSED)  # in half precision, the value is only approximate


def precision(learner: Learner) -> AbstractContextManager[Any]:
    """The precision that a run specifies, for calls of a model outside the learner."""
    if learner.autocast is None:
        return nullcontext()
    return torch.autocast(learner.device.type, learner.autocast)


def warn_of_new_heads(learner: Learner, stage: Stage, seen: Mapping[str, Tensor]) -> None:
    """Warn if a stage trains no previously learned head: nothing of what was learned is preserved."""
    tables = np.unique(np.searchsorted(learner.data.offsets[1:-1], stage.train, side="right"))
    heads = {learner.tasks[learner.data.tables[index].task].head for index in tables}
    if seen and not heads & seen.keys():
        logger.warning(
            "lwf.on is seen, which preserves what a batch's own head has learned, but the head of stage %r is new: on "
            "its own examples this is plain fine-tuning; set lwf.on=old-heads to preserve the other heads",
            stage.name,
        )


def refuse_undistilled(learner: Learner) -> None:
    """Raise a UserError, before training, for tasks that do not define how to distil their answers."""
    for task in learner.tasks.values():
        if type(task).divergence is Task.divergence:
            raise cannot_distil(task)
