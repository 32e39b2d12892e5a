"""Scores of a learner on sets of examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from holdfast.engine.learner import Learner
from holdfast.types import Array, EvaluationSet

BATCH = 256


@dataclass(frozen=True)
class Evaluated:
    """A learner's answers on an evaluation set, and their score."""

    score: float
    predictions: Array
    details: Mapping[str, tuple[int, float]]
    """The further scores that the set defines, by name, each with its number of examples."""
    finite: bool
    """Whether no output was NaN or positive infinity on any rank; -inf marks an impossible class."""


def evaluate(learner: Learner, evaluation: EvaluationSet, check: Callable[[], None] = lambda: None) -> Evaluated:
    """Score a learner on a set, each rank on its share; every rank has the result. `check` runs between batches."""
    ids, ranks = evaluation.ids, learner.ranks
    own = ids[ranks.rank :: ranks.size]
    rows = own if len(own) else ids[:1]  # fewer examples than ranks: use one row to learn the answer's shape
    task = learner.tasks[evaluation.task]
    found, highest = [], torch.zeros((), dtype=torch.float64, device=learner.device)
    learner.model.eval()
    with torch.inference_mode():
        for start in range(0, len(rows), BATCH):
            check()
            batch = learner.data.fetch(rows[start : start + BATCH], learner.device)
            if learner.data.reads_ahead:
                learner.data.prefetch(rows[start + BATCH : start + 2 * BATCH])
            (output,) = learner.forward(batch)
            highest = torch.maximum(highest, output.max())  # NaN if any output is NaN
            found.append(task.predictions(output, batch.parts[0]))
    learner.train_mode()
    predictions = ranks.gather_rows(torch.cat(found)[: len(own)], len(ids)).cpu().numpy()
    targets = learner.data.targets(ids).numpy()
    details = evaluation.details(predictions, targets) if evaluation.details else {}
    (broken,) = ranks.most(float(not highest < torch.inf))
    return Evaluated(task.score(predictions, targets), predictions, details, not broken)
