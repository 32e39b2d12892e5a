"""The loop. Every run of every algorithm on every benchmark goes through `train`, from top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from holdfast.algorithms.base import Algorithm, Fit, overridden
from holdfast.data.order import shuffled
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.evaluate import Result, evaluate
from holdfast.engine.health import LARGEST, advice, weight_norm
from holdfast.engine.learner import Learner
from holdfast.engine.ranks import Ranks
from holdfast.errors import RunError, Stopped, UserError
from holdfast.types import Array, Batch, EvaluationSet, Score, Stage, Stream
from holdfast.types import Protocol as Evaluations

AGREE_STEPS, AGREE_SECONDS = 16, 0.5
"""With several ranks, how seldom (in steps, and in seconds of them) they ask each other whether to stop."""
NOTHING: Array = np.empty(0)
"""The predictions behind a detail of a score: they are those behind the score itself."""


class Log(Protocol):
    """Where scores go, one after another."""

    def add(self, score: Score, predictions: Array) -> None:
        """Append a score, and perhaps the predictions behind it."""

    def size(self) -> int:
        """How much there is: a mark for `cut`."""

    def cut(self, size: int) -> None:
        """Drop what came after a mark."""


class Watch:
    """Sees a run go by, and may ask it to stop. This one sees nothing; others show a bar or write a log."""

    stopping: bool = False
    """Whether the run is asked to stop."""

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """A stage begins, or is resumed."""

    def step(self, stage_step: int, loss: Tensor) -> None:
        """A step is done. Reading the loss waits for the device: do it seldom."""

    def evaluating(self, name: str) -> None:
        """An evaluation begins."""


class NoLog:
    """A log that keeps nothing: for speed, and for every rank but the first."""

    def add(self, score: Score, predictions: Array) -> None:
        """Forget it."""

    def size(self) -> int:
        """Nothing."""
        return 0

    def cut(self, size: int) -> None:
        """There is nothing to cut."""


@dataclass
class Position:
    """Where a run stands: the next step to do, and whether the scores of the last one are still to be taken."""

    stage: int = 0
    epoch: int = 0
    step: int = 0
    total: int = 0
    fitting: bool = False
    scoring: bool = False
    seconds: float = 0.0


@dataclass
class Choice:
    """The best weights of a stage so far, by its validation data."""

    best: float = -math.inf
    waited: int = 0
    weights: dict[str, Tensor] | None = None


def batches(stage: Stage) -> int:
    """The steps of one epoch; the last batch may be smaller."""
    return -(-len(stage.train) // stage.training.batch_size)


def refuse(algorithms: Sequence[Algorithm], stream: Stream) -> None:
    """Refuse, before training, an algorithm that this stream cannot serve, or that cannot go with another."""
    for algorithm in algorithms:
        if "boundaries" in algorithm.needs and not stream.boundaries:
            raise UserError(
                f"{algorithm} needs to know where one stage ends and the next begins, "
                "and this stream does not show it: choose an algorithm without that need, or a stream with boundaries"
            )
        algorithm.check(stream)
    for algorithm in algorithms:
        algorithm.beside(algorithms)


def train(
    learner: Learner,
    stream: Stream,
    algorithms: Sequence[Algorithm],
    protocol: Evaluations,
    *,
    log: Log,
    checkpoints: Checkpoints | None = None,
    watch: Watch | None = None,
) -> Position:
    """Train a learner on a stream with a list of algorithms, evaluating as the protocol says.

    Where `checkpoints` holds one, the run goes on from there and ends with the same weights and scores, bit for bit
    on the CPU, as one that was never interrupted.
    """
    algorithms, watch, ranks = list(algorithms), watch or Watch(), learner.ranks
    refuse(algorithms, stream)
    learner.draw_at(-1)
    for algorithm in algorithms:
        algorithm.setup(learner)
    if any(stage.training.accumulate > 1 for stage in stream.stages):
        learner.refuse_pieces()
    on_batch, on_loss, on_grads, on_after = (overridden(algorithms, h) for h in ("batch", "loss", "grads", "after"))
    on_stage = overridden(algorithms, "stage") if stream.boundaries else []
    at, choice, loss = Position(scoring=protocol.initial), Choice(), None
    stages = stream.stages
    waiting: list[Callable[[], None]] = []
    asked = _Asked(watch, ranks)

    def as_trained(stage: Stage) -> Stage:
        for algorithm in on_stage:
            stage = algorithm.stage(learner, stage)
        return stage

    # Going on from a checkpoint

    saved = checkpoints.load() if checkpoints else None
    if saved is None:
        log.cut(0)
    else:
        at, choice = Position(**saved["position"]), Choice(**saved["choice"])
        log.cut(saved["log"])
        for algorithm, state in zip(algorithms, saved["algorithms"], strict=True):
            algorithm.load_state_dict(learner, state)
        stage = stages[min(at.stage, len(stages) - 1)]
        if at.fitting:
            stage = as_trained(stage)
        learner.load_state_dict(saved["learner"], stage.training, batches(stage) * stage.training.epochs)
    began = time.monotonic() - at.seconds

    given = next(iter(stages[at.stage if at.fitting else max(at.stage - 1, 0) :]), None)

    def failed(what: str) -> RunError:
        assert given is not None, "without a stage, nothing can diverge"
        return RunError(f"{what} in stage {given.name!r}, by step {at.total}: {advice(given, algorithms)}")

    def healthy(weights: bool = True) -> None:
        if loss is not None and not math.isfinite(loss):
            raise failed(f"the loss became {float(loss)}")
        if weights and not (norm := weight_norm(learner)) < LARGEST:
            raise failed(f"the norm of the weights became {norm:.3g}")

    def scored(evaluation: EvaluationSet, check: Callable[[], None] = lambda: None) -> Result:
        result = evaluate(learner, evaluation, check)
        if not result.finite:
            raise failed(f"the model's outputs on {evaluation.name!r} became NaN or infinite")
        return result

    def save() -> None:
        healthy()
        at.seconds = time.monotonic() - began
        if checkpoints and checkpoints.writes:
            state: dict[str, Any] = {"position": asdict(at), "choice": vars(choice), "log": log.size()}
            state["learner"] = learner.state_dict()
            state["algorithms"] = [algorithm.state_dict() for algorithm in algorithms]
            checkpoints.save(at.total, state)

    def stop() -> None:
        save()
        raise Stopped

    def score_all() -> None:
        healthy()
        mark, at.scoring = log.size(), True

        def check() -> None:
            if ranks.size == 1 and watch.stopping:
                log.cut(mark)  # the resumed run takes all of these scores
                stop()

        for evaluation in protocol.evaluations:
            watch.evaluating(evaluation.name)
            result = scored(evaluation, check)
            score = Score(at.stage, at.total, evaluation.name, evaluation.split, len(evaluation.ids), result.score)
            if ranks.first:
                log.add(score, result.predictions)
                for name, (count, value) in result.details.items():
                    log.add(replace(score, name=name, count=count, score=value), NOTHING)
        at.scoring = False

    # The stages

    if at.scoring:
        score_all()
        save()
    while at.stage < len(stages):
        given = stages[at.stage]
        learner.model.open_classes(given.classes)
        if stream.boundaries and not at.fitting:
            learner.draw_at(at.stage, -1)
            for algorithm in algorithms:
                algorithm.begin(learner, given)
        stage = as_trained(given)
        per_epoch = batches(stage)
        watch.stage(at.stage, len(stages), stage, per_epoch * stage.training.epochs)

        def fit(start: Callable[[], None] | None = None, stage: Stage = stage, per_epoch: int = per_epoch) -> None:
            nonlocal choice, loss
            training = stage.training
            if not at.fitting:
                for begin in (*waiting, start):
                    if begin:
                        begin()
                learner.restart(training, per_epoch * training.epochs)
                learner.train_mode()
                choice = Choice()
                at.fitting, at.epoch, at.step = True, 0, 0
            waiting.clear()
            while at.epoch < training.epochs:
                learner.epoch = at.epoch
                ids = stage.train
                if training.shuffle:
                    ids = shuffled(ids, seed=learner.seed, stage=at.stage, epoch=at.epoch)
                while at.step < per_epoch:
                    learner.draw_at(at.stage, at.epoch, at.step)
                    new = Batch(ids[at.step * training.batch_size : (at.step + 1) * training.batch_size])
                    chosen = new
                    for algorithm in on_batch:
                        chosen = algorithm.batch(learner, chosen)
                    if ranks.size > 1:  # from here on, as for dropout, each rank draws for itself
                        learner.draw_at(at.stage, at.epoch, at.step, ranks.rank)
                    following = ids[(at.step + 1) * training.batch_size : (at.step + 2) * training.batch_size]
                    loss = learner.gradients(chosen.ids, on_loss, following)
                    for algorithm in on_grads:
                        algorithm.grads(learner, chosen)
                    learner.step(at.epoch * per_epoch + at.step)
                    for algorithm in on_after:
                        algorithm.after(learner, new)
                    at.step, at.total = at.step + 1, at.total + 1
                    watch.step(at.epoch * per_epoch + at.step, loss)
                    if protocol.every and at.total % protocol.every == 0:
                        score_all()
                    if checkpoints and checkpoints.due(at.total):
                        save()
                    if asked.to_stop(at.total):
                        stop()
                healthy(weights=False)
                if training.patience is not None:
                    scores = [scored(validation).score for validation in stage.validation]
                    choice.waited += 1
                    if (mean := math.fsum(scores) / len(scores)) > choice.best:
                        weights = {name: value.clone() for name, value in learner.model.state_dict().items()}
                        choice = Choice(mean, 0, weights)
                at.epoch, at.step = at.epoch + 1, 0
                if training.patience is not None and choice.waited >= training.patience:
                    break
            if choice.weights is not None:
                learner.model.load_state_dict(choice.weights)
            at.fitting = False

        procedure: Fit = fit
        for algorithm in reversed(overridden(algorithms, "learn")):
            procedure = partial(_nested, algorithm, learner, stage, procedure, waiting)
        procedure()
        healthy()
        if stream.boundaries:
            learner.draw_at(at.stage, -2)
            for algorithm in algorithms:
                algorithm.end(learner, given)
        at.stage, at.epoch, at.step, choice = at.stage + 1, 0, 0, Choice()
        at.scoring = True
        if checkpoints:  # before the save: a run that is killed between the two writes the same once more
            checkpoints.keep(at.stage, learner.model.state_dict())
        save()
        score_all()
        save()
        if asked.to_stop(at.total, now=True):
            raise Stopped
    at.seconds = time.monotonic() - began
    return at


class _Asked:
    """Whether the run is asked to stop. Ranks agree on it, so that all stop after the same step."""

    def __init__(self, watch: Watch, ranks: Ranks) -> None:
        self.watch, self.ranks = watch, ranks
        self.next, self.last, self.time = 0, 0, time.monotonic()

    def to_stop(self, step: int, now: bool = False) -> bool:
        if self.ranks.size == 1:
            return self.watch.stopping
        if step < self.next and not now:
            return False
        pace = (time.monotonic() - self.time) / max(step - self.last, 1)
        flag, pace = self.ranks.most(float(self.watch.stopping), pace)
        self.next = step + max(1, min(AGREE_STEPS, int(AGREE_SECONDS / max(pace, 1e-9))))
        self.last, self.time = step, time.monotonic()
        return flag > 0


def _nested(
    algorithm: Algorithm,
    learner: Learner,
    stage: Stage,
    inner: Fit,
    waiting: list[Callable[[], None]],
    start: Callable[[], None] | None = None,
) -> None:
    """One layer of `learn` around a fit, itself a fit; its own start waits for the innermost fit."""
    if start:
        waiting.append(start)
    algorithm.learn(learner, stage, inner)
