"""Memories: which past examples an algorithm may keep. They hold ids, never tensors.

A memory draws from a generator of its own, seeded alike on every rank, so that all ranks hold the same ids without
talking to each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from holdfast.types import Ids


class Memory(ABC):
    """A bounded set of example ids."""

    ids: Ids

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def add(self, ids: Ids) -> None:
        """Offer new examples, in the order in which they were seen."""

    @abstractmethod
    def sample(self, count: int) -> Ids:
        """Draw `count` different examples, or all of them where there are fewer."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""


class Reservoir(Memory):
    """A uniform sample of all examples seen: the n-th enters with probability capacity / n (Vitter 1985).

    >>> memory = Reservoir(capacity=2, seed=0)
    >>> memory.add(np.array([7, 8, 9]))
    >>> len(memory), memory.seen, sorted(memory.sample(5)) == sorted(memory.ids)
    (2, 3, True)
    """

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.seen = 0
        self._slots = np.empty(capacity, dtype=np.int64)
        self._random = np.random.default_rng(seed)

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        """The ids held now."""
        return self._slots[: min(self.seen, self.capacity)]

    def add(self, ids: Ids) -> None:
        """Offer new examples: vectorised, and the same as one after another."""
        free = max(self.capacity - self.seen, 0)
        first, rest = ids[:free], ids[free:]
        if len(first):
            self._slots[self.seen : self.seen + len(first)] = first
            self.seen += len(first)
        if len(rest):
            counts = np.arange(self.seen + 1, self.seen + len(rest) + 1)
            places = (self._random.random(len(rest)) * counts).astype(np.int64)  # uniform below each count
            self.seen += len(rest)
            enters = places < self.capacity
            self._slots[places[enters]] = rest[enters]  # where a place is drawn twice, the later example stays

    def sample(self, count: int) -> Ids:
        """Draw without replacement."""
        held = self.ids
        if len(held) <= count:
            return held.copy()
        return held[self._random.choice(len(held), count, replace=False, shuffle=False)]

    def state_dict(self) -> dict[str, Any]:
        """The slots, the count and the generator."""
        return {"ids": self.ids.copy(), "seen": self.seen, "random": self._random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.seen = state["seen"]
        self._slots[: len(state["ids"])] = state["ids"]
        self._random.bit_generator.state = state["random"]
