"""Memories: which past examples an algorithm may keep. They hold ids, never tensors.

A memory draws from a generator of its own, seeded alike on every rank, so that all ranks hold the same ids without
talking to each other. An example counts when it is offered for the first time, and never again, however often a later
epoch, another fit of the stage or another stage brings it back. A memory that balances is given `group`, a function
from ids to a number for each of them: its class, its task, its stage, its noun. The numbers need not be dense; a memory
asks for them once, when an example is offered.

| memory             | is offered       | keeps                                                                        |
|--------------------|------------------|------------------------------------------------------------------------------|
| Reservoir          | each example     | a uniform sample of all examples seen                                        |
| Latest             | each example     | the last ones                                                                |
| PerTask            | a finished stage | a count, or a share, of each                                                 |
| ExperienceBalanced | a finished stage | `capacity` in all, equal parts of each                                       |
| ClassBalanced      | each example     | groups as equal as they can be                                               |
| TargetBalanced     | each example     | groups as near as can be to the square root of their frequency, or to how    |
|                    |                  | much of them is forgotten                                                    |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError
from holdfast.types import Ids, Stream

Group: TypeAlias = Callable[[Ids], Ids]
"""What a memory balances by: a number for each example."""

Floats: TypeAlias = NDArray[np.float64]

FLOOR = 0.01
"""The least forgetting, in nats, that TargetBalanced gives a group: one that is not forgotten keeps a place."""
SMOOTHING = 0.9
"""How much of a group's mean loss is its past, where TargetBalanced follows it."""


