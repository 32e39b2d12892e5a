"""Checks that a learner is still sound, and advice if it is not: a run that diverged has no score."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from holdfast.algorithms.base import Algorithm
from holdfast.engine.learner import Learner
from holdfast.types import Stage

LARGEST = 1e6
"""No model that learns has weights of such a norm: beyond it, scores may be finite but are meaningless."""


def weight_norm(learner: Learner) -> float:
    """The norm of all trainable weights, the same on every rank; NaN if any weight is NaN."""
    weights = [parameter.detach() for parameter in learner.parameters.values()]
    if not weights:
        return 0.0
    return float(torch.stack([norm.double() for norm in torch._foreach_norm(weights)]).norm())


def advice(stage: Stage, algorithms: Sequence[Algorithm]) -> str:
    """The advice in the message about a run that diverged: the learning rate and strengths that may be too high.

    >>> import numpy as np
    >>> from holdfast.algorithms.ewc import EWC
    >>> from holdfast.types import Training
    >>> advice(Stage("blue", np.arange(8), Training(learning_rate=0.05)), [EWC(strength=100)])
    'lower the learning rate, 0.05 (--set train.learning_rate=0.005), or EWC.strength, 100'
    """
    rate = stage.training.learning_rate
    words = [f"the learning rate, {rate:g} (--set train.learning_rate={rate / 10:g})"]
    for algorithm in algorithms:
        for name in algorithm.strengths:
            if value := getattr(algorithm, name):
                words.append(f"{algorithm}.{name}, {value:g}")
    return f"lower {', or '.join(words)}"
