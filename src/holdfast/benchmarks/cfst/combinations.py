"""Which combinations of concepts CFST trains and tests on.

The paper lists all combinations of CGQA, and the training combinations of COBJ. It names only a few examples of COBJ's
tests and of CPIN. The missing ones are made by fixed rules from the available data: those of COBJ are the most frequent
in the pictures, and those of CPIN are random. A built dataset has its own list beside its pictures.

The order is that of the paper's public code: NumPy's permutation, with the seed 1234, of the sorted list. Tasks of a
different size are the same order, cut at other points.
"""

from __future__ import annotations

import importlib.resources
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

from holdfast.errors import UserError, nearest

Combination: TypeAlias = tuple[str, ...]
NAMES = ("cgqa", "cobj", "cpin")
MODES = ("sys", "pro", "sub", "non", "noc")
FILE = "combinations.json"
ORDER_SEED = 1234
UNSEEN_GROUPS = ("Bicycle", "Aeroplane", "Boat", "Bottle")
"""The things of PartImageNet whose parts are reserved for CPIN's `noc`: the paper's examples, and the bottle."""
COBJ_TESTS = {"sys": 30, "pro": 30, "noc": 100}
"""The number of combinations in each test of COBJ. The paper does not give one for `pro`."""
COBJ_UNSEEN = 19
CPIN_CONCEPTS, CPIN_SIZE, CPIN_LARGEST, CPIN_COUNT, CPIN_TASK = 37, 5, 9, 100, 10
"""The concepts of the authors' code; the rest is as for CGQA, except for the sizes: five concepts per combination, and
six to nine for `pro`."""


