"""The base class of all memories, and the memories that do not balance groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from holdfast.errors import UserError
from holdfast.types import Ids, Stream

Group: TypeAlias = Callable[[Ids], Ids]
"""The attribute that a memory balances by: a number for each example."""


class Memory(ABC):
    """A bounded set of example ids.

    `replay` creates a user's own memory as `Name(capacity=..., seed=...)`, and also passes the `group` function if its
    constructor accepts one.
    """

    by_stage: ClassVar[bool] = False
    """Whether it takes finished stages: `add` is given all examples of each finished stage, and nothing else."""
    ids: Ids
    groups: Ids
    """The group of each id; empty if the memory has no groups."""

    def __init__(self, seed: int, group: Group | None = None) -> None:
        self.ids, self.groups = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._group = group
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.ids)

    def group_of(self, ids: Ids) -> Ids:
        """The groups of examples, whether held or not."""
        assert self._group is not None, "asked of a memory with groups"
        return self._group(ids)

    @property
    def nbytes(self) -> int:
        """The bytes of the ids and of the data kept about them; the examples themselves are not counted."""
        return sum(value.nbytes for value in self.state_dict().values() if isinstance(value, np.ndarray))

    @abstractmethod
    def add(self, ids: Ids) -> None:
        """Offer examples in the order in which they were seen."""

    def sample(self, count: int) -> Ids:
        """Draw the examples of `count` different places, or of all places if there are fewer."""
        return self.ids[self.draw(count)]

    def draw(self, count: int) -> Ids:
        """Draw `count` different places of `ids`, or all of them if there are fewer."""
        if len(self.ids) <= count:
            return np.arange(len(self.ids))
        places: Ids = self._random.choice(len(self.ids), count, replace=False, shuffle=False)
        return places

    def draw_group(self, but: int | None = None) -> int | None:
        """A random group of those held, all equally likely, optionally excluding one; None if no other exists."""
        held = np.unique(self.groups)
        held = held[held != but]
        return int(held[self._random.integers(len(held))]) if len(held) else None

    def sample_group(self, group: int, count: int) -> Ids:
        """Draw the examples of `count` different places of one group, or of all its places if there are fewer."""
        held: Ids = self.ids[self.groups == group]
        if len(held) > count:
            held = held[self._random.choice(len(held), count, replace=False, shuffle=False)]
        return held

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume a run."""
        return {
            "ids": self.ids.copy(),
            "groups": self.groups.copy(),
            "random": self._random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.ids, self.groups = state["ids"].copy(), state["groups"].copy()
        self._random.bit_generator.state = state["random"]

    def _append(self, ids: Ids) -> None:
        self.ids = np.concatenate([self.ids, ids])
        if self._group:
            self.groups = np.concatenate([self.groups, self._group(ids)])

    def _replace(self, places: Ids, ids: Ids) -> None:
        """Put examples in the places of others; if a place is named twice, the later example stays."""
        self.ids[places] = ids
        if self._group:
            self.groups[places] = self._group(ids)


class Distinct(Memory):
    """A memory in which an example counts only the first time it is offered."""

    def __init__(self, seed: int, group: Group | None = None) -> None:
        super().__init__(seed, group)
        self._offered = np.zeros(64, dtype=np.bool_)
        """Whether each id has ever been offered; its length is a power of two, no larger than the ids require."""

    def add(self, ids: Ids) -> None:
        """Offer examples in the order in which they were seen; those offered before are left out."""
        fresh = self.unseen(ids)
        self._offered[fresh] = True
        self._add(fresh)

    def unseen(self, ids: Ids) -> Ids:
        """The given examples that were never offered before, without repetition."""
        if len(ids) and (most := int(ids.max())) >= len(self._offered):
            self._offered = np.pad(self._offered, (0, (1 << most.bit_length()) - len(self._offered)))
        fresh = ids[~self._offered[ids]]
        first = np.unique(fresh, return_index=True)[1]
        return fresh if len(first) == len(fresh) else fresh[np.sort(first)]

    @abstractmethod
    def _add(self, ids: Ids) -> None:
        """Keep some of these examples, none of which was offered before."""

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, and which examples have been offered."""
        return super().state_dict() | {"offered": np.packbits(self._offered)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().load_state_dict(state)
        self._offered = np.unpackbits(state["offered"]).astype(np.bool_)


def refuse_small(name: str, capacity: int, size: int | None, stream: Stream, *, sized: bool = True) -> None:
    """Raise a UserError, before training, if a memory cannot fill one batch of `size`, or of the stream's own size.

    `sized` says whether the algorithm has a setting for that size.
    """
    wanted = size or max(stage.training.batch_size for stage in stream.stages)
    if capacity < wanted:
        raise UserError(
            f"{name}.capacity is {capacity}, less than the {wanted} kept examples of one batch: "
            f"raise it, or set {f'{name}.size' if sized else 'train.batch_size'} to {capacity} or less"
        )


class Reservoir(Memory):
    """A uniform sample of everything that was seen: the n-th offer enters with probability capacity / n (Vitter 1985).

    An example counts each time it is offered, as in Mammoth's buffer: in a second epoch it may take a new place, and
    may then hold two. Whatever an algorithm stores beside a place is therefore as old as the offer that took it, and
    every past offer is equally likely to be held.

    >>> memory = Reservoir(capacity=2, seed=0)
    >>> memory.add(np.array([7, 8, 9]))
    >>> len(memory), memory.seen, sorted(memory.sample(5)) == sorted(memory.ids)
    (2, 3, True)
    """

    version: ClassVar[int] = 1

    def __init__(self, capacity: int, seed: int, group: Group | None = None) -> None:
        super().__init__(seed, group)
        self.capacity = capacity
        self.seen = 0
        """The number of offers so far."""

    def add(self, ids: Ids) -> None:
        """Offer examples in the order in which they were seen."""
        self.offer(ids)

    def offer(self, ids: Ids) -> Ids:
        """Like `add`, and return the places taken; vectorised, with the same result as one offer after another."""
        free = max(self.capacity - self.seen, 0)
        first, rest = ids[:free], ids[free:]
        taken = np.arange(len(self.ids), len(self.ids) + len(first))
        if len(first):
            self._append(first)
            self.seen += len(first)
        if len(rest):
            counts = np.arange(self.seen + 1, self.seen + len(rest) + 1)
            places = (self._random.random(len(rest)) * counts).astype(np.int64)  # uniform below each count
            self.seen += len(rest)
            enters = places < self.capacity
            self._replace(places[enters], rest[enters])
            taken = np.union1d(taken, places[enters])
        return taken

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, and the number of offers."""
        return super().state_dict() | {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().load_state_dict(state)
        self.seen = state["seen"]


class Latest(Distinct):
    """The `capacity` most recent examples, each counted on its first arrival, until they are taken.

    >>> memory = Latest(capacity=2, seed=0)
    >>> memory.add(np.array([7, 8, 9, 7]))
    >>> memory.take().tolist(), len(memory)
    ([8, 9], 0)
    """

    version: ClassVar[int] = 1

    def __init__(self, capacity: int, seed: int) -> None:
        super().__init__(seed)
        self.capacity = capacity

    def take(self) -> Ids:
        """Return everything that is held, and empty the memory."""
        taken, self.ids = self.ids, self.ids[:0].copy()
        return taken

    def _add(self, ids: Ids) -> None:
        self.ids = np.concatenate([self.ids, ids])[-self.capacity :]


class PerTask(Distinct):
    """A random part of each finished stage: `count` examples, or `share` of them. It grows with the stages.

    `add` is given all examples of a finished stage; `groups` are the stages' numbers from 0.

    >>> memory = PerTask(seed=0, share=0.01)
    >>> memory.add(np.arange(500))
    >>> memory.add(np.arange(500, 800))
    >>> memory.groups.tolist()
    [0, 0, 0, 0, 0, 1, 1, 1]
    """

    version: ClassVar[int] = 1
    by_stage: ClassVar[bool] = True

    def __init__(self, seed: int, count: int = 0, share: float | None = None) -> None:
        super().__init__(seed)
        self.count, self.share, self.stages = count, share, 0

    def _add(self, ids: Ids) -> None:
        """Keep a part of a finished stage: at least one example."""
        count = self.count if self.share is None else max(round(self.share * len(ids)), 1)
        kept = self._random.permutation(ids)[:count]
        self.ids = np.concatenate([self.ids, kept])
        self.groups = np.concatenate([self.groups, np.full(len(kept), self.stages)])
        self.stages += 1

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, and the number of stages."""
        return super().state_dict() | {"stages": self.stages}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().load_state_dict(state)
        self.stages = state["stages"]


class ExperienceBalanced(Distinct):
    """`capacity` examples in all, an equal part of each finished stage; older parts shrink as stages are added.

    `add` is given all examples of a finished stage; `groups` are the stages' numbers from 0.

    >>> memory = ExperienceBalanced(capacity=7, seed=0)
    >>> for start in (0, 50, 100):
    ...     memory.add(np.arange(start, start + 50))
    >>> np.bincount(memory.groups).tolist()
    [2, 2, 3]
    """

    version: ClassVar[int] = 1
    by_stage: ClassVar[bool] = True

    def __init__(self, capacity: int, seed: int) -> None:
        super().__init__(seed)
        self.capacity, self.stages = capacity, 0

    def _add(self, ids: Ids) -> None:
        """Make room, and keep a part of a finished stage."""
        self.stages += 1
        ends = self.capacity * np.arange(self.stages + 1) // self.stages
        # Each part is in random order, so that its first examples are a uniform sample of the stage.
        parts = [self.ids[self.groups == stage] for stage in range(self.stages - 1)]
        parts = [part[:size] for part, size in zip([*parts, self._random.permutation(ids)], np.diff(ends), strict=True)]
        self.ids = np.concatenate(parts)
        self.groups = np.repeat(np.arange(self.stages), [len(part) for part in parts])

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, and the number of stages."""
        return super().state_dict() | {"stages": self.stages}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().load_state_dict(state)
        self.stages = state["stages"]
