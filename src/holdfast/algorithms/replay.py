"""Experience replay: kept examples are learned again together with the new ones.

Papers: Chaudhry et al. 2019, "On Tiny Episodic Memories"; CLiMB, VisCOLL and CFST each have a form of it.
Equation: the loss is the mean over B_new and B_memory together (joint), or a step on B_new comes before one on B_memory
(separate: see `replay_steps.py`). B_memory is drawn before B_new is offered to the memory. Over several epochs, a
reservoir counts an example in each one, as in Mammoth's ER: early in a stage it holds more of past stages than if each
example counted once, and it may hold an example twice. Chaudhry et al. and VisCOLL train for one epoch; CLiMB's and
CFST's memories take a stage when it is finished.
Cost: one forward and one backward pass over `size` more examples, every `every` steps.
Memory: `capacity` examples; with per-task, that number, or a `share`, of each stage (see `replay_memories.py`).

| form    | settings                                                                                         |
|---------|--------------------------------------------------------------------------------------------------|
| CLiMB   | memory=per-task share=0.01 every=100 mode=separate source=one; fidelity=released for its code    |
| VisCOLL | capacity=1000 or 10000; mode=separate as in its code; memory=balanced-sqrt by=word, or -forget   |
| CFST    | memory=experience-balanced capacity=1000 size=100, at a batch size of 100                        |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from holdfast.algorithms.replay_forget import observe
from holdfast.algorithms.replay_memories import KeepsExamples, refuse_stream
from holdfast.algorithms.replay_steps import from_one_stage, separate_step
from holdfast.errors import UserError
from holdfast.types import Batch, Between, Ids, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class Replay(KeepsExamples):
    """Adds kept examples to each batch, or takes a separate step on them."""

    version: ClassVar[int] = 1
    remedies: ClassVar[Mapping[str, str]] = {"extra-steps": "set replay.mode=joint"}

    size: Annotated[int, Between(1)] | None = None
    """How many kept examples are replayed at once; none: as many as are new (source=one: that stage's batch size)."""
    every: Annotated[int, Between(1)] = 1
    """Replay in every N-th step."""
    mode: Literal["joint", "separate"] = "joint"
    """joint: kept examples join the batch. separate: they have an optimiser step of their own."""
    fidelity: Literal["paper", "released"] = "paper"
    """paper: as the papers describe it. released: each separate step has a fresh AdamW at the past stage's full
    learning rate, as in CLiMB's code."""
    steps: int = field(init=False, default=0, repr=False, compare=False)
    trainings: list[dict[str, Any]] = field(init=False, default_factory=list, repr=False, compare=False)
    """The training settings of each stage so far."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fidelity == "released" and self.mode == "joint":
            raise UserError("replay.fidelity=released applies to separate steps: set replay.mode=separate as well")
        self.traits = frozenset({"extra-steps"} if self.mode == "separate" else ())

    def check(self, stream: Stream) -> None:
        """Raise a UserError if the memory cannot fill a batch, or if settings need boundaries that are not shown."""
        refuse_stream(self, stream)

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory."""
        super().setup(learner)
        self.steps, self.trainings = 0, []

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Remember the stage's training settings, for when its examples are replayed."""
        self.trainings.append(asdict(stage.training))

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """Joint mode: add kept examples to the new ones."""
        if self.mode == "separate" or not self._due():
            return batch
        kept, _ = self._draw(len(batch.ids))
        return Batch(np.concatenate([batch.ids, kept])) if len(kept) else batch

    def after(self, learner: Learner, batch: Batch) -> None:
        """Separate mode: take a step on kept examples. Then offer the new ones to the memory."""
        if self.mode == "separate" and self._due():
            separate_step(self, learner, *self._draw(len(batch.ids)))
        super().after(learner, batch)
        self.steps += 1

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> None:
        """Add nothing; balanced-forget records the losses."""
        if self.memory == "balanced-forget":
            observe(self, learner, batch, outputs)

    @property
    def recordable(self) -> bool:  # type: ignore[override]
        """False for balanced-forget, which records losses in every step. Otherwise `loss` adds nothing."""
        return self.memory != "balanced-forget"

    def state_dict(self) -> dict[str, Any]:
        """The memory, the number of steps, and the stages' training settings."""
        return {"memory": self.kept.state_dict(), "steps": self.steps, "trainings": self.trainings}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore the memory, the number of steps, and the stages' training settings."""
        self.kept.load_state_dict(state["memory"])
        self.steps, self.trainings = state["steps"], state["trainings"]

    @property
    def now(self) -> int:
        """The number of the stage that is being learned; -1 if the stream shows none."""
        return len(self.trainings) - 1

    def _due(self) -> bool:
        return (self.steps + 1) % self.every == 0

    def _draw(self, new: int) -> tuple[Ids, int]:
        """Kept examples to replay beside `new` new ones, and the stage whose training settings apply."""
        return from_one_stage(self) if self.source == "one" else (self.kept.sample(self.size or new), self.now)
