"""Memories: which past examples an algorithm keeps. They hold ids, never tensors.

Each memory has its own random generator, seeded alike on every rank, so that all ranks hold the same ids without
communicating. A reservoir is a sample of everything that was seen: an example counts each time it is offered, and
whatever is stored beside its place is as old as that offer. In all other memories an example counts only the first
time, no matter how often a later epoch, another fit of the stage or another stage brings it back: a copy of an example
would take up a place and balance nothing. A memory that balances is given `group`, a function that maps ids to one
number each: the example's class, task, stage or phrase. The numbers need not be dense; a memory asks for them once,
when an example is offered.

| memory             | is offered       | keeps                                                                        |
|--------------------|------------------|------------------------------------------------------------------------------|
| Reservoir          | each example     | a uniform sample of all offers, repeated ones included                       |
| Latest             | each example     | the most recent examples                                                     |
| PerTask            | a finished stage | a count, or a share, of each stage                                           |
| ExperienceBalanced | a finished stage | `capacity` in all, equal parts of each stage                                 |
| ClassBalanced      | each example     | groups as equal as possible                                                  |
| GreedyBalanced     | each example     | an equal part of each group, with places left for groups to come             |
| TargetBalanced     | each example     | groups, or the words that they consist of, as close as possible to the       |
|                    |                  | square root of their frequency, or in proportion to their forgetting         |
"""

from holdfast.memory.balanced import FLOOR, SMOOTHING, ClassBalanced, GreedyBalanced, TargetBalanced
from holdfast.memory.base import ExperienceBalanced, Group, Latest, Memory, PerTask, Reservoir, refuse_small

__all__ = [
    "FLOOR",
    "SMOOTHING",
    "ClassBalanced",
    "ExperienceBalanced",
    "GreedyBalanced",
    "Group",
    "Latest",
    "Memory",
    "PerTask",
    "Reservoir",
    "TargetBalanced",
    "refuse_small",
]


def __dir__() -> list[str]:
    return sorted(__all__)
