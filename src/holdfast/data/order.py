"""Orders and seeds as pure functions of the position in a run: nothing to save, and nothing to replay on resuming."""

from __future__ import annotations

import numpy as np

from holdfast.types import Ids

_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """One well-mixed 63-bit seed from several numbers (splitmix64 over each in turn).

    >>> mix(0, 1) == mix(0, 1), mix(0, 1) == mix(1, 0)
    (True, False)
    """
    state = 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state >> 1


def shuffled(ids: Ids, *, seed: int, stage: int, epoch: int) -> Ids:
    """The ids in the order in which an epoch visits them.

    >>> shuffled(np.arange(5), seed=0, stage=0, epoch=0).tolist() == shuffled(
    ...     np.arange(5), seed=0, stage=0, epoch=0).tolist()
    True
    """
    return np.random.default_rng(mix(seed, stage, epoch)).permutation(ids)
