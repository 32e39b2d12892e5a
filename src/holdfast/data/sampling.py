"""Selecting examples: low-shot samples, splitting a split in two, and the answer vocabulary of VQA.

An example is selected by its hashed id, never by its position: the same examples in a different order, or on a
different file system, give the same sample. If a few examples are added or removed, most of the selection stays the
same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError
from holdfast.types import Ids


def low_shot(
    names: Sequence[str],
    labels: Sequence[Any] | None = None,
    *,
    share: float | None = None,
    count: int | None = None,
    seed: int,
) -> Ids:
    """Positions of a small sample: a share or a count, of all examples or, with labels, of each class.

    A class with fewer than `count` examples contributes all of them. With the same seed, a larger count includes a
    smaller.

    >>> low_shot(["a", "b", "c", "d"], [0, 0, 1, 1], count=1, seed=0)
    array([1, 3])
    >>> len(low_shot([str(n) for n in range(100)], share=0.05, seed=3))
    5
    """
    return _choose("low-shot", names, labels, share, count, seed)


def cut(
    names: Sequence[str],
    labels: Sequence[Any] | None = None,
    *,
    share: float | None = None,
    count: int | None = None,
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> tuple[Ids, Ids]:
    """Positions in two parts: the rest, and the share or count cut out, of all examples or, with labels, of each class.

    If both a share and a count are given, the smaller applies. For example, `cut(names, share=0.3)` gives a language
    task's train and dev, `cut(names, labels, count=50)` ImageNet's train and validation, `cut(names, labels, share=0.1,
    count=50)` iNaturalist's, and `cut(names, share=0.5)` the two halves of a validation split.

    With groups (such as the image of each question), whole groups are cut out until the share or count is matched as
    closely as possible, so that no image is in both parts. Classes are then ignored.

    >>> cut(["a", "b", "c", "d"], share=0.5)
    (array([0, 1]), array([2, 3]))
    >>> cut(["a", "b", "c", "d"], share=0.5, groups=["x", "y", "x", "y"])
    (array([1, 3]), array([0, 2]))
    """
    if groups is None:
        part = _choose("cut", names, labels, share, count, seed)
    else:
        part = _choose_groups(names, groups, labels, share, count, seed)
    return np.setdiff1d(np.arange(len(names)), part), part


def answer_vocabulary(answers: Iterable[str], normalise: Callable[[str], str], minimum: int = 9) -> tuple[str, ...]:
    """The normalised answers that occur at least `minimum` times, the most frequent first, ties in alphabetical order.

    Over the `multiple_choice_answer`s of VQAv2's train and val splits, with the metric's normal form minus any
    remaining comma, these are the 3129 answers of CLiMB. The empty answer is one of them (people answered "a").

    >>> answer_vocabulary(["Red", "red", "blue", "no", "no"], str.lower, minimum=2)
    ('no', 'red')
    """
    counts = Counter(map(_remembered(normalise), answers))
    return tuple(sorted((a for a, n in counts.items() if n >= minimum), key=lambda answer: (-counts[answer], answer)))


def soft_answers(
    annotators: Sequence[Sequence[str]], vocabulary: Mapping[str, int] | Sequence[str], normalise: Callable[[str], str]
) -> NDArray[np.float32]:
    """The score of each answer of the vocabulary, one row per question.

    An answer given by one, two or three annotators scores 0.3, 0.6 or 0.9, and by four or more 1. Answers outside the
    vocabulary are ignored.

    >>> soft_answers([["Red"] * 3 + ["blue"] * 6 + ["teal"]], ["blue", "red"], str.lower)
    array([[1. , 0.9]], dtype=float32)
    """
    places = vocabulary if isinstance(vocabulary, Mapping) else {answer: i for i, answer in enumerate(vocabulary)}
    scores = np.array([0, 0.3, 0.6, 0.9, 1], np.float32)
    targets = np.zeros((len(annotators), len(places)), np.float32)
    normal = _remembered(normalise)
    for row, answers in enumerate(annotators):
        for answer, count in Counter(map(normal, answers)).items():
            if answer in places:
                targets[row, places[answer]] = scores[min(count, 4)]
    return targets


def _choose(
    purpose: str,
    names: Sequence[str],
    labels: Sequence[Any] | None,
    share: float | None,
    count: int | None,
    seed: int,
) -> Ids:
    if share is None and count is None:
        raise UserError("a sample needs a share or a count")
    if share is not None and not 0 <= share <= 1:
        raise UserError(f"a share must lie between 0 and 1, not {share}")
    if count is not None and count < 0:
        raise UserError(f"a count must be at least 0, not {count}")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise UserError(f"the id {twice!r} occurs more than once: samples are drawn by id, so ids must be unique")
    if labels is not None and len(labels) != len(names):
        raise UserError(f"{len(names)} examples need as many labels, but there are {len(labels)}")
    classes: dict[Any, list[int]] = {}
    for place in range(len(names)):
        classes.setdefault(None if labels is None else labels[place], []).append(place)
    ranks = [_rank(purpose, seed, name) for name in names]
    chosen: list[int] = []
    for places in classes.values():
        take = len(places) if share is None else round(share * len(places))
        take = take if count is None else min(take, count)
        chosen += sorted(places, key=lambda place: (ranks[place], names[place]))[:take]
    return np.array(sorted(chosen), np.int64)


def _choose_groups(
    names: Sequence[str],
    groups: Sequence[str],
    labels: Sequence[Any] | None,
    share: float | None,
    count: int | None,
    seed: int,
) -> Ids:
    if labels is not None:
        raise UserError("a cut is made by classes or by groups, not by both")
    if len(groups) != len(names):
        raise UserError(f"{len(names)} examples need as many groups, but there are {len(groups)}")
    sizes = Counter(groups)
    wanted = len(_choose("cut", names, None, share, count, seed))  # which also validates the arguments
    order = sorted(sizes, key=lambda group: _rank("cut", seed, group))
    reached = np.cumsum([0, *(sizes[group] for group in order)])
    chosen = set(order[: int(np.abs(reached - wanted).argmin())])
    return np.array([place for place, group in enumerate(groups) if group in chosen], np.int64)


def _rank(purpose: str, seed: int, name: str) -> bytes:
    """The sort key of a name; its order for a low-shot sample is independent of that for a cut."""
    key = f"{purpose}/{seed}".encode()
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()


def _remembered(normalise: Callable[[str], str]) -> Callable[[str], str]:
    """An answer's normal form without commas, cached: millions of answers contain few distinct ones."""
    seen: dict[str, str] = {}

    def normal(answer: str) -> str:
        if answer not in seen:
            seen[answer] = normalise(answer).replace(",", "")
        return seen[answer]

    return normal
