"""Separate steps of `replay` (CLiMB, and VisCOLL's code), and draws from one past stage (CLiMB).

Equation: after the step on B_new, a step on B_memory alone. With source=one, B_memory comes from one past stage, chosen
uniformly, in batches of that stage's own size. The step uses the learner's optimiser, at the rate of the step before;
with fidelity=released, a fresh AdamW at the full learning rate of the past stage, as in CLiMB's code.
Cost: one forward and one backward pass over B_memory, and an optimiser step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.types import Ids

if TYPE_CHECKING:
    from holdfast.algorithms.replay import Replay
    from holdfast.engine.learner import Learner


def from_one_stage(replay: Replay) -> tuple[Ids, int]:
    """Kept examples of one past stage, and its number; none if there is no past stage."""
    stage = replay.kept.draw_group(but=replay.now)
    if stage is None:
        return np.empty(0, dtype=np.int64), replay.now
    return replay.kept.sample_group(stage, replay.size or replay.trainings[stage]["batch_size"]), stage


def separate_step(replay: Replay, learner: Learner, ids: Ids, stage: int) -> None:
    """Learn from kept examples alone; `stage` is the stage they come from, or else the current one."""
    if len(ids) == 0:
        return
    learner.gradients(ids, [replay])
    if replay.fidelity == "paper":
        learner.optimiser.step()
        return
    past, now = replay.trainings[stage], learner.optimiser.training
    betas = (past["betas"][0], past["betas"][1])
    as_then = {"learning_rate": past["learning_rate"], "betas": betas, "epsilon": past["epsilon"]}
    learner.optimiser.anew(replace(now, optimiser="adamw", **as_then)).step()
