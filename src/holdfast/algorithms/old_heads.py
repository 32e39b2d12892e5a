"""LwF with `on=old-heads`: every previously learned head answers about the new inputs, as in the paper.

All old heads share one pass of the encoder, the step's own, and the teacher's heads one pass of the teacher's encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Given
from holdfast.types import Part

if TYPE_CHECKING:
    from holdfast.algorithms.teacher import Teacher
    from holdfast.engine.learner import Learner
    from holdfast.models.base import Network

ONE_PASS = "asks every head about one pass of the encoder (lwf.on=old-heads)"


class OldHeads:
    """Compares the old heads of a learner with its teacher's."""

    def __init__(self, learner: Learner, teacher: Teacher) -> None:
        self._learner, self._teacher = learner, teacher
        self._noted: list[tuple[Mapping[str, Tensor], Tensor]] = []
        _refuse_kinds(learner)

        def note(encoder: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            if teacher.model is not None and torch.is_grad_enabled():
                self._noted.append((inputs[0], output))

        learner.model.encoder.register_forward_hook(note)

    def begin(self) -> None:
        """Raise a UserError if the encoder has parts for single heads by now."""
        if any(len(block.added) for block in self._learner.model.encoder.blocks()):
            raise UserError(f"lwf {ONE_PASS}, but parts of this encoder belong to single heads: set lwf.on=seen")

    def forget(self) -> None:
        """Release the encoder's outputs."""
        self._noted.clear()

    def divergence(self, part: Part, temperature: float) -> Tensor:
        """The divergence of each row's answers from the teacher's, summed over the old heads."""
        learner, teacher = self._learner.model, self._teacher.model
        assert teacher is not None, "no head is old before there is a teacher"
        features = next((output for inputs, output in reversed(self._noted) if _same(inputs, part.inputs)), None)
        if features is None:  # the task gave the encoder inputs other than the part's
            features = learner.encoder(part.inputs)
        with torch.no_grad():
            taught_features = teacher.encoder(part.inputs)
        losses = []
        for head, task in {task.head: task for task in self._learner.tasks.values()}.items():
            if head in self._teacher.seen:
                with torch.no_grad():
                    taught = task.forward(_reading(teacher, taught_features), part)
                output = task.forward(_reading(learner, features), part)
                losses.append(task.divergence(taught, output, part, temperature, self._teacher.seen[head]))
        return torch.stack(losses).sum(0)


def _reading(model: Network, features: Tensor) -> Callable[[Mapping[str, Tensor], str], Tensor]:
    """The heads of a model, applied to its encoder's output."""

    def asked(inputs: Mapping[str, Tensor], head: str) -> Tensor:
        output: Tensor = model.heads[head](Given(features), inputs)
        return output

    return asked


def _same(inputs: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    """Whether two mappings hold the identical columns; the mappings themselves may be copies."""
    return inputs.keys() == others.keys() and all(inputs[name] is column for name, column in others.items())


def _refuse_kinds(learner: Learner) -> None:
    """Raise a UserError, before training, if heads cannot answer about each other's inputs."""
    kinds = {(task.reads.kind, task.reads.images) for task in learner.tasks.values()}
    if len(kinds) > 1 or any(kind == "phrase" for kind, _ in kinds):
        found = ", ".join(sorted(f"{kind} with {images} image(s)" for kind, images in kinds))
        raise UserError(
            "lwf.on is old-heads, which asks each old head about new inputs, so all heads must be of one kind, "
            f"classify or choose, but this run has {found}; set lwf.on=seen"
        )
