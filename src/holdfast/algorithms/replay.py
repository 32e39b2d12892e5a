"""Experience replay: examples from memory are learned again beside the new ones.

Papers: Chaudhry et al. 2019, "On Tiny Episodic Memories"; CLiMB, VisCOLL and CFST each have a form of it.
Equation: joint: the loss is the mean over B_new and B_memory together. separate: a step on B_new, then one on B_memory.
B_memory is drawn before B_new is offered to the memory. Over several epochs, a reservoir counts an example in each, as
in Mammoth's ER: early in a stage it holds more of past stages than if each example counted once, and it may hold one
twice. Chaudhry et al. and VisCOLL train for one epoch, and CLiMB's and CFST's memories take a stage when it is done.
Cost: one forward and one backward pass over `size` more examples, every `every` steps. Memory: `capacity` examples, or
with per-task so many, or a `share`, of each stage.

| form    | settings                                                                                         |
|---------|--------------------------------------------------------------------------------------------------|
| CLiMB   | memory=per-task share=0.01 every=100 mode=separate source=one; fidelity=released for its code    |
| VisCOLL | capacity=1000 or 10000; mode=separate as in its code; memory=balanced-sqrt by=word, or -forget   |
| CFST    | memory=experience-balanced capacity=1000 size=100, at a batch size of 100                        |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from torch import Tensor

from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.algorithms.rows import grouping, on_all_ranks, phrasing
from holdfast.data.order import mix
from holdfast.errors import UserError
from holdfast.memory import (
    ClassBalanced,
    ExperienceBalanced,
    Group,
    Memory,
    PerTask,
    Reservoir,
    TargetBalanced,
    refuse_small,
)
from holdfast.types import Batch, Between, Ids, Part, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.tasks import MaskedPhrase

MEMORIES: Mapping[str, type[Memory]] = {
    "reservoir": Reservoir,
    "per-task": PerTask,
    "experience-balanced": ExperienceBalanced,
    "class-balanced": ClassBalanced,
    "balanced-sqrt": TargetBalanced,
    "balanced-forget": TargetBalanced,
}
BY_STAGE = ("per-task", "experience-balanced")
BY_GROUP = ("class-balanced", "balanced-sqrt", "balanced-forget")


@dataclass
class Replay(Algorithm):
    """Kept examples join each batch, or have a step of their own."""

    version: ClassVar[int] = 1
    instead: ClassVar[Mapping[str, str]] = {"capacity": "share"}

    capacity: Annotated[int, Between(1)] = 200
    """How many examples are kept; with per-task, of each stage."""
    share: Annotated[float, Between(1e-6, 1)] | None = None
    """With per-task: which share of each stage's training data is kept, in place of a count; at least one example.

    Where that is less than a batch, all of it is replayed, unless `size` asks for more: that is refused."""
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples are replayed at once; None: as many as are new or, of one task, its own batch size."""
    every: Annotated[int, Between(1)] = 1
    """Replay at every so many steps."""
    mode: Literal["joint", "separate"] = "joint"
    source: Literal["all", "one"] = "all"
    """Replay from all that is kept, or from one past stage, each as likely as another."""
    memory: Literal[
        "reservoir", "per-task", "experience-balanced", "class-balanced", "balanced-sqrt", "balanced-forget"
    ] = "reservoir"
    by: Literal["class", "task", "word"] = "class"
    """What the last three memories balance: classes, tasks, or, in the last two, the words of phrases (VisCOLL)."""
    fidelity: Literal["paper", "released"] = "paper"
    """released: each separate step has a fresh AdamW at the past stage's full learning rate, as in CLiMB's code."""
    kept: Memory = field(init=False, repr=False, compare=False)
    steps: int = field(init=False, default=0, repr=False, compare=False)
    trainings: list[dict[str, Any]] = field(init=False, default_factory=list, repr=False, compare=False)
    """How each stage so far is trained."""
    _group: Group = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.share is not None and self.memory != "per-task":
            raise UserError(f"replay.share is for memory=per-task, and memory is {self.memory}: set replay.capacity")
        if self.source == "one" and self.memory in BY_GROUP:
            raise UserError(
                f"replay.source is 'one', but memory={self.memory} does not know stages: "
                "set replay.source=all, or another memory"
            )
        if self.by == "word" and self.memory == "class-balanced":
            raise UserError("replay.by is 'word', but an example has many words: set replay.memory=balanced-sqrt")
        if self.fidelity == "released" and self.mode == "joint":
            raise UserError("replay.fidelity=released is about separate steps: set replay.mode=separate as well")

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (MEMORIES[self.memory],)

    def check(self, stream: Stream) -> None:
        """Refuse a memory that cannot fill a batch, and settings that ask for stages where there are none to see."""
        asks = [f"memory={self.memory}"] * (self.memory in BY_STAGE) + ["source=one"] * (self.source == "one")
        asks += ["fidelity=released"] * (self.fidelity == "released")
        if asks and not stream.boundaries:
            raise UserError(
                f"replay with {asks[0]} needs to know where one stage ends and the next begins, "
                "and this stream does not show it: choose memory=reservoir, source=all and fidelity=paper"
            )
        if self.memory == "balanced-forget":  # it takes the mean loss of a word in a batch
            refuse_accumulation("replay with memory=balanced-forget", stream)
        if self.share is None:
            refuse_small("replay", self.capacity, self.size, stream)
        elif self.size is not None:
            least = min(max(round(self.share * len(stage.train)), 1) for stage in stream.stages)
            if least < self.size:
                raise UserError(
                    f"replay.share is {self.share:g}, which keeps {least} examples of the smallest stage, less than "
                    f"the {self.size} of replay.size: raise the share, or set replay.size to {least} or less"
                )

    def setup(self, learner: Learner) -> None:
        """An empty memory."""
        self.kept, self.steps, self.trainings = self._memory(learner), 0, []

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Remember how the stage is trained, for when its examples are replayed."""
        self.trainings.append(asdict(stage.training))

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """The new examples, and kept ones."""
        if self.mode == "separate" or not self._due():
            return batch
        kept, _ = self._draw(len(batch.ids))
        return Batch(np.concatenate([batch.ids, kept])) if len(kept) else batch

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> None:
        """Add nothing; balanced-forget takes note of the losses."""
        self._observe(learner, batch, outputs)

    @property
    def recordable(self) -> bool:  # type: ignore[override]
        """No: balanced-forget takes note of losses in every step. Otherwise `loss` adds nothing."""
        return self.memory != "balanced-forget"

    def after(self, learner: Learner, batch: Batch) -> None:
        """A separate step; then offer the new examples to the memory."""
        if self.mode == "separate" and self._due():
            kept, stage = self._draw(len(batch.ids))
            if len(kept):
                self._step(learner, kept, stage)
        if self.memory not in BY_STAGE:
            self.kept.add(batch.ids)
        self.steps += 1

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep a part of the finished stage."""
        if self.memory in BY_STAGE:
            self.kept.add(stage.train)

    def memory_bytes(self, learner: Learner) -> int:
        """The kept examples and their ids."""
        return learner.data.example_bytes(self.kept.ids) + self.kept.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory, the steps, and the stages' training."""
        return {"memory": self.kept.state_dict(), "steps": self.steps, "trainings": self.trainings}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """The memory, the steps, and the stages' training."""
        self.kept.load_state_dict(state["memory"])
        self.steps, self.trainings = state["steps"], state["trainings"]

    def _memory(self, learner: Learner) -> Memory:
        seed = mix(learner.seed, 0x5EED)
        if self.memory == "reservoir":
            by_stage = lambda ids: np.full(len(ids), self._now)  # noqa: E731
            return Reservoir(self.capacity, seed, by_stage if self.source == "one" else None)
        if self.memory == "per-task":
            return PerTask(seed, self.capacity, self.share)
        if self.memory == "experience-balanced":
            return ExperienceBalanced(self.capacity, seed)
        if self.by == "word":
            group, words = phrasing(learner, "replay")
        else:
            group, words = grouping(learner, self.by, "replay"), None
        if self.memory == "class-balanced":
            return ClassBalanced(self.capacity, seed, group)
        self._group = group
        target: Literal["sqrt", "forget"] = "sqrt" if self.memory == "balanced-sqrt" else "forget"
        return TargetBalanced(self.capacity, seed, group, target, words)

    @property
    def _now(self) -> int:
        """The number of the stage that is being learned; -1 where the stream shows none."""
        return len(self.trainings) - 1

    def _due(self) -> bool:
        return (self.steps + 1) % self.every == 0

    def _draw(self, new: int) -> tuple[Ids, int]:
        """Kept examples to replay beside so many new ones, and the stage whose training they follow."""
        if self.source == "all":
            return self.kept.sample(self.size or new), self._now
        stage = self.kept.draw_group(but=self._now)
        if stage is None:
            return np.empty(0, dtype=np.int64), self._now
        return self.kept.sample_group(stage, self.size or self.trainings[stage]["batch_size"]), stage

    def _step(self, learner: Learner, ids: Ids, stage: int) -> None:
        """Learn from kept examples alone: by the learner's own optimiser, at the rate of the step before."""
        learner.gradients(ids, [self])
        if self.fidelity == "paper":
            learner.optimiser.step()
            return
        past, now = self.trainings[stage], learner.optimiser.training
        betas = (past["betas"][0], past["betas"][1])
        as_then = {"learning_rate": past["learning_rate"], "betas": betas, "epsilon": past["epsilon"]}
        learner.optimiser.anew(replace(now, optimiser="adamw", **as_then)).step()

    def _observe(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> None:
        if self.memory != "balanced-forget":
            return
        assert isinstance(self.kept, TargetBalanced)
        own = tuple(
            self._losses(learner, part, output.detach()) for part, output in zip(batch.parts, outputs, strict=True)
        )
        for ids, rows in on_all_ranks(learner, batch, own):
            # Rounded, so that one rank and many, whose last digits differ, take the same decisions.
            losses = rows.double().cpu().numpy().round(6)  # waits for the device
            if self.by == "word":
                words = learner.data.targets(ids).numpy()
                self.kept.observe(words[words >= 0], losses[words >= 0])
            else:
                self.kept.observe(self._group(ids), losses)

    def _losses(self, learner: Learner, part: Part, output: Tensor) -> Tensor:
        """The loss of each row, or of each of its words."""
        task = learner.tasks[part.task]
        return cast("MaskedPhrase", task).word_losses(output, part) if self.by == "word" else task.losses(output, part)
