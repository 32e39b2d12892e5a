"""The questions of CLEVR by type, and the answers that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from holdfast.tasks import Classify
from holdfast.types import Array, Example, Ids

VERSION = 1
CATEGORIES: dict[str, tuple[str, ...]] = {
    "query_color": ("blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow"),
    "query_shape": ("cube", "cylinder", "sphere"),
    "query_size": ("large", "small"),
    "query_material": ("metal", "rubber"),
    "yes_no": ("no", "yes"),
    "count": tuple(map(str, range(11))),
}
"""The answers of CLEVR by category, named as in the paper's confusion tables."""
ANSWERS = tuple(answer for answers in CATEGORIES.values() for answer in answers)

KINDS: dict[str, tuple[str, ...]] = {
    "wh": ("query_color", "query_shape", "query_size", "query_material"),
    "yn": ("equal_color", "equal_shape", "equal_size", "equal_material"),
    "count": ("count",),
    "exist": ("exist",),
    "compare_integer": ("equal_integer", "less_than", "greater_than"),
}
"""The tasks, each by the last functions of its questions' programs."""
FUNCTIONS = tuple(function for functions in KINDS.values() for function in functions)
UNKNOWN = -1

TASK = Classify("clevr", head="answers", outputs=len(ANSWERS), chance=1 / len(ANSWERS))
"""The one task that the model knows: which of all answers is right, whatever the question."""


def answer_numbers(examples: Sequence[Example]) -> Array:
    """The index of each answer among all answers.

    >>> answer_numbers([Example("a", "blue"), Example("b", "yes")])
    array([ 0, 16])
    """
    return np.array([ANSWERS.index(str(example.target)) for example in examples], np.int64)


def function_numbers(examples: Sequence[Example]) -> Array:
    """The type of each question: the last function of its program, as an index into FUNCTIONS; -1 if unknown."""
    return np.array([_place(example.extra["program"][-1]["function"]) for example in examples], np.int64)


def image_numbers(examples: Sequence[Example]) -> Array:
    """The number of the picture that each question is about."""
    return np.array([example.extra["image_index"] for example in examples], np.int64)


def of_task(functions: Array, task: str) -> Ids:
    """The rows whose question belongs to a task.

    >>> of_task(np.array([0, 4, 3]), "wh")
    array([0, 2])
    """
    return np.flatnonzero(np.isin(functions, [FUNCTIONS.index(name) for name in KINDS[task]]))


def random_scores(train: Mapping[str, Array], test: Mapping[str, Array]) -> dict[str, float]:
    """The score of guessing on each task: an answer drawn with its frequency in the training data of the tasks learned.

    With two tasks of equal size, half of the guesses are for each, so yes/no scores 0.25, and Wh-questions about 0.046,
    half of the sum of their squared shares (the paper prints .25 and .04); after one task alone, twice as much.

    >>> random_scores({"wh": np.array([0, 1]), "yn": np.array([15, 16])}, {"yn": np.array([15, 15, 16, 16])})
    {'yn': 0.25}
    """
    guesses = np.bincount(np.concatenate(list(train.values())), minlength=len(ANSWERS)).astype(np.float64)
    guesses /= guesses.sum()
    return {name: float(guesses[answers].mean()) for name, answers in test.items()}


def _place(function: str) -> int:
    return FUNCTIONS.index(function) if function in FUNCTIONS else UNKNOWN
