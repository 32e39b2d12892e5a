"""What `replay` keeps, and with which settings and streams; what it does with the examples is in `replay.py`.

Papers: Chaudhry et al. 2019, VisCOLL, CLiMB and CFST.
Cost: none. Memory: `capacity` examples; with per-task, that number, or a `share`, of each stage.

| memory                          | source                       | takes                                          |
|---------------------------------|------------------------------|------------------------------------------------|
| reservoir                       | Chaudhry et al., VisCOLL     | each new example, by chance                    |
| per-task                        | CLiMB                        | a count, or a share, of each stage at its end  |
| experience-balanced             | CFST                         | an equal part of each stage at its end         |
| class-balanced                  |                              | each new example: classes or tasks equally     |
| balanced-sqrt, balanced-forget  | VisCOLL                      | each new example: see `TargetBalanced`         |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from holdfast import registry
from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.algorithms.rows import grouping, phrasing
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
from holdfast.types import Batch, Between, Ids, Stage, Stream

if TYPE_CHECKING:
    from holdfast.algorithms.replay import Replay
    from holdfast.engine.learner import Learner


@dataclass
class KeepsExamples(Algorithm, ABC):
    """An algorithm with a memory, which it fills at the right moments, saves and counts."""

    keeps: ClassVar[frozenset[str]] = frozenset({"examples"})
    instead: ClassVar[Mapping[str, str]] = {"capacity": "share"}

    capacity: Annotated[int, Between(1)] = 200
    """How many examples are kept: in all or, with memory=per-task, of each stage."""
    share: Annotated[float, Between(1e-6, 1)] | None = None
    """With memory=per-task: the share of each stage's training data that is kept, in place of `capacity`; at least one
    example. If that is less than a batch, all of it is replayed, and a `size` above it is refused."""
    memory: str = "reservoir"
    """Which examples are kept: a uniform sample of all seen so far (reservoir), some of each stage when it ends
    (per-task), equal parts of the stages (experience-balanced) or of the groups that `by` names (class-balanced), or
    groups balanced as in VisCOLL, by the square root of their frequency (balanced-sqrt) or by how much of them is
    forgotten (balanced-forget). Or a `Memory` of your own, as `file.py:Name` or `package.module:Name`."""
    by: Literal["class", "task", "word"] = "class"
    """What class-balanced, balanced-sqrt and balanced-forget balance: classes, tasks or, with the last two, the words
    of phrases (VisCOLL)."""
    source: Literal["all", "one"] = "all"
    """Replay from everything that is kept (all), or from one past stage at a time, each as likely as another (one)."""
    kept: Memory = field(init=False, repr=False, compare=False)
    keeper: type[Memory] = field(init=False, repr=False, compare=False)
    """The class that `memory` names."""

    def __post_init__(self) -> None:
        found = registry.find(self.memory, "memory")
        self.keeper = found.load()
        if found.origin == registry.BUILT_IN:
            self.memory = found.name
        else:
            _check_making(self.keeper, self.memory)
        if self.share is not None and self.memory != "per-task":
            raise UserError(f"replay.share is for memory=per-task, but memory is {self.memory}: set replay.capacity")
        if self.source == "one" and self.memory != "reservoir" and not self.keeper.by_stage:
            raise UserError(
                f"replay.source is 'one', but memory={self.memory} does not know stages: "
                "set replay.source=all, or another memory"
            )
        if self.by == "word" and self.memory == "class-balanced":
            raise UserError("replay.by is 'word', but an example has many words: set replay.memory=balanced-sqrt")

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (self.keeper,)

    @property
    @abstractmethod
    def now(self) -> int:
        """The number of the stage that is being learned; -1 if the stream shows none."""

    def setup(self, learner: Learner) -> None:
        """Start with an empty memory, according to the settings."""
        self.kept = self._new_memory(learner, mix(learner.seed, 0x5EED))

    def _new_memory(self, learner: Learner, seed: int) -> Memory:
        if self.memory == "reservoir":
            now = lambda ids: np.full(len(ids), self.now)  # noqa: E731
            return Reservoir(self.capacity, seed, now if self.source == "one" else None)
        if self.memory == "per-task":
            return PerTask(seed, self.capacity, self.share)
        if self.memory == "experience-balanced":
            return ExperienceBalanced(self.capacity, seed)
        if self.memory not in registry.MEMORIES:
            return self._own_memory(learner, seed)
        group, words = self._groups(learner)
        if self.memory == "class-balanced":
            return ClassBalanced(self.capacity, seed, group)
        return TargetBalanced(self.capacity, seed, group, "sqrt" if self.memory == "balanced-sqrt" else "forget", words)

    def _own_memory(self, learner: Learner, seed: int) -> Memory:
        """Create a memory that is not built in."""
        group = {"group": self._groups(learner)[0]} if _takes_group(self.keeper) else {}
        make: Any = self.keeper
        own: Memory = make(capacity=self.capacity, seed=seed, **group)
        return own

    def _groups(self, learner: Learner) -> tuple[Group, Ids | None]:
        """What a memory balances by: a number for each example and, for phrases, the words of each number."""
        return phrasing(learner, "replay") if self.by == "word" else (grouping(learner, self.by, "replay"), None)

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples, if the memory takes them one by one."""
        if not self.keeper.by_stage:
            self.kept.add(batch.ids)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Offer the examples of the stage, if the memory takes finished stages."""
        if self.keeper.by_stage:
            self.kept.add(stage.train)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples and their ids."""
        return learner.data.example_bytes(self.kept.ids) + self.kept.nbytes


def _takes_group(keeper: type[Memory]) -> bool:
    return "group" in signature(keeper).parameters


def _check_making(keeper: type[Memory], word: str) -> None:
    """Raise a UserError if a user's memory cannot be constructed."""
    names = ("capacity", "seed", *(["group"] if _takes_group(keeper) else []))
    try:
        signature(keeper).bind(**dict.fromkeys(names))
    except TypeError as error:
        call = f"{keeper.__name__}({', '.join(f'{name}=...' for name in names)})"
        raise UserError(f"replay makes {word} as {call}: {error}") from None


def refuse_stream(replay: Replay, stream: Stream) -> None:
    """Raise a UserError if the memory cannot fill a batch, or if settings need stage boundaries that are not shown."""
    asks = [f"memory={replay.memory}"] * replay.keeper.by_stage + ["source=one"] * (replay.source == "one")
    asks += ["fidelity=released"] * (replay.fidelity == "released")
    if asks and not stream.boundaries:
        raise UserError(
            f"replay with {asks[0]} needs to know where one stage ends and the next begins, "
            "but this stream does not show it: choose memory=reservoir, source=all and fidelity=paper"
        )
    if replay.memory == "balanced-forget":  # it uses the mean loss of a word in a batch
        refuse_accumulation("replay with memory=balanced-forget", stream)
    if replay.share is None:
        refuse_small("replay", replay.capacity, replay.size, stream)
    elif replay.size is not None:
        least = min(max(round(replay.share * len(stage.train)), 1) for stage in stream.stages)
        if least < replay.size:
            raise UserError(
                f"replay.share is {replay.share:g}, which keeps {least} examples of the smallest stage, less than "
                f"replay.size, which is {replay.size}: raise the share, or set replay.size to {least} or less"
            )
