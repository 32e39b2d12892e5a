"""The heads of both settings, the few-shot tests, and the concepts of combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from holdfast.tasks import Classify
from holdfast.types import Array, Example

NAME = "classes"
"""The only task of the class-incremental setting."""


def stage_name(number: int) -> str:
    """The name of a stage and of its evaluation sets; in the task-incremental setting, also of its task and head."""
    return f"task-{number + 1}"


def kinds(setting: str, classes: int, each: int) -> list[Classify]:
    """The task of each stage: one growing head for all classes, or a head for each stage.

    >>> [task.name for task in kinds("task", classes=6, each=3)], kinds("class", classes=6, each=3)[1].outputs
    (['task-1', 'task-2'], 6)
    """
    if setting == "class":
        return [Classify(NAME, head=NAME, outputs=classes, chance=1 / classes, growing=True)] * (classes // each)
    names = [stage_name(number) for number in range(classes // each)]
    return [Classify(name, head=name, outputs=each, chance=1 / each) for name in names]


def combination(example: Example) -> tuple[str, ...]:
    """The concepts that an example of an archive shows, sorted."""
    found: tuple[str, ...] = example.extra["comb" if "comb" in example.extra else "label"]
    return found


def concept_bits(concepts: Sequence[str]) -> Callable[[Sequence[Example]], Array]:
    """A function that marks which of some concepts each example shows, one bit each; other concepts are ignored.

    >>> concept_bits(["door", "fence", "hat"])([Example("a", extra={"comb": ("door", "hat")})])
    array([5])
    """
    bit = {concept: 1 << place for place, concept in enumerate(concepts)}

    def bits(examples: Sequence[Example]) -> Array:
        return np.array([sum(bit.get(word, 0) for word in combination(example)) for example in examples], np.int64)

    return bits
