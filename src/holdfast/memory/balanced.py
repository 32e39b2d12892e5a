"""Memories that balance groups of examples even if the stream does not."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, insort
from collections import Counter
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.memory.base import Distinct, Group
from holdfast.types import Ids

Floats: TypeAlias = NDArray[np.float64]

FLOOR = 0.01
"""The minimum forgetting, in nats, that TargetBalanced assigns to a word, so that words not forgotten keep a place."""
SMOOTHING = 0.9
"""The weight of the past in a word's running mean loss, if TargetBalanced follows forgetting."""


class _Counted(Distinct):
    """A memory that counts how many examples of each group it has seen and holds, and decides by these counts alone.

    `names`, `seen` and `held` have one entry for each group, in the order in which the groups were first seen.
    """

    def __init__(self, capacity: int, seed: int, group: Group) -> None:
        super().__init__(seed, group)
        self.capacity = capacity
        self.names, self.seen, self.held = (np.empty(0, dtype=np.int64) for _ in range(3))
        self._index: dict[int, int] = {}
        self._places: list[list[int]] = []
        """The places that each group holds, in order: lookup time does not depend on the size of the memory."""

    def _add(self, ids: Ids) -> None:
        """Add examples one after another; a free place is always used."""
        groups = self.group_of(ids)
        entries, first = self._entries(groups), len(self.ids)
        free = self.capacity - first
        self.ids = np.concatenate([self.ids, ids[:free]])
        self.groups = np.concatenate([self.groups, groups[:free]])
        for place, entry in enumerate(entries[:free], first):
            self._see(entry)
            self.held[entry] += 1
            self._places[entry].append(place)
        self._weigh(entries[free:])
        for index in range(free, len(ids)):
            entry = entries[index]
            self._see(entry)
            taken = self._place(entry)
            if taken is not None:
                self._take(taken, self._index[int(self.groups[taken])], entry)
                self.ids[taken], self.groups[taken] = ids[index], groups[index]

    def _take(self, place: int, before: int, entry: int) -> None:
        """Update the counts when a place passes from one group to another."""
        del self._places[before][bisect_left(self._places[before], place)]
        insort(self._places[entry], place)
        self.held[before] -= 1
        self.held[entry] += 1

    def _see(self, entry: int) -> None:
        """Count one more example of a group as seen."""
        self.seen[entry] += 1

    def _weigh(self, coming: list[int]) -> None:
        """Precompute whatever does not change while examples of the given groups are offered to a full memory."""

    @abstractmethod
    def _place(self, entry: int) -> int | None:
        """The place that a new example of a group takes in a full memory, or None if it is not kept."""

    def _largest(self) -> list[int]:
        """The groups that hold the most examples."""
        return np.flatnonzero(self.held == self.held.max()).tolist()

    def _any_of(self, *entries: int) -> int:
        """A random place that holds an example of these groups, all equally likely."""
        ends = self.held[list(entries)].cumsum()
        drawn = int(self._random.integers(ends[-1]))
        which = int(ends.searchsorted(drawn, side="right"))
        return self._places[entries[which]][drawn - int(ends[which])]  # counted from the group's end

    def _entries(self, groups: Ids) -> list[int]:
        """The groups' positions in the counts; new groups are added."""
        numbers = groups.tolist()
        if new := [group for group in dict.fromkeys(numbers) if group not in self._index]:
            self._index |= {group: entry for entry, group in enumerate(new, len(self._index))}
            self._enter(new)
        return [self._index[group] for group in numbers]

    def _enter(self, new: list[int]) -> None:
        self.names = np.concatenate([self.names, np.array(new, dtype=np.int64)])
        self.seen = np.concatenate([self.seen, np.zeros(len(new), dtype=np.int64)])
        self.held = np.concatenate([self.held, np.zeros(len(new), dtype=np.int64)])
        self._places += [[] for _ in new]

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator and the counts."""
        return super().state_dict() | {"names": self.names.copy(), "seen": self.seen.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state; what each group holds is recomputed."""
        super().load_state_dict(state)
        self.names, self.seen = state["names"].copy(), state["seen"].copy()
        self._index = {name: entry for entry, name in enumerate(self.names.tolist())}
        self._places = [[] for _ in self.names]
        for place, group in enumerate(self.groups.tolist()):
            self._places[self._index[group]].append(place)
        self.held = np.array([len(places) for places in self._places], dtype=np.int64)


