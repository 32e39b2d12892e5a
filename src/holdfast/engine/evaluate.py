"""Scores of a learner on sets of examples: those of one task in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from holdfast.engine.learner import Learner
from holdfast.types import Array, EvaluationSet, Ids

BATCH, LARGE_BATCH = 256, 1024
"""The number of examples in a batch; the larger one pays only if both the examples and the network are small."""
SMALL_EXAMPLE, SMALL_NETWORK = 256, 200_000
"""For a large batch: the maximum size of an example in bytes, and the maximum number of a network's weights."""


@dataclass(frozen=True)
class Evaluated:
    """A learner's answers on an evaluation set, and their score."""

    score: float
    predictions: Array
    details: Mapping[str, tuple[int, float]]
    """The further scores that the set defines, by name, each with its number of examples."""
    finite: bool
    """Whether no output was NaN or positive infinity on any rank; -inf marks an impossible class."""


def evaluate(learner: Learner, evaluation: EvaluationSet) -> Evaluated:
    """Score a learner on a set, each rank on its share; every rank has the result."""
    (result,) = evaluate_all(learner, (evaluation,))
    return result


def evaluate_all(
    learner: Learner, evaluations: Sequence[EvaluationSet], reached: Callable[[str], None] = lambda name: None
) -> list[Evaluated]:
    """Score a learner on several sets; those of one task share their batches.

    `reached` is called before each batch, with the name of the set in which it begins.
    """
    results: dict[int, Evaluated] = {}
    for task in dict.fromkeys(evaluation.task for evaluation in evaluations):
        places = [place for place, evaluation in enumerate(evaluations) if evaluation.task == task]
        together = [evaluations[place] for place in places]
        results |= zip(places, _of_task(learner, task, together, reached), strict=True)
    return [results[place] for place in range(len(evaluations))]


def _of_task(
    learner: Learner, name: str, evaluations: Sequence[EvaluationSet], reached: Callable[[str], None]
) -> Iterator[Evaluated]:
    """The results of sets of one task."""
    task, ids = learner.tasks[name], np.concatenate([evaluation.ids for evaluation in evaluations])
    ends = np.cumsum([len(evaluation.ids) for evaluation in evaluations])
    predictions, broken = _answers(
        learner, name, ids, lambda row: reached(evaluations[int(np.searchsorted(ends, row, side="right"))].name)
    )
    targets = learner.data.targets(ids).numpy()
    for evaluation, end in zip(evaluations, ends, strict=True):
        rows = slice(end - len(evaluation.ids), end)
        found, right = predictions[rows], targets[rows]
        details = evaluation.details(found, right) if evaluation.details else {}
        yield Evaluated(task.score(found, right), found, details, not broken[rows].any())


def _answers(learner: Learner, name: str, ids: Ids, reached: Callable[[int], None]) -> tuple[Array, Array]:
    """The prediction of each example, and whether its outputs are broken; each rank computes its share."""
    ranks, task = learner.ranks, learner.tasks[name]
    order = np.argsort(ids, kind="stable")  # examples of one table are neighbours
    own = order[ranks.rank :: ranks.size]
    rows = own if len(own) else order[:1]  # fewer examples than ranks: use one row to learn the answer's shape
    found, broken, size = list[Tensor](), list[Tensor](), batch_size(learner, ids)
    learner.model.eval()
    with torch.inference_mode():
        for start in range(0, len(rows), size):
            reached(int(rows[start]))
            chosen = ids[rows[start : start + size]]
            batch = learner.data.fetch(chosen, learner.device, around=learner.around, trim=learner.trims)
            if learner.data.reads_ahead:
                learner.data.prefetch(ids[rows[start + size : start + 2 * size]], known=learner.known)
            for output, part in zip(learner.answers(batch), batch.parts, strict=True):
                broken.append(~(output.flatten(1).amax(1) < torch.inf))  # also of NaN
                found.append(task.predictions(output, part))
    learner.train_mode()
    answers = []
    for each in (found, broken):
        gathered = ranks.gather_rows(torch.cat(each)[: len(own)], len(ids)).cpu().numpy()
        answers.append(np.empty_like(gathered))
        answers[-1][order] = gathered
    return answers[0], answers[1]


def batch_size(learner: Learner, ids: Ids) -> int:
    """The number of examples that are evaluated at once."""
    small = learner.data.example_bytes(ids) <= SMALL_EXAMPLE * len(ids)
    return LARGE_BATCH if small and sum(p.numel() for p in learner.model.parameters()) <= SMALL_NETWORK else BATCH
