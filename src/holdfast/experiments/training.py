"""Training without a store, for scripts of your own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from holdfast.data.threads import threads
from holdfast.engine.evaluate import evaluate_all
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train as learn
from holdfast.engine.watch import Log, NoLog
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.front import through
from holdfast.experiments.objects import requests
from holdfast.experiments.runner import find_device, make_learner
from holdfast.experiments.setups import Setups
from holdfast.experiments.trackers import Several, TrackedLog, Tracker
from holdfast.settings import shown
from holdfast.types import Protocol


def train(
    stream: Any,
    algorithms: Any,
    model: Any,
    seed: int,
    device: str,
    log: Sequence[str | Tracker],
    words: dict[str, Any],
) -> Learner:
    """Train as a run does, but without a folder; return the learner after the last stage."""
    trackers = [each for each in log if isinstance(each, Tracker)]
    if len(trackers) < len(log):
        raise UserError("train() stores nothing: give log objects of holdfast.Tracker, and no names")
    (request,) = requests(stream, [algorithms], model, [seed], **words)
    config, place = resolve(request), find_device(device)
    if request.start:
        raise UserError("train() has no store to take a start from: use run()")
    setup = Setups().of(config)
    protocol = setup.protocol if trackers else Protocol(())
    scores: Log = TrackedLog(NoLog(), trackers)
    with threads(request.threads):
        learner = make_learner(config, setup, place)
        learn(learner, setup.stream, copy.deepcopy(config.algorithms), protocol, log=scores, watch=Several(*trackers))
    for tracker in trackers:
        tracker.close()
    return learner


def evaluate(learner: Learner, stream: Any, split: str, seed: int, words: dict[str, Any]) -> dict[str, float]:
    """The scores of a learner on the evaluation sets of a stream, by the sets' names."""
    if not isinstance(learner, Learner):
        raise UserError(f"evaluate() takes the learner that train() returns, not {shown(learner)}")
    if split not in ("test", "validation"):
        raise UserError(f"split is {split!r}: give 'test' or 'validation'")
    (request,) = requests(stream, ["finetune"], None, [seed], **words)
    config = resolve(request)
    asked = learner.settings or config.recipe
    setup = config.benchmark.setup(asked.wants())
    if (front := asked.front()) is not None:
        setup = through(setup, front)
    if unknown := sorted({task.head for task in setup.tasks.values()} - set(learner.model.heads)):
        raise UserError(f"the learner was not trained for the tasks of this stream: it has no head {unknown[0]!r}")
    judge = Learner(learner.model, setup.data, setup.tasks, seed=learner.seed, device=learner.device)
    judge.autocast = learner.autocast
    sets = [each for each in setup.protocol.evaluations if each.split == split]
    found = {each.name: result.score for each, result in zip(sets, evaluate_all(judge, sets), strict=True)}
    learner.train_mode()  # it knows what is frozen
    return found