class ClassBalanced(_Counted):
    """Groups as equal as possible, even if the stream is not: CBRS (Chrysakis and Moens 2020, Algorithm 1).

    Once the memory is full, a group counts as full from the moment it is (or ties for) the largest. A new example of a
    group that is not full replaces a random example of the largest groups; for a full group, its own reservoir decides.

    >>> memory = ClassBalanced(capacity=4, seed=0, group=lambda ids: ids // 100)
    >>> memory.add(np.array([*range(50), 100, 101, 102]))
    >>> sorted(memory.groups.tolist())
    [0, 0, 1, 1]
    """

    version: ClassVar[int] = 1

    def __init__(self, capacity: int, seed: int, group: Group) -> None:
        super().__init__(capacity, seed, group)
        self.full = np.empty(0, dtype=np.bool_)
        """Whether each group has ever been the largest."""

    def _enter(self, new: list[int]) -> None:
        super()._enter(new)
        self.full = np.concatenate([self.full, np.zeros(len(new), dtype=np.bool_)])

    def _place(self, entry: int) -> int | None:
        largest = self._largest()
        self.full[largest] = True
        if self.full[entry]:
            stays = self._random.random() * self.seen[entry] < self.held[entry]
            return self._any_of(entry) if stays else None
        return self._any_of(*largest)

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, the counts, and which groups have ever been the largest."""
        return super().state_dict() | {"full": self.full.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().load_state_dict(state)
        self.full = state["full"].copy()


class GreedyBalanced(_Counted):
    """An equal part for each group seen so far: GDumb's greedy sampler (Prabhu et al. 2020, Algorithm 1).

    An example of a new group, or of one that holds fewer than capacity / groups, is kept: in a free place, or in the
    place of any example of the largest groups. Other examples are not kept, even if places are free: those are for
    groups to come.

    >>> memory = GreedyBalanced(capacity=4, seed=0, group=lambda ids: ids // 100)
    >>> memory.add(np.array([0, 100, *range(101, 150)]))
    >>> sorted(memory.groups.tolist())
    [0, 1, 1]
    """

    version: ClassVar[int] = 1

    def _add(self, ids: Ids) -> None:
        groups = self.group_of(ids)
        kept, of, known = self.ids.tolist(), self.groups.tolist(), int((self.seen > 0).sum())
        for example, group, entry in zip(ids.tolist(), groups.tolist(), self._entries(groups), strict=True):
            new = self.seen[entry] == 0
            self._see(entry)
            if not new and self.held[entry] * known >= self.capacity:
                continue
            known += int(new)
            if len(kept) < self.capacity:
                self.held[entry] += 1
                self._places[entry].append(len(kept))
                kept.append(example)
                of.append(group)
                continue
            place = self._place(entry)
            self._take(place, self._index[of[place]], entry)
            kept[place], of[place] = example, group
        self.ids, self.groups = np.array(kept, dtype=np.int64), np.array(of, dtype=np.int64)

    def _place(self, entry: int) -> int:
        return self._any_of(*self._largest())


class TargetBalanced(_Counted):
    """VisCOLL's Balanced-sqrt and Balanced-forget: words as close to a target distribution as possible.

    The target is proportional to the square root of a word's frequency in the stream, or to its frequency times its
    forgetting. A new example takes the place that lowers KL(memory || target) most; if no place lowers it, the example
    is not kept. Forgetting is the rise of a word's loss above its minimum: see `observe`.

    A group is a phrase such as "a red bus"; row g of `words` lists the words of group g, padded with -1. Without
    `words`, a group is a single word of its own. All examples of one group are worth the same, so a new example costs a
    few operations on the words of the groups held, however many examples there are.

    >>> memory = TargetBalanced(capacity=30, seed=0, group=lambda ids: ids // 1000, target="sqrt")
    >>> memory.add(np.array([*range(400), *range(1000, 1100)]))
    >>> np.bincount(memory.groups).tolist()  # as 20 to 10
    [20, 10]
    """

    version: ClassVar[int] = 1

    def __init__(
        self,
        capacity: int,
        seed: int,
        group: Group,
        target: Literal["sqrt", "forget"],
        words: NDArray[np.int64] | None = None,
    ) -> None:
        super().__init__(capacity, seed, group)
        self.target, self._words_of = target, words
        self.words, self.frequency = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        """The words encountered, in order of first occurrence, and how often each was seen in the stream."""
        self.loss, self.lowest = np.empty(0), np.empty(0)
        """The current smoothed mean loss of each word, and its minimum so far; NaN for words not yet observed."""
        self._word_index: dict[int, int] = {}
        self._bags: list[dict[int, int]] = []
        """Which words an example of each group has, and how often."""
        most = 1 if words is None else words.shape[1]
        self._slots = np.full((2, 64, most), -1, dtype=np.int64)
        """For each group, its words, and how often each of them occurred before in the group; -1: no word."""
        counts = np.arange((capacity + 1) * most + 1, dtype=np.float64)
        self._entropy: Floats = counts * np.log(np.maximum(counts, 1))
        self._rise: Floats = np.append(0.0, np.diff(self._entropy))
        """m log m for each count m, and its increase over m - 1."""

    def observe(self, words: Ids, losses: Floats) -> None:
        """Record the losses of words in training, new or replayed, to follow how they are forgotten."""
        numbers = words.tolist()
        self._meet(numbers)
        entries, size = [self._word_index[word] for word in numbers], len(self.words)
        counts = np.bincount(entries, minlength=size)
        met = counts > 0
        mean = np.bincount(entries, losses, minlength=size)[met] / counts[met]
        before = np.where(np.isnan(self.loss[met]), mean, self.loss[met])
        self.loss[met] = SMOOTHING * before + (1 - SMOOTHING) * mean
        self.lowest[met] = np.fmin(self.lowest[met], self.loss[met])

    def distribution(self) -> Floats:
        """The target distribution, one share for each word."""
        weights: Floats = np.exp(self._log_weights())
        weights /= weights.sum()
        return weights

    def _log_weights(self, entries: int | slice = slice(None)) -> Any:
        """The logarithm of the target, up to a constant; finite except for words that have not been seen yet."""
        frequency = np.log(np.maximum(self.frequency[entries], 1e-300))
        if self.target == "sqrt":
            return frequency / 2
        return frequency + np.log(FLOOR + np.fmax(self.loss[entries] - self.lowest[entries], 0))  # NaN is 0

    def _meet(self, words: list[int]) -> None:
        """Add words that are new."""
        if not (new := [word for word in dict.fromkeys(words) if word not in self._word_index]):
            return
        self._word_index |= {word: entry for entry, word in enumerate(new, len(self._word_index))}
        self.words = np.concatenate([self.words, np.array(new, dtype=np.int64)])
        self.frequency = np.concatenate([self.frequency, np.zeros(len(new), dtype=np.int64)])
        self.loss = np.concatenate([self.loss, np.full(len(new), np.nan)])
        self.lowest = np.concatenate([self.lowest, np.full(len(new), np.nan)])

    def _enter(self, new: list[int]) -> None:
        super()._enter(new)
        self._enter_words(new)

    def _enter_words(self, groups: list[int]) -> None:
        first = len(self._bags)
        while self._slots.shape[1] < first + len(groups):  # doubled, so that growth stays rare
            self._slots = np.concatenate([self._slots, np.full_like(self._slots, -1)], axis=1)
        for entry, group in enumerate(groups, first):
            said = [group] if self._words_of is None else [w for w in self._words_of[group].tolist() if w >= 0]
            self._meet(said)
            bag: Counter[int] = Counter()
            for place, word in enumerate(self._word_index[word] for word in said):
                self._slots[:, entry, place] = word, bag[word]
                bag[word] += 1
            self._bags.append(dict(bag))

    def _see(self, entry: int) -> None:
        super()._see(entry)
        for word, times in self._bags[entry].items():
            self.frequency[word] += times

    def _weigh(self, coming: list[int]) -> None:
        """Lay out what removing each held or offered group would change: sums over `_slots` of `_gain`."""
        if not coming:
            return
        # With m the counts of words in the memory, M their sum and p the target:
        # KL = F / M - log M and a constant, where F is the sum over words of m log m - m log p.
        self._weights: Floats = self._log_weights()
        self._choice = np.unique(np.concatenate([np.flatnonzero(self.held), coming]))
        words, before = self._slots[:, self._choice]
        there, size = words >= 0, len(self.words)
        times = np.broadcast_to(self.held[self._choice, None], words.shape)[there]
        self._present = np.bincount(words[there], times, minlength=size).astype(np.int64)
        self._level = 1 + int(before.max())
        self._gain = np.zeros((self._level, size + 1))  # the last column is for places without a word
        for level in range(self._level):
            self._gain[level, :-1] = self._rise[np.maximum(self._present - level, 0)] - self._weights
        self._places_of_gain = np.where(there, words + before * (size + 1), size)
        self._lengths = there.sum(1)
        self._f = float(self._entropy[self._present].sum() - self._present @ self._weights)
        self._total = int(self._present.sum())

    def _change(self, entry: int, sign: int) -> None:
        """Add the words of a group to the counts, or subtract them."""
        for word, times in self._bags[entry].items():
            old = int(self._present[word])
            self._present[word] = new = old + sign * times
            self._f += float(self._entropy[new] - self._entropy[old]) - sign * times * float(self._weights[word])
            self._total += sign * times
            for level in range(self._level):
                self._gain[level, word] = self._rise[max(new - level, 0)] - self._weights[word]

    def _place(self, entry: int) -> int | None:
        for word in self._bags[entry]:  # they were seen once more
            weight = float(self._log_weights(word))
            self._f -= int(self._present[word]) * (weight - float(self._weights[word]))
            self._weights[word] = weight
        now = self._f / self._total - np.log(self._total)
        self._change(entry, 1)
        left = self._total - self._lengths
        after = (self._f - self._gain.take(self._places_of_gain).sum(1)) / left - np.log(left)
        after[self.held[self._choice] == 0] = np.inf
        best = int(after.argmin())
        leaves = int(self._choice[best])
        if leaves == entry or after[best] >= now - 1e-9:
            self._change(entry, -1)
            return None
        self._change(leaves, -1)
        return self._any_of(leaves)

    def state_dict(self) -> dict[str, Any]:
        """The ids, the generator, the counts, and the statistics of the words."""
        own = {name: getattr(self, name).copy() for name in ("words", "loss", "lowest")}
        return super().state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the words of each group are looked up again."""
        super().load_state_dict(state)
        self._meet(state["words"].tolist())
        self._enter_words(self.names.tolist())
        self.loss, self.lowest = state["loss"].copy(), state["lowest"].copy()
        for entry, times in enumerate(self.seen.tolist()):
            for word, each in self._bags[entry].items():
                self.frequency[word] += times * each
