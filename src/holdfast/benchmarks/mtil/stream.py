"""Which datasets make a stream, in which order, and which of their examples are learned and tested."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError, nearest
from holdfast.types import Ids

VERSION = 1
SPLITS: Mapping[str, Mapping[str, str]] = {
    "aircraft": {"train": "train", "test": "test"},
    "caltech101": {"train": "all", "test": "all"},
    "cifar100": {"train": "train", "test": "test"},
    "dtd": {"train": "train", "test": "test"},
    "eurosat": {"train": "all", "test": "all"},
    "flowers102": {"train": "train", "test": "test"},
    "food101": {"train": "train", "test": "test"},
    "mnist": {"train": "train", "test": "test"},
    "oxford_pets": {"train": "trainval", "test": "test"},
    "stanford_cars": {"train": "train", "test": "test"},
    "sun397": {"train": "train", "test": "test"},
}
"""The official split behind each of ours, by dataset; if both are the same split, it is cut."""
ORDERS = {
    "I": tuple(SPLITS),
    "II": (
        *("stanford_cars", "food101", "mnist", "oxford_pets", "flowers102", "sun397", "aircraft", "caltech101", "dtd"),
        *("eurosat", "cifar100"),
    ),
}
"""The paper's orders: alphabetical, and at random."""
TESTED = 0.3
"""The share of a dataset without official splits that is used for tests."""
HELD_OUT = 0.1
"""The share of the training examples that is held out for choosing settings."""


def datasets_of(order: str) -> tuple[str, ...]:
    """The datasets of an order: I, II, or names with `>` between them.

    >>> datasets_of("mnist > dtd"), datasets_of("II")[0]
    (('mnist', 'dtd'), 'stanford_cars')
    """
    if order in ORDERS:
        return ORDERS[order]
    names = tuple(name.strip() for name in order.split(">"))
    for name in names:
        if name not in SPLITS:
            raise UserError(f"order {order!r} names {name!r}: {nearest(name, [*ORDERS, *SPLITS])}")
        if names.count(name) > 1:
            raise UserError(f"order {order!r} has {name} twice: name each dataset once")
    return names


def share(name: str, *salt: object) -> float:
    """A number from 0 to 1 that depends only on the name of an example.

    >>> round(share("image_0001", "test"), 3) == round(share("image_0001", "test"), 3)
    True
    """
    digest = hashlib.blake2b(repr((name, *salt)).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest()) / 2**64


def chosen(rows: Iterable[tuple[str, int]], dataset: str, split: str, most: int | None) -> frozenset[str]:
    """The ids of a split's examples, from all ids with their classes; at most `most` of each class, always the same.

    >>> rows = [(f"{n}", n % 2) for n in range(40)]
    >>> test, train = (chosen(rows, "eurosat", split, 5) for split in ("test", "train"))
    >>> len(test), len(train), len(test & train)
    (10, 10, 0)
    """
    cut = len(set(SPLITS[dataset].values())) == 1
    of_class: dict[int, list[tuple[float, str]]] = defaultdict(list)
    for name, target in rows:
        if not cut or (share(name, "test") < TESTED) == (split == "test"):
            of_class[target].append((share(name, "most"), name))
    return frozenset(name for own in of_class.values() for _, name in sorted(own)[:most])


def learned(ids: NDArray[np.str_], targets: NDArray[Any], shots: int | None, seed: int) -> tuple[Ids, Ids]:
    """The rows that are learned, or `shots` of each class, drawn by the seed; and those that are held out."""
    held = np.array([share(str(name), "held out") < HELD_OUT for name in ids])
    rows = np.flatnonzero(~held)
    if shots is not None:
        order = np.random.default_rng([seed, 0x5407, shots]).permutation(rows)
        own = targets[order]
        rank = np.array([np.count_nonzero(own[:place] == own[place]) for place in range(len(own))], np.int64)
        rows = np.sort(order[rank < shots])
    return rows, np.flatnonzero(held)