@dataclass(frozen=True)
class Combinations:
    """The combinations of one benchmark: for training, in tasks and in order, and for each few-shot test.

    >>> cgqa = listed("cgqa")
    >>> len(cgqa.trained), cgqa.tasks[0][:2], cgqa.attributes["grass"]
    (100, (('fence', 'flower'), ('door', 'grass')), 'brown')
    >>> {mode: len(cgqa.of(mode)) for mode in cgqa.modes}
    {'sys': 100, 'pro': 100, 'sub': 100, 'non': 100, 'noc': 100}
    """

    name: str
    concepts: tuple[str, ...]
    tasks: tuple[tuple[Combination, ...], ...]
    sys: tuple[Combination, ...]
    pro: tuple[Combination, ...]
    noc: tuple[Combination, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    """The attribute of each concept that is reserved for `sub`; empty if there is no such test."""
    unseen: tuple[str, ...] = ()
    """The concepts of `noc`."""

    @property
    def trained(self) -> tuple[Combination, ...]:
        """The training combinations, in order."""
        return tuple(each for task in self.tasks for each in task)

    @property
    def modes(self) -> tuple[str, ...]:
        """The few-shot tests that this benchmark has."""
        return tuple(mode for mode in MODES if mode != "sub" or self.attributes)

    def of(self, mode: str) -> tuple[Combination, ...]:
        """The combinations of a few-shot test: `non` uses the training combinations, `sub` those of `sys`."""
        if mode not in self.modes:
            raise UserError(f"{self.name} has no few-shot test {mode!r}: {nearest(mode, self.modes)}")
        tests = {"sys": self.sys, "pro": self.pro, "sub": self.sys, "non": self.trained, "noc": self.noc}
        return tests[mode]

    def write(self, folder: Path) -> None:
        """Write the list beside a dataset's pictures."""
        (folder / FILE).write_text(json.dumps(_plain(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@cache
def listed(name: str) -> Combinations:
    """The paper's list: everything for cgqa; the training combinations for cobj; otherwise the examples in its figures.

    >>> listed("cobj").sys
    (('Bracelet', 'Hat', 'Person'),)
    """
    if name not in NAMES:
        raise UserError(f"{name!r} has no combinations: {nearest(name, NAMES)}")
    file = importlib.resources.files("holdfast.benchmarks.cfst") / "lists" / f"{name}.json"
    return _of_plain(name, json.loads(file.read_text(encoding="utf-8")))


def of_folder(folder: Path, name: str) -> Combinations | None:
    """The list of a dataset built with this library, or None for the published archives, which have none."""
    path = folder / FILE
    return _of_plain(name, json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def most_frequent(seen: Counter[Combination], unseen: Counter[Combination], pool: Iterable[str]) -> Combinations:
    """COBJ's combinations: the paper's for training, and the most frequent others for the tests.

    `seen` and `unseen` count the pictures of each combination, of the paper's concepts and of the others (`pool`). A
    combination of `sys` has two or three concepts, as in training, and one of `pro` has more. The paper's own examples
    come first if there are any pictures of them.

    >>> found = most_frequent(Counter({("Bench", "Hat"): 3, ("Bench", "Person"): 9}), Counter(), ())
    >>> found.sys, found.pro
    ((('Bench', 'Hat'),), ())
    """
    paper = listed("cobj")
    novel = {each: count for each, count in seen.items() if each not in paper.trained}
    tests = {
        "sys": {each: count for each, count in novel.items() if len(each) in (2, 3)},
        "pro": {each: count for each, count in novel.items() if len(each) > 3},
        "noc": {each: count for each, count in unseen.items() if len(each) > 1},
    }

    def chosen(mode: str) -> tuple[Combination, ...]:
        counts = tests[mode]
        ranked = sorted(counts, key=lambda each: (each not in paper.of(mode), -counts[each], each))
        return tuple(ranked[: COBJ_TESTS[mode]])

    return replace(paper, sys=chosen("sys"), pro=chosen("pro"), noc=chosen("noc"), unseen=tuple(sorted(pool)))


def drawn(counts: Mapping[str, int]) -> Combinations:
    """CPIN's combinations: drawn so that each concept occurs about equally often, starting with the paper's examples.

    `counts` has the number of pictures of each concept. The concepts are those 37 of the authors' code that are
    available, supplemented by the most frequent others; the parts of things that occur in no training picture are for
    `noc`.

    >>> cpin = drawn({f"{thing} {part}": 5 for thing in ("Bird", "Fish", "Boat") for part in "ABCD"})
    >>> len(cpin.concepts), len(cpin.trained), {len(each) for each in cpin.trained}, cpin.unseen
    (8, 28, {5}, ('Boat A', 'Boat B', 'Boat C', 'Boat D'))
    """
    paper = listed("cpin")
    there = sorted(counts, key=lambda concept: (concept not in paper.concepts, -counts[concept], concept))
    unseen = tuple(sorted(each for each in there if each.startswith(UNSEEN_GROUPS)))
    pool = sorted([each for each in there if each not in unseen][:CPIN_CONCEPTS])
    random = Random(ORDER_SEED)
    # With few concepts there are few combinations: then half of them are left for `sys`.
    count = min(CPIN_COUNT, math.comb(len(pool), CPIN_SIZE) // 2)
    trained = _balanced(pool, [CPIN_SIZE], count, random, first=paper.trained)
    sys = _balanced(pool, [CPIN_SIZE], CPIN_COUNT, random, first=paper.sys, without=trained)
    sizes = range(CPIN_SIZE + 1, min(CPIN_LARGEST, len(pool)) + 1)
    pro = _balanced(pool, sizes, CPIN_COUNT, random, first=paper.pro)
    noc = _balanced(unseen, [CPIN_SIZE], CPIN_COUNT, random, first=paper.noc)
    return Combinations("cpin", tuple(pool), _cut(trained, CPIN_TASK), sys, pro, noc, unseen=unseen)


def _balanced(
    pool: Sequence[str],
    sizes: Sequence[int],
    count: int,
    random: Random,
    first: Sequence[Combination],
    without: Sequence[Combination] = (),
) -> tuple[Combination, ...]:
    """Up to `count` distinct combinations, cycling through the sizes, and preferring the least used concepts."""
    found = [each for each in first if set(each) <= set(pool)][:count]
    taken = {*found, *without}
    used = Counter(concept for each in found for concept in each)
    left = {size: math.comb(len(pool), size) - sum(len(each) == size for each in taken) for size in sizes}
    while len(found) < count and any(left.values()):
        size = min((each for each in sizes if left[each]), key=lambda each: sum(len(other) == each for other in found))
        slack = 2.0  # how much the use of two concepts may differ; increased once the even combinations are exhausted
        while (each := _least_used(pool, size, used, random, slack)) in taken:
            slack *= 1.1
        found.append(each)
        taken.add(each)
        used.update(each)
        left[size] -= 1
    random.shuffle(found)
    return tuple(found)


def _least_used(pool: Sequence[str], size: int, used: Counter[str], random: Random, slack: float) -> Combination:
    ranks = {concept: used[concept] + slack * random.random() for concept in pool}
    return tuple(sorted(sorted(pool, key=ranks.__getitem__)[:size]))


def drawn_order(classes: int, seed: int = ORDER_SEED) -> list[int]:
    """An order of classes, drawn as in the authors' code.

    >>> drawn_order(100)[:5]
    [40, 35, 81, 61, 98]
    """
    return [int(number) for number in np.random.RandomState(seed).permutation(classes)]


def in_drawn_order(combinations: Iterable[Combination], seed: int = ORDER_SEED) -> tuple[Combination, ...]:
    """Combinations in the order that the authors' code draws with a seed.

    >>> trained = listed("cgqa").trained
    >>> in_drawn_order(trained) == trained, in_drawn_order(trained, 1) == trained
    (True, False)
    """
    known = sorted(combinations)
    return tuple(known[number] for number in drawn_order(len(known), seed))


def _cut(trained: Sequence[Combination], size: int) -> tuple[tuple[Combination, ...], ...]:
    return tuple(tuple(trained[at : at + size]) for at in range(0, len(trained), size))


def _plain(found: Combinations) -> dict[str, Any]:
    return {
        "concepts": list(found.concepts),
        "tasks": [[", ".join(each) for each in task] for task in found.tasks],
        **{mode: [", ".join(each) for each in found.of(mode)] for mode in ("sys", "pro")},
        "attributes": dict(found.attributes),
        "unseen": list(found.unseen),
        "noc": [", ".join(each) for each in found.noc],
    }


def _of_plain(name: str, plain: Mapping[str, Any]) -> Combinations:
    def those(items: Iterable[str]) -> tuple[Combination, ...]:
        return tuple(tuple(sorted(each.split(", "))) for each in items)

    return Combinations(
        name,
        tuple(sorted(plain["concepts"])),
        tuple(those(task) for task in plain["tasks"]),
        sys=those(plain["sys"]),
        pro=those(plain["pro"]),
        noc=those(plain["noc"]),
        attributes=plain.get("attributes", {}),
        unseen=tuple(sorted(plain.get("unseen", ()))),
    )
