"""The diagonal of the Fisher information: how much a model's answers depend on each weight.

Paper: the kinds are distinguished by Kunstner et al. 2019, "Limitations of the Empirical Fisher Approximation", and for
continual learning by van de Ven 2025, "On the Computation of the Fisher Information in Continual Learning".
Equation: F_i = E_x E_{y ~ model(x)} (d loss(x, y) / d theta_i)^2, where the task's own loss takes the place of
-log p(y | x): for independent classes (MultiLabel) and for several words (MaskedPhrase, and Generate, whose words are
each drawn after the right ones) it is their mean, as in training.
Cost: for each example one forward pass, plus one forward and one backward pass for each vector that is backpropagated:
one for sampled and empirical, as many as there are outputs for exact (for a phrase: places times words). batched: one
forward and one backward pass for each batch, in as many pieces as a training step. Memory: one number for each weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.algorithms.importance import Named, Slopes, as_trained, importance, plain_recurrence
from holdfast.data.order import mix
from holdfast.errors import UserError
from holdfast.tasks import Generate, MaskedPhrase, MultiLabel, OneRight, SoftLabel
from holdfast.types import Ids, Part, Task

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

Kind: TypeAlias = Literal["exact", "sampled", "empirical", "batched"]

MOST = 4096
"""The maximum number of backward passes per example: an exact Fisher with more would take days."""


def fisher(learner: Learner, ids: Ids, parameters: Mapping[str, nn.Parameter], kind: Kind, seed: int = 0) -> Named:
    """The Fisher of these examples for each parameter; a sampled one draws by the seed and the example's id."""
    assert kind != "batched"
    slopes: dict[str, Slopes] = {
        "exact": _exact,
        "sampled": partial(_sampled, seed=seed),
        "empirical": _empirical,
    }
    return importance(learner, ids, parameters, slopes[kind], torch.square)


