"""Reports training losses to VisCOLL's balanced-forget memory, which needs to know how much is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor

from holdfast.algorithms.rows import on_all_ranks
from holdfast.memory import TargetBalanced
from holdfast.types import Batch

if TYPE_CHECKING:
    from holdfast.algorithms.replay import Replay
    from holdfast.engine.learner import Learner
    from holdfast.tasks import MaskedPhrase


def observe(replay: Replay, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> None:
    """Report to the memory the loss of each example of a batch or, by words, of each of its words."""
    assert isinstance(replay.kept, TargetBalanced)
    own = []
    for part, output in zip(batch.parts, outputs, strict=True):
        task = learner.tasks[part.task]
        losses = cast("MaskedPhrase", task).word_losses if replay.by == "word" else task.losses
        own.append(losses(output.detach(), part))
    for ids, rows in on_all_ranks(learner, batch, tuple(own)):
        # Rounded, so that one rank and several, whose last digits differ, make the same decisions.
        found = rows.double().cpu().numpy().round(6)  # waits for the device
        if replay.by == "word":
            words = learner.data.targets(ids).numpy()
            replay.kept.observe(words[words >= 0], found[words >= 0])
        else:
            replay.kept.observe(replay.kept.group_of(ids), found)
