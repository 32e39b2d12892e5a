"""Experience replay: kept examples are learned again beside the new ones.

Papers: Chaudhry et al. 2019, "On Tiny Episodic Memories"; CLiMB, VisCOLL and CFST each have a form of it.
Equation: the loss is the mean over B_new and B_memory together (joint), or a step on B_new comes before one on B_memory
(separate: see `replay_steps.py`). B_memory is drawn before B_new is offered to the memory. Over several epochs, a
reservoir counts an example in each, as in Mammoth's ER: early in a stage it holds more of past stages than if each
example counted once, and it may hold one twice. Chaudhry et al. and VisCOLL train for one epoch; CLiMB's and CFST's
memories take a stage when it is done.
Cost: one forward and one backward pass over `size` more examples, every `every` steps.
Memory: `capacity` examples; with per-task, so many, or a `share`, of each stage (see `replay_memories.py`).

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
    """Kept examples join each batch, or have a step of their own."""

    version: ClassVar[int] = 1
    remedies: ClassVar[Mapping[str, str]] = {"extra-steps": "set replay.mode=joint"}

    size: Annotated[int, Between(1)] | None = None
    """How many kept examples are replayed at once; None: as many as are new or, of one task, its own batch size."""
    every: Annotated[int, Between(1)] = 1
    """Replay at every so many steps."""
    mode: Literal["joint", "separate"] = "joint"
    fidelity: Literal["paper", "released"] = "paper"
    """released: each separate step has a fresh AdamW at the past stage's full learning rate, as in CLiMB's code."""
    steps: int = field(init=False, default=0, repr=False, compare=False)
    trainings: list[dict[str, Any]] = field(init=False, default_factory=list, repr=False, compare=False)
    """How each stage so far is trained."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fidelity == "released" and self.mode == "joint":
            raise UserError("replay.fidelity=released is about separate steps: set replay.mode=separate as well")
        self.traits = frozenset({"extra-steps"} if self.mode == "separate" else ())

    def check(self, stream: Stream) -> None:
        """Refuse a memory that cannot fill a batch, and settings that ask for stages where there are none to see."""
        refuse_stream(self, stream)

    def setup(self, learner: Learner) -> None:
        """An empty memory."""
        super().setup(learner)
        self.steps, self.trainings = 0, []

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Remember how the stage is trained, for when its examples are replayed."""
        self.trainings.append(asdict(stage.training))

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """Joint: the new examples, and kept ones."""
        if self.mode == "separate" or not self._due():
            return batch
        kept, _ = self._draw(len(batch.ids))
        return Batch(np.concatenate([batch.ids, kept])) if len(kept) else batch

    def after(self, learner: Learner, batch: Batch) -> None:
        """Separate: a step on kept examples. Then offer the new ones to the memory."""
        if self.mode == "separate" and self._due():
            separate_step(self, learner, *self._draw(len(batch.ids)))
        super().after(learner, batch)
        self.steps += 1

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> None:
        """Add nothing; balanced-forget takes note of the losses."""
        if self.memory == "balanced-forget":
            observe(self, learner, batch, outputs)

    @property
    def recordable(self) -> bool:  # type: ignore[override]
        """No: balanced-forget takes note of losses in every step. Otherwise `loss` adds nothing."""
        return self.memory != "balanced-forget"

    def state_dict(self) -> dict[str, Any]:
        """The memory, the steps, and the stages' training."""
        return {"memory": self.kept.state_dict(), "steps": self.steps, "trainings": self.trainings}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """The memory, the steps, and the stages' training."""
        self.kept.load_state_dict(state["memory"])
        self.steps, self.trainings = state["steps"], state["trainings"]

    @property
    def now(self) -> int:
        """The number of the stage that is being learned; -1 where the stream shows none."""
        return len(self.trainings) - 1

    def _due(self) -> bool:
        return (self.steps + 1) % self.every == 0

    def _draw(self, new: int) -> tuple[Ids, int]:
        """Kept examples to replay beside so many new ones, and the stage whose training they follow."""
        return from_one_stage(self) if self.source == "one" else (self.kept.sample(self.size or new), self.now)
