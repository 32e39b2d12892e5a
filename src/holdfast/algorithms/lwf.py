"""Learning without forgetting: on the new data, the new model is kept close to the model of the last stage.

Paper: Li and Hoiem 2016, "Learning without Forgetting" (temperature 2, strength 1; the paper first trains a new head
alone, which is omitted in this implementation). CFST uses it with `on=seen`, temperature 1 and strength 1.
Equation: loss + strength * KL(softmax(teacher(x) / T) || softmax(model(x) / T)), the mean over the batch; each
kind of task has its own divergence (see `Task.divergence`). The paper uses the cross-entropy, which has the same
gradient, and no T^2: to keep the gradient's size as T grows (Hinton et al. 2015), multiply the strength by T^2.

| on        | compared outputs                                                                                    |
|-----------|-----------------------------------------------------------------------------------------------------|
| seen      | the units of the batch's own head that past stages have taught                                      |
| all       | all units so far, as in RPSnet's code: see `completed`                                              |
| old-heads | every head that past stages have taught, on the new inputs; summed over heads: see `old_heads.py`   |

Units: `strength` and `temperature` are the paper's lambda_o and T, Avalanche's (LwFPlugin) alpha and temperature, and
Mammoth's (lwf) alpha and softmax_temp, whose cross-entropy has the same gradient; Mammoth's alpha is 0.5 by default,
and it first trains the new classes' units alone. For code with a factor T^2 in the loss: strength = T^2 times theirs.
Cost: one additional forward pass of the encoder (the teacher's) per step, whatever the number of old heads.
Memory: a copy of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_trait
from holdfast.algorithms.old_heads import ONE_PASS, OldHeads
from holdfast.algorithms.rows import weighted
from holdfast.algorithms.teacher import Teacher, completed, precision, refuse_undistilled, warn_of_new_heads
from holdfast.types import Batch, Between, Part, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class LwF(Algorithm):
    """Distils the model of the last stage into the new one, on the new data."""

    version: ClassVar[int] = 2
    keeps: ClassVar[frozenset[str]] = frozenset({"weights"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    strengths: ClassVar[tuple[str, ...]] = ("strength",)
    recordable: ClassVar[bool] = True

    strength: Annotated[float, Between(0)] = 1.0
    """The weight of distillation."""
    temperature: Annotated[float, Between(1e-3)] = 2.0
    """The temperature of both softmaxes; higher ones give small probabilities more weight."""
    on: Literal["seen", "all", "old-heads"] = "seen"
    """Which outputs are compared: those of the batch's own head that past stages taught (seen), all outputs so far
    (all), or every head that past stages taught, on the new inputs (old-heads)."""
    teacher: Teacher = field(init=False, repr=False, compare=False)
    _old_heads: OldHeads | None = field(init=False, repr=False, compare=False)

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Refuse algorithms that keep an encoder for each stage, or for each head if all heads are asked at once."""
        refuse_trait(self, algorithms, "encoder-per-stage", "distils from the encoder of the last stage")
        if self.on == "old-heads":
            refuse_trait(self, algorithms, "encoder-per-head", ONE_PASS, "set lwf.on=seen")

    def setup(self, learner: Learner) -> None:
        """Start without a teacher."""
        refuse_undistilled(learner)
        self.teacher = Teacher()
        self._old_heads = OldHeads(learner, self.teacher) if self.on == "old-heads" else None

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Refuse an encoder that differs between heads; warn if nothing will be preserved."""
        if self._old_heads is not None:
            self._old_heads.begin()
        elif self.on == "seen":
            warn_of_new_heads(learner, stage, self.teacher.seen)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The divergence from the teacher."""
        heads = {learner.tasks[part.task].head for part in batch.parts}
        if not (self.teacher.seen if self._old_heads is not None else heads & self.teacher.seen.keys()):
            return outputs[0].new_zeros(())
        learner.examples_forward += len(batch.ids)
        with precision(learner):
            pairs = zip(batch.parts, outputs, strict=True)
            rows = [weighted(self._divergence(learner, part, output), part) for part, output in pairs]
        if self._old_heads is not None:
            self._old_heads.forget()
        return self.strength * learner.share(torch.cat(rows), len(batch.ids))

    def _divergence(self, learner: Learner, part: Part, output: Tensor) -> Tensor:
        """The divergence of each row's answer from the teacher's."""
        if self._old_heads is not None:
            return self._old_heads.divergence(part, self.temperature)
        task = learner.tasks[part.task]
        if task.head not in self.teacher.seen:
            return output.new_zeros(len(output))
        units, taught = self.teacher.seen[task.head], self.teacher.outputs(task, part)
        if self.on == "all" and len(units) < task.outputs:
            taught = completed(taught, output, part.targets, units)
            units = torch.arange(task.outputs, device=units.device)
        return task.divergence(taught, output, part, self.temperature, units)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Make the current model the teacher of the next stage, for everything learned up to now."""
        self.teacher.become(learner, stage)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the teacher."""
        return self.teacher.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The teacher."""
        return self.teacher.state_dict()

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the teacher."""
        self.teacher.load_state_dict(learner, state)
