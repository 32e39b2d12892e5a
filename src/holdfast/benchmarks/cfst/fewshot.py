"""The few-shot test: how well a new linear head on a frozen extractor learns combinations from a few examples.

A test draws many small classification tasks from the examples of one mode (sys, pro, sub, non, noc). Each task trains
its own head on its support examples, all of them at once in every epoch, and is scored on its query examples. The
extractor is frozen: in evaluation mode, where batch normalisation uses the statistics of training and changes nothing.
Its features are therefore computed once, and the heads of all tasks are trained together, as one batched problem. Adam
updates each number independently, so the result is that of training one task after another.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import UserError
from holdfast.types import Ids

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.models.base import Network

TASKS, WAY, SHOT, QUERY = 300, 10, 10, 10
EPOCHS, RATE = 20, 1e-3
LOWEST_RATE = 1e-6
"""Where a cosine ends, as in the authors' code."""
BATCH = 256


@dataclass(frozen=True)
class Draw:
    """The few-shot tasks of a test: rows of the examples, support (tasks, way, shot) and query (tasks, way, query).

    The class for a head is the position along `way`.
    """

    support: Ids
    query: Ids

    @property
    def targets(self) -> tuple[Tensor, Tensor]:
        """The classes of one task's support and query examples, which are the same for every task."""
        way = torch.arange(self.support.shape[1])
        return way.repeat_interleave(self.support.shape[2]), way.repeat_interleave(self.query.shape[2])


def classes_of(labels: NDArray[np.int64], least: int = SHOT + QUERY) -> list[Ids]:
    """The rows of each class with at least `least` examples, from which a test may draw.

    >>> classes_of(np.array([3, 8, 3]), least=2)
    [array([0, 2])]
    """
    found = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return [rows for rows in found if len(rows) >= least]


def draw(
    labels: NDArray[np.int64],
    random: np.random.Generator,
    *,
    tasks: int = TASKS,
    way: int = WAY,
    shot: int = SHOT,
    query: int = QUERY,
) -> Draw:
    """Draw few-shot tasks: some classes for each, and examples of each class, without repetition within a task.

    >>> drawn = draw(np.repeat([4, 7, 9], 5), np.random.default_rng(0), tasks=2, way=2, shot=3, query=2)
    >>> drawn.support.shape, drawn.query.shape
    ((2, 2, 3), (2, 2, 2))
    """
    classes = classes_of(labels, shot + query)
    if len(classes) < way:
        raise UserError(
            f"a {way}-way test with {shot} shots and {query} queries needs {way} classes of {shot + query} examples, "
            f"but there are {len(classes)}: set benchmark.way, or provide more data"
        )
    rows = np.empty((tasks, way, shot + query), np.int64)
    for task in rows:
        for place, chosen in enumerate(random.permutation(len(classes))[:way]):
            task[place] = random.permutation(classes[chosen])[: shot + query]
    return Draw(rows[:, :, :shot], rows[:, :, shot:])


