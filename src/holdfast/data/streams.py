"""Transforms of streams: they are not algorithms, because they change only which data a stage has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.types import Stage, Stream

VERSION = 1
OFFLINE = 10
"""Offline training takes this many times the epochs of joint training."""


def joint(stream: Stream) -> Stream:
    """All stages merged into one, in random order, trained like the first of them: the usual upper bound.

    It is also called multi-task training and, for a stream that is seen only once, offline training in one pass.

    >>> from holdfast.types import Training
    >>> a, b = (Stage(n, np.array([i]), Training()) for i, n in enumerate("ab"))
    >>> [stage.train.tolist() for stage in joint(Stream((a, b))).stages]
    [[0, 1]]
    """
    union = _union("joint", stream.stages, stream.stages[0])
    return replace(stream, stages=(replace(union, training=replace(union.training, shuffle=True)),))


def offline(stream: Stream) -> Stream:
    """Joint training for ten times as many epochs: VisCOLL's other upper bound, for streams that are seen only once.

    >>> from holdfast.types import Training
    >>> stage = Stage("a", np.array([0]), Training(epochs=1, shuffle=False))
    >>> [(s.training.epochs, s.training.shuffle) for s in offline(Stream((stage,))).stages]
    [(10, True)]
    """
    (stage,) = joint(stream).stages
    training = replace(stage.training, epochs=OFFLINE * stage.training.epochs)
    return replace(stream, stages=(replace(stage, name="offline", training=training),))


def cumulative(stream: Stream) -> Stream:
    """Each stage with the data of all earlier stages added, continuing from the same weights.

    >>> from holdfast.types import Training
    >>> a, b = (Stage(n, np.array([i]), Training()) for i, n in enumerate("ab"))
    >>> [stage.train.tolist() for stage in cumulative(Stream((a, b))).stages]
    [[0], [0, 1]]
    """
    stages = stream.stages
    return replace(stream, stages=tuple(_union(s.name, stages[: i + 1], s) for i, s in enumerate(stages)))


def _union(name: str, stages: tuple[Stage, ...], like: Stage) -> Stage:
    train = np.concatenate([stage.train for stage in stages])
    validation = tuple(evaluation for stage in stages for evaluation in stage.validation)
    return Stage(name, train, like.training, validation, _classes(stages))


def _classes(stages: tuple[Stage, ...]) -> tuple[int, ...] | None:
    found: set[int] = set()
    for stage in stages:
        if stage.classes is None:
            return None
        found |= set(stage.classes)
    return tuple(sorted(found))