def batched(
    learner: Learner, ids: Ids, parameters: Mapping[str, nn.Parameter], size: int, running: bool = False
) -> Named:
    """The mean over batches of the batch's squared gradient: not a Fisher, but what some published code computes.

    `running` is CLiMB's released code: the gradients are not cleared between batches, so each square is of the sum
    so far, and the squares are divided by the number of examples.
    """
    totals = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    sums = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    with as_trained(learner), plain_recurrence(learner.model):
        for start in range(0, len(ids), size):
            learner.gradients(ids[start : start + size], augment=False)
            for name, parameter in parameters.items():
                if parameter.grad is not None:
                    sums[name] = sums[name] + parameter.grad if running else parameter.grad
                    totals[name] += sums[name].square()
    count = len(ids) if running else -(-len(ids) // size)
    return {name: total / count for name, total in totals.items()}


def check_fisher(learner: Learner, kind: Kind) -> None:
    """Raise a UserError, before training, if a task does not support this kind of Fisher, or if it would take days."""
    for task in learner.tasks.values():
        known = isinstance(task, OneRight | SoftLabel | MultiLabel | MaskedPhrase | Generate)
        if kind in ("exact", "sampled") and not known:
            raise UserError(
                f"ewc.fisher is {kind}, but task {task.name!r} ({type(task).__name__}) does not define how to draw an "
                "answer: set ewc.fisher=empirical, which needs only its loss"
            )
        tables = [table for table in learner.data.tables if table.task == task.name]
        places = 1
        if isinstance(task, MaskedPhrase):
            places = max((table.targets.shape[1] for table in tables), default=1)
        elif isinstance(task, Generate):
            places = task.longest
        if kind == "exact" and task.outputs * places > MOST:
            raise UserError(
                f"ewc.fisher is exact, which takes {task.outputs * places} backward passes for each example of task "
                f"{task.name!r}; the maximum is {MOST}: choose sampled, which is right on average and takes one"
            )


# The vectors that are backpropagated to the weights: slopes of a loss at the outputs.


def _empirical(task: Task, part: Part, output: Tensor, ids: Ids) -> Iterator[Tensor]:
    yield _slope(task, part, output)


def _sampled(task: Task, part: Part, output: Tensor, ids: Ids, seed: int) -> Iterator[Tensor]:
    answers = drawn(task, part, output, ids, seed)
    if isinstance(task, Generate):
        yield _slope(task, Part(part.task, {**part.inputs, "answer": answers}, part.targets), output)
    else:
        yield _slope(task, Part(part.task, part.inputs, answers), output)


def _exact(task: Task, part: Part, output: Tensor, ids: Ids) -> Iterator[Tensor]:
    """Vectors whose squares, after backpropagation, add up to the expectation over all answers.

    The loss's slope at the outputs has the covariance M = sum_k v_k v_k^T under the model's own answers, so the sum of
    (J^T v_k)^2 is the diagonal of J^T M J. For a softmax v_k = sqrt(p_k) (e_k - p); for a Bernoulli it is the standard
    deviation. The places of a phrase are independent, so each has vectors of its own.
    """
    if isinstance(task, SoftLabel | MultiLabel):
        chances = output.sigmoid()
        deviations = (chances * (1 - chances)).sqrt() / (task.outputs if isinstance(task, MultiLabel) else 1)
        for k in range(output.shape[-1]):
            vectors = torch.zeros_like(output)
            vectors[:, k] = deviations[:, k]
            yield vectors
        return
    chances = output.softmax(-1)
    words = _words(task, part)
    for place in [None] if words is None else range(output.shape[1]):
        here, scale = (chances, 1.0) if place is None else (chances[:, place], _word_weights(words)[:, place, None])
        for k in range(output.shape[-1]):
            slopes = -here.clone()
            slopes[:, k] += 1
            slopes *= here[:, k, None].sqrt() * scale
            if place is None:
                yield slopes
            else:
                vectors = torch.zeros_like(output)
                vectors[:, place] = slopes
                yield vectors


def _words(task: Task, part: Part) -> Tensor | None:
    """The words of each answer, padded with negative numbers; None if the task's answers are not words."""
    if isinstance(task, Generate):
        return part.inputs["answer"]
    return part.targets if isinstance(task, MaskedPhrase) else None


def _word_weights(words: Tensor | None) -> Tensor:
    """The weight of each place of an answer in its loss: 1 / (words), and 0 if there is no word."""
    assert words is not None, "asked for answers of words alone"
    present = words >= 0
    return present / present.sum(-1, keepdim=True)


def _slope(task: Task, part: Part, output: Tensor) -> Tensor:
    """The slope of each row's loss at its outputs."""
    with torch.enable_grad():
        leaf = output.detach().requires_grad_()
        (slope,) = torch.autograd.grad(task.losses(leaf, part).sum(), leaf)
    return slope


def drawn(task: Task, part: Part, output: Tensor, ids: Ids, seed: int) -> Tensor:
    """Targets drawn from the model's own answers, seeded by the example's id, so that any rank draws the same."""

    def uniform(columns: int) -> Tensor:
        rows = [np.random.default_rng(mix(seed, int(number))).random(columns) for number in ids]
        return torch.from_numpy(np.stack(rows)).to(output.device)

    if isinstance(task, SoftLabel | MultiLabel):
        right = uniform(task.outputs) < output.sigmoid().double()
        if isinstance(task, MultiLabel):
            return right
        answers = torch.arange(task.outputs, device=output.device).expand(len(output), -1)
        return torch.stack([answers.to(output.dtype), right.to(output.dtype)], dim=1)
    below = output.double().softmax(-1).cumsum(-1)  # inverse transform sampling
    if (shown := _words(task, part)) is not None:
        said = (below <= uniform(output.shape[1]).unsqueeze(-1)).sum(-1).clamp(max=output.shape[-1] - 1)
        return torch.where(shown >= 0, said, shown.long())
    return (below <= uniform(1)).sum(-1).clamp(max=output.shape[-1] - 1)
