"""Memories: which past examples an algorithm may keep. They hold ids, never tensors.

A memory draws from a generator of its own, seeded alike on every rank, so that all ranks hold the same ids without
talking to each other. A reservoir is a sample of what was seen: an example counts each time that it is offered, and
what is stored beside its place is as old as that offer. In all others it counts the first time, and never again,
however often a later epoch, another fit of the stage or another stage brings it back: a copy of an example would take
a place and balance nothing. A memory that balances is given `group`, a function from ids to a number for each of them:
its class, its task, its stage, its phrase. The numbers need not be dense; a memory asks for them once, when an example
is offered.

| memory             | is offered       | keeps                                                                        |
|--------------------|------------------|------------------------------------------------------------------------------|
| Reservoir          | each example     | a uniform sample of all that was seen, each time that it was                 |
| Latest             | each example     | the last ones                                                                |
| PerTask            | a finished stage | a count, or a share, of each                                                 |
| ExperienceBalanced | a finished stage | `capacity` in all, equal parts of each                                       |
| ClassBalanced      | each example     | groups as equal as they can be                                               |
| GreedyBalanced     | each example     | an equal part of each group, and places for groups to come                   |
| TargetBalanced     | each example     | groups, or the words that they consist of, as near as can be to the square   |
|                    |                  | root of their frequency, or to how much of them is forgotten                 |
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
