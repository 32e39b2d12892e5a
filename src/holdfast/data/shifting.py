"""A stream without boundaries: each task fades in and out.

The tasks are put in an order, in which each occupies as many positions as it has examples. A task proposes its examples
to the intervals of the stream in proportion to a Gaussian whose mean is the middle of its positions, and whose standard
deviation is half their number (Jin et al. 2020, section 4; their released code uses at least 3,000). The intervals are
then filled greedily, in order:

    for interval in intervals:
        take examples proposed to this or earlier intervals, those waiting longest first
        if the interval is full: leave the remaining examples to the next one
        if it has room: take examples proposed to the following intervals

Within an interval the order is random. Every example occurs exactly once.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.types import Ids

INTERVAL = 1000
"""The number of examples in one interval, as in the released code."""

Order: TypeAlias = Literal["random", "ascending", "descending"]
"""The order in which tasks arrive; without one, by their numbers."""


def task_order(sizes: Ids, order: Order | None, seed: int) -> Ids:
    """The order in which the centres of tasks arrive: random, by their number of examples, or as they are numbered.

    >>> task_order(np.array([5, 9, 1]), "descending", seed=0).tolist()
    [1, 0, 2]
    """
    if order is None:
        return np.arange(len(sizes))
    if order == "random":
        return np.random.default_rng([seed, 0]).permutation(len(sizes))
    return np.argsort(sizes if order == "ascending" else -sizes, kind="stable")


def proposals(sizes: Ids, interval: int = INTERVAL, least: float = 0.0) -> NDArray[np.int64]:
    """The number of examples that each task, in stream order, proposes to each interval: (tasks, intervals).

    The parts of a Gaussian before the start and after the end of the stream are distributed over the rest of it.

    >>> proposals(np.array([4, 4]), interval=2)
    array([[2, 1, 1, 0],
           [0, 1, 1, 2]])
    """
    total = int(sizes.sum())
    edges = np.minimum(np.arange(-(-total // interval) + 1) * interval, total)
    middles = np.cumsum(sizes) - sizes / 2
    deviations = np.maximum(sizes / 2, least)
    below = _normal((edges - middles[:, None]) / deviations[:, None])
    share = (below - below[:, :1]) / (below[:, -1:] - below[:, :1])
    return np.diff(np.rint(sizes[:, None] * share)).astype(np.int64)


def arranged(
    tasks: Ids, order: Order | None = "random", *, seed: int = 0, interval: int = INTERVAL, least: float = 0.0
) -> Ids:
    """The numbers of all examples in the order of the stream, given the task of each, numbered from 0.

    It is a pure function of its arguments.

    >>> arranged(np.array([0, 1, 0, 1, 0, 1, 0, 1]), seed=1, interval=2).tolist()
    [0, 6, 2, 5, 4, 3, 7, 1]
    """
    random = np.random.default_rng([seed, 1])
    sizes = np.bincount(tasks)
    assert sizes.all(), "tasks are numbered without a gap"
    in_order = task_order(sizes, order, seed)
    proposed = proposals(sizes[in_order], interval, least)
    # Each task's examples are adjacent, in random order within the task, and the tasks in the order of the stream.
    place = np.argsort(in_order)[tasks]
    examples = np.lexsort((random.random(len(tasks)), place))
    intervals = np.repeat(np.tile(np.arange(proposed.shape[1]), len(sizes)), proposed.ravel())
    waiting = np.lexsort((random.random(len(tasks)), intervals))
    filled = np.lexsort((random.random(len(tasks)), np.arange(len(tasks)) // interval))
    return examples[waiting[filled]]


def density(tasks: Ids, bins: int, count: int | None = None) -> NDArray[np.float64]:
    """The probability of each task over time: its share of each of `bins` equal stretches of a stream.

    `tasks` is the task of each example, in the order of the stream; `count` is the number of tasks.

    >>> density(np.array([0, 0, 0, 1, 1, 1]), bins=2)
    array([[1., 0.],
           [0., 1.]])
    """
    stretch = np.arange(len(tasks)) * bins // len(tasks)
    counts = np.zeros((count or int(tasks.max()) + 1, bins))
    np.add.at(counts, (tasks, stretch), 1)
    return counts / np.maximum(counts.sum(0), 1)  # type: ignore[no-any-return]


def learned_by(tasks: Ids, share: float) -> NDArray[np.int64]:
    """The number of examples of a stream after which `share` of each task's examples have been seen.

    >>> learned_by(np.array([0, 0, 1, 1, 0, 0]), share=0.75).tolist()
    [5, 4]
    """
    order = np.argsort(tasks, kind="stable")
    sizes = np.bincount(tasks)
    last = np.ceil(share * sizes - 1e-9).astype(np.int64) - 1
    places: Ids = order[np.cumsum(sizes) - sizes + np.maximum(last, 0)]
    return places + 1


def _normal(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of a normal distribution below z."""
    return np.vectorize(math.erfc, otypes=[np.float64])(-z / math.sqrt(2)) / 2  # type: ignore[no-any-return]