def new_heads(tasks: int, way: int, width: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """The weights (tasks, way, width) and biases (tasks, way) of fresh linear heads, initialised like torch's."""
    generator = torch.Generator().manual_seed(int(random.integers(1 << 62)))
    weights, biases = (torch.rand(shape, generator=generator) for shape in ((tasks, way, width), (tasks, way)))
    return (2 * weights - 1) / width**0.5, (2 * biases - 1) / width**0.5


@dataclass(frozen=True)
class HeadTraining:
    """How the new heads of a test are trained."""

    rates: tuple[float, ...] = (RATE,) * EPOCHS
    """The learning rate of each epoch."""
    mirrored: Tensor | None = None
    """Which support pictures are mirrored in which epoch, (epochs, tasks, examples); None: none of them."""


def head_training(drawn: Draw, random: np.random.Generator, *, flips: bool, cosine: bool) -> HeadTraining:
    """The training of heads with the options of the authors' code: mirrored support pictures, a cosine schedule.

    >>> tasks = draw(np.repeat([4, 7], 20), np.random.default_rng(0), tasks=3, way=2)
    >>> found = head_training(tasks, np.random.default_rng(0), flips=True, cosine=True)
    >>> found.rates[0], round(found.rates[10], 6), found.mirrored.shape
    (0.001, 0.000501, torch.Size([20, 3, 20]))
    """
    rates = np.full(EPOCHS, RATE)
    if cosine:
        rates = LOWEST_RATE + (RATE - LOWEST_RATE) * (1 + np.cos(np.pi * np.arange(EPOCHS) / EPOCHS)) / 2
    shape = EPOCHS, len(drawn.support), drawn.support[0].size
    mirrored = torch.from_numpy(random.random(shape, np.float32) < 0.5) if flips else None
    return HeadTraining(tuple(rates.tolist()), mirrored)


def accuracies(
    features: Tensor,
    drawn: Draw,
    heads: tuple[Tensor, Tensor],
    training: HeadTraining | None = None,
    mirrored: Tensor | None = None,
) -> NDArray[np.float64]:
    """The accuracy of each task on its queries, from features (examples, width) and fresh heads.

    `mirrored` are the features of the mirrored pictures, where the training asks for them.

    >>> random, features = np.random.default_rng(0), torch.eye(2, dtype=torch.float64).repeat(10, 1)
    >>> drawn = draw(np.tile([0, 1], 10), random, tasks=3, way=2, shot=5, query=5)
    >>> accuracies(features, drawn, (torch.zeros(3, 2, 2), torch.zeros(3, 2)))
    array([1., 1., 1.])
    """
    known, asked = (targets.to(features.device) for targets in drawn.targets)
    beside = None if mirrored is None else _rows(mirrored, drawn.support)
    weights, biases = trained(_rows(features, drawn.support), known, heads, training, beside)
    with torch.no_grad():
        right = _logits(weights, biases, _rows(features, drawn.query)).argmax(1) == asked
    found: NDArray[np.float64] = right.double().mean(1).cpu().numpy()
    return found


def trained(
    support: Tensor,
    known: Tensor,
    heads: tuple[Tensor, Tensor],
    training: HeadTraining | None = None,
    mirrored: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The heads of all tasks, trained on support features (tasks, examples, width) with these classes."""
    training = training or HeadTraining()
    tasks, examples = support.shape[:2]
    weights, biases = (nn.Parameter(part.to(support, copy=True)) for part in heads)
    optimiser = torch.optim.Adam([weights, biases], lr=RATE, fused=True)
    for epoch, rate in enumerate(training.rates):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        shown = support
        if training.mirrored is not None and mirrored is not None:
            shown = torch.where(training.mirrored[epoch].to(support.device).unsqueeze(2), mirrored, support)
        loss = functional.cross_entropy(_logits(weights, biases, shown), known.expand(tasks, -1), reduction="sum")
        # The sum of each task's mean: no head is affected by another's loss.
        (loss / examples).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return weights.detach(), biases.detach()


def _rows(features: Tensor, rows: Ids) -> Tensor:
    """(tasks, examples, width) of rows (tasks, way, of each class)."""
    found = features[torch.from_numpy(rows.reshape(-1)).to(features.device)]
    return found.view(len(rows), -1, features.shape[1])


def _logits(weights: Tensor, biases: Tensor, features: Tensor) -> Tensor:
    """(tasks, way, examples): with this order, the products in both forward and backward run along the features."""
    return torch.baddbmm(biases.unsqueeze(2), weights, features.transpose(1, 2))


# The extractor


def extract(learner: Learner, ids: Ids, head: str, mirrored: bool = False) -> Tensor:
    """The features of examples from the learner's encoder, as a head receives them: (examples, width).

    Each rank computes its share; every rank has the result.
    """
    ranks = learner.ranks
    own = ids[ranks.rank :: ranks.size]
    rows = own if len(own) else ids[:1]
    found = []
    learner.model.eval()
    with torch.no_grad(), _precision(learner), _noted(learner.model) as noted:
        for start in range(0, len(rows), BATCH):
            (part,) = learner.data.fetch(rows[start : start + BATCH], learner.device).parts  # a mode is one table
            inputs = _mirrored(part.inputs, None) if mirrored else part.inputs
            found.append(_features(learner.model, inputs, head, noted))
    learner.train_mode()
    return ranks.gather_rows(torch.cat(found)[: len(own)], len(ids))


def unfrozen_accuracies(
    learner: Learner,
    ids: Ids,
    head: str,
    drawn: Draw,
    heads: tuple[Tensor, Tensor],
    training: HeadTraining | None = None,
) -> NDArray[np.float64]:
    """The accuracies if the whole extractor is trained with each head, from the same weights, task by task."""
    training = training or HeadTraining()
    known, asked = (targets.to(learner.device) for targets in drawn.targets)
    found = []
    for number, (support, query) in enumerate(zip(drawn.support, drawn.query, strict=True)):
        model = copy.deepcopy(learner.model).requires_grad_(True)
        weights, biases = (nn.Parameter(part[number].to(next(model.parameters()), copy=True)) for part in heads)
        optimiser = torch.optim.Adam([*model.encoder.parameters(), weights, biases], lr=RATE, fused=True)
        inputs, questions = (
            learner.data.fetch(ids[rows.reshape(-1)], learner.device).parts[0].inputs for rows in (support, query)
        )
        with _noted(model) as noted:
            model.train()
            for epoch, rate in enumerate(training.rates):
                optimiser.param_groups[0]["lr"] = rate
                optimiser.zero_grad()
                rows = None if training.mirrored is None else training.mirrored[epoch, number]
                with _precision(learner):
                    shown = inputs if rows is None else _mirrored(inputs, rows)
                    features = _features(model, shown, head, noted)
                loss = functional.cross_entropy(functional.linear(features, weights, biases), known)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            model.eval()
            with torch.no_grad(), _precision(learner):
                features = _features(model, questions, head, noted)
                right = functional.linear(features, weights, biases).argmax(1) == asked
        found.append(right.double().mean().item())
    return np.array(found)


def _mirrored(inputs: Mapping[str, Tensor], rows: Tensor | None) -> dict[str, Tensor]:
    """The inputs with the pictures of some rows, or of all, mirrored."""
    image = inputs["image"]
    flipped = image.flip(-1)
    if rows is not None:
        flipped = torch.where(rows.to(image.device)[:, None, None, None], flipped, image)
    return {**inputs, "image": flipped}


def _features(model: Network, inputs: Mapping[str, Tensor], head: str, noted: list[Tensor]) -> Tensor:
    """The encoder's output for a head: computed through the head, which may have a path or adapters of its own."""
    noted.clear()
    model.switch(head)
    model.plain(inputs, head)
    dtype = next(model.parameters()).dtype  # not the narrower one of autocast
    return noted[-1].flatten(1).to(dtype)


@contextmanager
def _noted(model: Network) -> Iterator[list[Tensor]]:
    """Collect the encoder's outputs in a list."""
    found: list[Tensor] = []
    hook = model.encoder.register_forward_hook(lambda encoder, inputs, output: found.append(output))
    try:
        yield found
    finally:
        hook.remove()


def _precision(learner: Learner) -> AbstractContextManager[object]:
    return nullcontext() if learner.autocast is None else torch.autocast(learner.device.type, learner.autocast)
