"""Learning without forgetting: the new model is kept to what the model of the last stage said, on the new data.

Paper: Li and Hoiem 2016, "Learning without Forgetting" (temperature 2, strength 1; there a new head is first trained
alone, which is left out here). CFST uses it with `on=seen`, temperature 1 and strength 1.
Equation: loss + strength * KL(softmax(teacher(x) / T) || softmax(model(x) / T)), the mean over the batch; for
independent answers (SoftLabel, MultiLabel) the KL of each one's sigmoid, for a phrase that of each hidden word, summed
or averaged as the task's loss is. The paper writes the cross-entropy, which has the same gradient, and no T^2: to keep
the gradient's size as T grows (Hinton et al. 2015), multiply the strength by T^2.
`on` is seen (the units of the batch's own head whose classes were learned before), all (every unit so far: where the
teacher has not learned a class, its logit is taken as 1 if that is the answer and 0 if not, as in RPSnet's code, which
keeps new classes from drowning old ones) or old-heads (every head that was learned before, on the new inputs; summed
over heads).
Units: `strength` and `temperature` are the paper's lambda_o and T, Avalanche's (LwFPlugin) alpha and temperature, and
Mammoth's (lwf) alpha and softmax_temp, whose cross-entropy has the same gradient; Mammoth's alpha is 0.5 by default,
and it trains the new classes' units alone first. Codes with a factor T^2 in the loss: strength = T^2 times theirs.
Cost: one more forward pass of the encoder (the teacher's) a step, whatever the number of old heads.
Memory: a copy of the model.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.adapter_library import AdapterLibrary
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.mntdp import Mntdp
from holdfast.algorithms.rows import weighted
from holdfast.errors import UserError
from holdfast.models.base import Given, Model
from holdfast.models.heads import CLOSED
from holdfast.models.modular import ModularEncoder
from holdfast.tasks import Classify, MaskedPhrase, MultiLabel, SoftLabel
from holdfast.types import Batch, Between, Part, Stage, Task

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

logger = logging.getLogger("holdfast")


@dataclass
class LwF(Algorithm):
    """Distils the model of the last stage into the new one, on the new data."""

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries"})
    strengths: ClassVar[tuple[str, ...]] = ("strength",)
    recordable: ClassVar[bool] = True

    strength: Annotated[float, Between(0)] = 1.0
    temperature: Annotated[float, Between(1e-3)] = 2.0
    on: Literal["seen", "all", "old-heads"] = "seen"
    teacher: Model | None = field(init=False, repr=False, compare=False)
    seen: dict[str, Tensor] = field(init=False, repr=False, compare=False)
    """The units of each head that past stages have taught."""

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Refuse algorithms that keep an encoder for each stage, or for each head where all are asked at once."""
        for other in algorithms:
            if isinstance(other, AdapterLibrary):
                raise UserError(
                    "lwf keeps an encoder to what it was, and adapter-library has one for each stage that never "
                    "changes: leave one of the two out"
                )
            if self.on == "old-heads" and isinstance(other, Mntdp):
                _refuse_parts("mntdp's paths")

    def setup(self, learner: Learner) -> None:
        """No teacher yet."""
        self.teacher, self.seen = None, {}
        self._noted: list[tuple[Mapping[str, Tensor], Tensor]] = []
        _refuse(learner, self.on)

        def note(encoder: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            if self.teacher is not None and torch.is_grad_enabled():
                self._noted.append((inputs[0], output))

        if self.on == "old-heads":  # old heads read what the encoder gave in this step: one pass for all
            learner.model.encoder.register_forward_hook(note)

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Refuse an encoder that is another one for each head (adapters are all there only now); warn of no effect."""
        if self.on == "old-heads" and any(len(block.added) for block in learner.model.encoder.blocks()):
            _refuse_parts("adapters")
        if self.on == "seen" and self.seen and not self.seen.keys() & _heads(learner, stage):
            logger.warning(
                "lwf.on is seen, which keeps what a batch's own head was taught, and the head of stage %r is new: on "
                "its own examples this is plain fine-tuning; set lwf.on=old-heads to keep the other heads",
                stage.name,
            )

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """Let go of what the encoder gave in the last step."""
        self._noted.clear()
        return batch

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The divergence from the teacher."""
        own = self.on != "old-heads"
        heads = {learner.tasks[part.task].head for part in batch.parts} if own else set(self.seen)
        if self.teacher is None or not heads & self.seen.keys():
            return outputs[0].new_zeros(())
        learner.examples_forward += len(batch.ids)
        rows = []
        with _precision(learner):
            for part, output in zip(batch.parts, outputs, strict=True):
                if own:
                    losses = self._on_own(learner.tasks[part.task], part, output)
                else:
                    losses = self._on_old_heads(learner, part, self.teacher)
                rows.append(weighted(losses, part))
        self._noted.clear()
        return self.strength * learner.share(torch.cat(rows), len(batch.ids))

    def _on_own(self, task: Task, part: Part, output: Tensor) -> Tensor:
        if task.head not in self.seen:
            return output.new_zeros(len(output))
        with torch.no_grad():
            taught = task.forward(self._ask, part)
        units = self.seen[task.head]
        if self.on == "all" and isinstance(task, Classify) and task.reads.kind == "classify":
            taught = completed(taught, output, part.targets, units)
            units = torch.arange(task.outputs, device=units.device)
        return divergence(task, part, taught, output, self.temperature, units)

    def _on_old_heads(self, learner: Learner, part: Part, teacher: Model) -> Tensor:
        features = next((output for inputs, output in reversed(self._noted) if _same(inputs, part.inputs)), None)
        if features is None:  # the task gave the encoder other inputs than the part's
            features = learner.model.encoder(part.inputs)
        with torch.no_grad():
            taught_features = teacher.encoder(part.inputs)
        losses = []
        for head, task in {task.head: task for task in learner.tasks.values()}.items():
            if head in self.seen:
                with torch.no_grad():
                    taught = teacher.heads[head](Given(taught_features), part.inputs)
                output = learner.model.heads[head](Given(features), part.inputs)
                losses.append(divergence(task, part, taught, output, self.temperature, self.seen[head]))
        return torch.stack(losses).sum(0)

    def end(self, learner: Learner, stage: Stage) -> None:
        """The model as it is now teaches the next stage what this one and those before have taught."""
        weights, modular = learner.model.state_dict(), isinstance(learner.model.encoder, ModularEncoder)
        if self.teacher is None or modular or self.teacher.state_dict().keys() != weights.keys():
            self._teach(learner, copy.deepcopy(learner.model))
        else:  # the same module: replacing it would cost what was prepared for it
            self.teacher.load_state_dict(weights)
        for index, table in enumerate(learner.data.tables):
            start, stop = learner.data.offsets[index], learner.data.offsets[index + 1]
            ids = stage.train[(stage.train >= start) & (stage.train < stop)]
            if len(ids):
                task = learner.tasks[table.task]
                one_class = isinstance(task, Classify) and task.reads.kind == "classify"
                units = learner.data.targets(ids) if one_class else torch.arange(task.outputs)
                before = self.seen.get(task.head, units[:0])
                self.seen[task.head] = torch.unique(torch.cat([before.cpu(), units])).to(learner.device)

    def _teach(self, learner: Learner, teacher: Model) -> None:
        self.teacher = teacher.eval().requires_grad_(False)
        self._ask = learner.asking(self.teacher)

    def memory_bytes(self, learner: Learner) -> int:
        """The teacher, and the numbers of the units that were seen."""
        weights = {} if self.teacher is None else self.teacher.state_dict()
        return sum(value.nbytes for value in (*weights.values(), *self.seen.values()))

    def state_dict(self) -> dict[str, Any]:
        """The teacher's weights, the path through its modules, and what it was taught."""
        state: dict[str, Any] = {"seen": dict(self.seen), "teacher": None, "structure": None}
        if self.teacher is not None:
            state["teacher"] = self.teacher.state_dict()
            if isinstance(self.teacher.encoder, ModularEncoder):
                state["structure"] = self.teacher.encoder.structure()
        return state

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.seen = {head: units.to(learner.device) for head, units in state["seen"].items()}
        self.teacher = None
        if state["teacher"] is not None:
            teacher = copy.deepcopy(learner.model)
            if isinstance(teacher.encoder, ModularEncoder):  # the learner's may have grown, or be on another path
                teacher.encoder.rebuild(state["structure"])
            teacher.load_state_dict(state["teacher"])
            self._teach(learner, teacher)


def _heads(learner: Learner, stage: Stage) -> set[str]:
    """The heads that a stage's examples train."""
    tables = np.unique(np.searchsorted(learner.data.offsets[1:-1], stage.train, side="right"))
    return {learner.tasks[learner.data.tables[index].task].head for index in tables}


def completed(taught: Tensor, output: Tensor, targets: Tensor, seen: Tensor) -> Tensor:
    """The teacher's logits, with 1 (the answer) or 0 for classes that it has not learned; closed ones stay closed.

    >>> taught, output = torch.tensor([[3.0, -1.0, CLOSED, CLOSED]]), torch.tensor([[0.0, 0.0, 0.0, CLOSED]])
    >>> completed(taught, output, torch.tensor([2]), torch.tensor([0, 1])).tolist()
    [[3.0, -1.0, 1.0, -10000.0]]
    """
    known = (targets[:, None] == torch.arange(output.shape[-1], device=targets.device)).to(taught.dtype)
    known = known.index_copy(-1, seen, taught.index_select(-1, seen))
    return known.masked_fill(output < CLOSED / 2, CLOSED)  # in half precision, it is not quite that number


def divergence(task: Task, part: Part, taught: Tensor, output: Tensor, temperature: float, units: Tensor) -> Tensor:
    """The KL divergence of each row's answers from the teacher's, both at temperature T.

    >>> task = Classify("colours", head="colours", outputs=3, chance=1 / 3)
    >>> taught, output = torch.tensor([[0.0, 0.0, 9.0]]), torch.tensor([[5.0, 5.0, 0.0]])
    >>> divergence(task, Part("colours", {}, torch.zeros(1)), taught, output, 2.0, torch.tensor([0, 1])).item()
    0.0
    """
    kind = torch.promote_types(output.dtype, torch.float32)
    if task.reads.kind == "classify" and len(units) < output.shape[-1]:
        taught, output = taught.index_select(-1, units), output.index_select(-1, units)
    taught, output = taught.to(kind) / temperature, output.to(kind) / temperature
    if isinstance(task, SoftLabel | MultiLabel):
        chances, cross_entropy = taught.sigmoid(), functional.binary_cross_entropy_with_logits
        each = cross_entropy(output, chances, reduction="none") - cross_entropy(taught, chances, reduction="none")
        rows = each.mean(-1) if isinstance(task, MultiLabel) else each.sum(-1)
    else:
        ours, theirs = output.log_softmax(-1), taught.log_softmax(-1)
        rows = functional.kl_div(ours, theirs, reduction="none", log_target=True).sum(-1)
        if isinstance(task, MaskedPhrase):
            hidden = part.targets >= 0
            rows = (rows * hidden).sum(-1) / hidden.sum(-1)
    return rows


def _same(inputs: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    """Whether two mappings hold the very same columns; the mappings may be copies."""
    return inputs.keys() == others.keys() and all(inputs[name] is column for name, column in others.items())


def _precision(learner: Learner) -> AbstractContextManager[Any]:
    if learner.autocast is None:
        return nullcontext()
    return torch.autocast(learner.device.type, learner.autocast)


def _refuse_parts(which: str) -> NoReturn:
    raise UserError(
        "lwf.on is old-heads, which asks every head about one pass of the encoder, but this encoder has parts for each "
        f"head ({which}): set lwf.on=seen, or leave one of the two out"
    )


def _refuse(learner: Learner, on: str) -> None:
    """Refuse, before training, tasks whose answers cannot be distilled so."""
    for task in learner.tasks.values():
        if not isinstance(task, Classify | SoftLabel | MultiLabel | MaskedPhrase):
            raise UserError(
                f"lwf compares a model's answers with its teacher's, and how task {task.name!r} "
                f"({type(task).__name__}) turns outputs into answers is not known: choose another algorithm"
            )
    kinds = {(task.reads.kind, task.reads.images) for task in learner.tasks.values()}
    if on == "old-heads" and (len(kinds) > 1 or any(kind == "phrase" for kind, _ in kinds)):
        found = ", ".join(sorted(f"{kind} with {images} image(s)" for kind, images in kinds))
        raise UserError(
            "lwf.on is old-heads, which asks each old head about new inputs, so all heads must be of one kind, "
            f"classify or choose, and here they are: {found}; set lwf.on=seen"
        )