class Memory(ABC):
    """A bounded set of example ids."""

    ids: Ids
    groups: Ids
    """The group of each id; empty where the memory was given none."""

    def __init__(self, seed: int, group: Group | None = None) -> None:
        self.ids, self.groups = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._group = group
        self._random = np.random.default_rng(seed)
        self._offered = np.zeros(64, dtype=np.bool_)
        """Whether each id was ever offered; as long as a power of two, and no shorter than the ids need."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """The bytes of the ids and of what else is kept about them; the examples themselves are not counted."""
        return sum(value.nbytes for value in self.state_dict().values() if isinstance(value, np.ndarray))

    def add(self, ids: Ids) -> None:
        """Offer examples in the order in which they were seen; those that were offered before are left out."""
        fresh = self.unseen(ids)
        self._offered[fresh] = True
        self._add(fresh)

    def unseen(self, ids: Ids) -> Ids:
        """Those of some examples, each once, that were never offered."""
        if len(ids) and (most := int(ids.max())) >= len(self._offered):
            self._offered = np.pad(self._offered, (0, (1 << most.bit_length()) - len(self._offered)))
        fresh = ids[~self._offered[ids]]
        first = np.unique(fresh, return_index=True)[1]
        return fresh if len(first) == len(fresh) else fresh[np.sort(first)]

    @abstractmethod
    def _add(self, ids: Ids) -> None:
        """Keep some of these examples, which were never offered before."""

    def sample(self, count: int) -> Ids:
        """Draw `count` different examples, or all of them where there are fewer."""
        return self.ids[self.draw(count)]

    def draw(self, count: int) -> Ids:
        """The places in `ids` of `count` different examples, or of all of them where there are fewer."""
        if len(self.ids) <= count:
            return np.arange(len(self.ids))
        places: Ids = self._random.choice(len(self.ids), count, replace=False, shuffle=False)
        return places

    def draw_group(self, but: int | None = None) -> int | None:
        """One of the groups held, each as likely as another, leaving one out; None where there is no other."""
        held = np.unique(self.groups)
        held = held[held != but]
        return int(held[self._random.integers(len(held))]) if len(held) else None

    def sample_group(self, group: int, count: int) -> Ids:
        """Draw `count` different examples of one group, or all of them where there are fewer."""
        held: Ids = self.ids[self.groups == group]
        if len(held) > count:
            held = held[self._random.choice(len(held), count, replace=False, shuffle=False)]
        return held

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs."""
        return {
            "ids": self.ids.copy(),
            "groups": self.groups.copy(),
            "offered": np.packbits(self._offered),
            "random": self._random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.ids, self.groups = state["ids"].copy(), state["groups"].copy()
        self._offered = np.unpackbits(state["offered"]).astype(np.bool_)
        self._random.bit_generator.state = state["random"]

    def _append(self, ids: Ids) -> None:
        self.ids = np.concatenate([self.ids, ids])
        if self._group:
            self.groups = np.concatenate([self.groups, self._group(ids)])

    def _replace(self, places: Ids, ids: Ids) -> None:
        """Put examples in the place of others; where a place is named twice, the later example stays."""
        self.ids[places] = ids
        if self._group:
            self.groups[places] = self._group(ids)


def refuse_small(name: str, capacity: int, size: int | None, stream: Stream, *, sized: bool = True) -> None:
    """Refuse, before training, a memory that cannot fill one batch of `size`, or of the stream's own size.

    `sized` says whether the algorithm has a setting for that size.
    """
    wanted = size or max(stage.training.batch_size for stage in stream.stages)
    if capacity < wanted:
        raise UserError(
            f"{name}.capacity is {capacity}, less than the {wanted} kept examples of one batch: "
            f"raise it, or set {f'{name}.size' if sized else 'train.batch_size'} to {capacity} or less"
        )


class Reservoir(Memory):
    """A uniform sample of all examples seen: the n-th enters with probability capacity / n (Vitter 1985).

    >>> memory = Reservoir(capacity=2, seed=0)
    >>> memory.add(np.array([7, 8, 9]))
    >>> len(memory), memory.seen, sorted(memory.sample(5)) == sorted(memory.ids)
    (2, 3, True)
    """

    def __init__(self, capacity: int, seed: int, group: Group | None = None) -> None:
        super().__init__(seed, group)
        self.capacity = capacity
        self.seen = 0

    def _add(self, ids: Ids) -> None:
        """Vectorised, and the same as one after another."""
        free = max(self.capacity - self.seen, 0)
        first, rest = ids[:free], ids[free:]
        if len(first):
            self._append(first)
            self.seen += len(first)
        if len(rest):
            counts = np.arange(self.seen + 1, self.seen + len(rest) + 1)
            places = (self._random.random(len(rest)) * counts).astype(np.int64)  # uniform below each count
            self.seen += len(rest)
            enters = places < self.capacity
            self._replace(places[enters], rest[enters])

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, and how many were seen."""
        return super().state_dict() | {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        self.seen = state["seen"]


class Latest(Memory):
    """The last `capacity` examples that came for the first time, until they are taken.

    >>> memory = Latest(capacity=2, seed=0)
    >>> memory.add(np.array([7, 8, 9, 7]))
    >>> memory.take().tolist(), len(memory)
    ([8, 9], 0)
    """

    def __init__(self, capacity: int, seed: int) -> None:
        super().__init__(seed)
        self.capacity = capacity

    def take(self) -> Ids:
        """What is held, which is then held no more."""
        taken, self.ids = self.ids, self.ids[:0].copy()
        return taken

    def _add(self, ids: Ids) -> None:
        self.ids = np.concatenate([self.ids, ids])[-self.capacity :]


class PerTask(Memory):
    """A random part of each finished stage: `count` examples, or `share` of them. It grows with the stages.

    `add` is given all examples of a stage that is done; `groups` are the stages' numbers from 0.

    >>> memory = PerTask(seed=0, share=0.01)
    >>> memory.add(np.arange(500))
    >>> memory.add(np.arange(500, 800))
    >>> memory.groups.tolist()
    [0, 0, 0, 0, 0, 1, 1, 1]
    """

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
        """Go on from a saved state."""
        super().load_state_dict(state)
        self.stages = state["stages"]


class ExperienceBalanced(Memory):
    """`capacity` examples in all, an equal part of each finished stage; older parts shrink as stages come.

    `add` is given all examples of a stage that is done; `groups` are the stages' numbers from 0.

    >>> memory = ExperienceBalanced(capacity=7, seed=0)
    >>> for start in (0, 50, 100):
    ...     memory.add(np.arange(start, start + 50))
    >>> np.bincount(memory.groups).tolist()
    [2, 2, 3]
    """

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
        """Go on from a saved state."""
        super().load_state_dict(state)
        self.stages = state["stages"]


class _Counted(Memory):
    """A memory that knows how many examples of each group it has seen and holds; it decides by these counts alone.

    `names`, `seen` and `held` have one entry for each group, in the order in which groups were first seen.
    """

    def __init__(self, capacity: int, seed: int, group: Group) -> None:
        super().__init__(seed, group)
        self.capacity = capacity
        self.names, self.seen, self.held = (np.empty(0, dtype=np.int64) for _ in range(3))
        self._index: dict[int, int] = {}
        self._places: list[list[int]] = []
        """The places that each group holds, in order: finding one costs the same however large the memory."""

    def _add(self, ids: Ids) -> None:
        """One after another; a free place is always used."""
        assert self._group is not None
        groups = self._group(ids)
        entries, first = self._entries(groups), len(self.ids)
        free = self.capacity - first
        self.ids = np.concatenate([self.ids, ids[:free]])
        self.groups = np.concatenate([self.groups, groups[:free]])
        for place, entry in enumerate(entries[:free], first):
            self.seen[entry] += 1
            self.held[entry] += 1
            self._places[entry].append(place)
        self._weigh()
        for index in range(free, len(ids)):
            entry = entries[index]
            self.seen[entry] += 1
            taken = self._place(entry)
            if taken is None:
                continue
            before = self._index[int(self.groups[taken])]
            del self._places[before][bisect_left(self._places[before], taken)]
            insort(self._places[entry], taken)
            self.held[before] -= 1
            self.held[entry] += 1
            self.ids[taken], self.groups[taken] = ids[index], groups[index]

    def _weigh(self) -> None:
        """Compute what stays the same while a batch of examples is offered."""

    @abstractmethod
    def _place(self, entry: int) -> int | None:
        """The place that a new example of a group takes in a full memory, or None where it is not kept."""

    def _any_of(self, *entries: int) -> int:
        """A place that holds an example of these groups, each as likely as another."""
        ends = self.held[list(entries)].cumsum()
        drawn = int(self._random.integers(ends[-1]))
        which = int(ends.searchsorted(drawn, side="right"))
        return self._places[entries[which]][drawn - int(ends[which])]  # counted from the group's end

    def _entries(self, groups: Ids) -> list[int]:
        """Where groups stand in the counts; a new group is entered."""
        found = [self._index.setdefault(group, len(self._index)) for group in groups.tolist()]
        if more := len(self._index) - len(self.seen):
            self._enter(more)
        return found

    def _enter(self, more: int) -> None:
        self.names = np.array([*self._index])
        self.seen = np.concatenate([self.seen, np.zeros(more, dtype=np.int64)])
        self.held = np.concatenate([self.held, np.zeros(more, dtype=np.int64)])
        self._places += [[] for _ in range(more)]

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator and the counts."""
        return super().state_dict() | {"names": self.names.copy(), "seen": self.seen.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state; what each group holds is found again."""
        super().load_state_dict(state)
        self.names, self.seen = state["names"].copy(), state["seen"].copy()
        self._index = {name: entry for entry, name in enumerate(self.names.tolist())}
        self._places = [[] for _ in self.names]
        for place, group in enumerate(self.groups.tolist()):
            self._places[self._index[group]].append(place)
        self.held = np.array([len(places) for places in self._places], dtype=np.int64)


class ClassBalanced(_Counted):
    """Groups as equal as they can be, though the stream is not.

    A new example of a smaller group replaces one of the largest. Once a group has been the largest, a reservoir of
    its own decides (CBRS, Chrysakis and Moens 2020). With `greedy`, a group that has its equal part takes no more
    (GDumb, Prabhu et al. 2020).

    >>> memory = ClassBalanced(capacity=4, seed=0, group=lambda ids: ids // 100)
    >>> memory.add(np.array([*range(50), 100, 101, 102]))
    >>> sorted(memory.groups.tolist())
    [0, 0, 1, 1]
    """

    def __init__(self, capacity: int, seed: int, group: Group, greedy: bool = False) -> None:
        super().__init__(capacity, seed, group)
        self.greedy = greedy
        self.full = np.empty(0, dtype=np.bool_)
        """Whether each group has been the largest."""

    def _enter(self, more: int) -> None:
        super()._enter(more)
        self.full = np.concatenate([self.full, np.zeros(more, dtype=np.bool_)])

    def _place(self, entry: int) -> int | None:
        largest = self.held == self.held.max()
        self.full |= largest
        if self.greedy:
            if self.held[entry] * (self.seen > 0).sum() >= self.capacity:
                return None
        elif self.full[entry]:
            stays = self._random.random() * self.seen[entry] < self.held[entry]
            return self._any_of(entry) if stays else None
        return self._any_of(*np.flatnonzero(largest).tolist())

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, the counts, and which groups were ever the largest."""
        return super().state_dict() | {"full": self.full.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        self.full = state["full"].copy()


class TargetBalanced(_Counted):
    """VisCOLL's Balanced-sqrt and Balanced-forget: groups as near to a target distribution as they can be.

    The target is proportional to the square root of a group's frequency in the stream, or to its frequency times its
    forgetting. A new example takes the place that lowers KL(memory || target) most, and is not kept where none lowers
    it. The divergence depends on the counts of groups alone, so one example costs a few operations on a vector of
    groups, however large the memory. Forgetting is the rise of a group's loss above its lowest: see `observe`.

    >>> memory = TargetBalanced(capacity=30, seed=0, group=lambda ids: ids // 1000, target="sqrt")
    >>> memory.add(np.array([*range(400), *range(1000, 1100)]))
    >>> np.bincount(memory.groups).tolist()  # as 20 to 10
    [20, 10]
    """

    def __init__(self, capacity: int, seed: int, group: Group, target: Literal["sqrt", "forget"]) -> None:
        super().__init__(capacity, seed, group)
        self.target = target
        self.loss, self.lowest = np.empty(0), np.empty(0)
        """The smoothed mean loss of each group now, and its lowest so far; NaN where none was observed."""
        counts = np.arange(capacity + 1)
        self._rise: Floats = np.append(-np.inf, np.diff(counts * np.log(np.maximum(counts, 1))))
        """m log m - (m - 1) log (m - 1) for each count m: a group that holds nothing can give nothing."""

    def observe(self, ids: Ids, losses: Floats) -> None:
        """Take the losses of examples in training, new or replayed, to follow what their groups forget."""
        assert self._group is not None
        entries = self._entries(self._group(ids))
        size = len(self.loss)
        counts = np.bincount(entries, minlength=size)
        met = counts > 0
        mean = np.bincount(entries, losses, minlength=size)[met] / counts[met]
        before = np.where(np.isnan(self.loss[met]), mean, self.loss[met])
        self.loss[met] = SMOOTHING * before + (1 - SMOOTHING) * mean
        self.lowest[met] = np.fmin(self.lowest[met], self.loss[met])

    def distribution(self) -> Floats:
        """The target, one share for each group."""
        weights: Floats = np.exp(self._log_weights())
        weights /= weights.sum()
        return weights

    def _log_weights(self, entries: int | slice = slice(None)) -> Any:
        """The logarithm of the target, up to a constant; all but 0 for a group that is yet to be seen."""
        frequency = np.log(np.maximum(self.seen[entries], 1e-300))
        if self.target == "sqrt":
            return frequency / 2
        return frequency + np.log(FLOOR + np.fmax(self.loss[entries] - self.lowest[entries], 0))  # NaN is 0

    def _weigh(self) -> None:
        self._weights: Floats = self._log_weights()

    def _enter(self, more: int) -> None:
        super()._enter(more)
        self.loss = np.concatenate([self.loss, np.full(more, np.nan)])
        self.lowest = np.concatenate([self.lowest, np.full(more, np.nan)])

    def _place(self, entry: int) -> int | None:
        self._weights[entry] = self._log_weights(entry)  # one more was seen
        held = int(self.held[entry])
        if held == self.capacity:
            return None
        # capacity * KL is the sum over groups of m log m - m log p, and a constant.
        leaves = self._weights - self._rise[self.held]
        leaves[entry] = np.inf
        best = int(leaves.argmin())
        enters = self._rise[held + 1] - self._weights[entry]
        return self._any_of(best) if leaves[best] + enters < -1e-9 else None

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, the counts and the losses."""
        return super().state_dict() | {"loss": self.loss.copy(), "lowest": self.lowest.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        self.loss, self.lowest = state["loss"].copy(), state["lowest"].copy()
