"""The training loop. Every run of every algorithm on every benchmark goes through `train`, from top to bottom."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, Fit, check_traits, overridden, overrides, passes
from holdfast.data.order import shuffled
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.evaluate import Evaluated, evaluate_all
from holdfast.engine.health import LARGEST, advice, weight_norm
from holdfast.engine.learner import Learner
from holdfast.engine.optimiser import refuse_unmatched
from holdfast.engine.pace import Pace, batches, refuse_budget
from holdfast.engine.stopping import saves
from holdfast.engine.watch import AgreedStop, Log, Watch
from holdfast.errors import RunError, Stopped, UserError
from holdfast.types import Array, Batch, Budget, EvaluationSet, Ids, Score, Stage, Stream
from holdfast.types import Protocol as Evaluations

OTHER_RUNS = 2
"""`observe` passes through a stage only once, but counts as twice: other runs will use the kept outputs, too."""
NOTHING: Array = np.empty(0)
"""The predictions behind a detail of a score are those behind the score itself."""


@dataclass
class Position:
    """A position in a run: the next step, and whether the scores of the last one have yet to be taken."""

    stage: int = 0
    epoch: int = 0
    step: int = 0
    total: int = 0
    fitting: bool = False
    observed: int | None = None
    """How many algorithms have observed the stage, once it is trained; None before that."""
    scoring: bool = False
    seconds: float = 0.0
    learned: int = 0
    """The number of new examples that steps learned from; an example counts each time."""
    skipped: int = 0
    """The steps that the budget did not allow; they count among all steps."""
    full: bool = False
    """Whether more is kept than the budget allows, as of the beginning of the epoch."""
    spent: list[list[int]] = field(default_factory=list)
    """At each round of scores: the stage, the step, the operations, and the examples passed forward and backward."""


@dataclass
class Choice:
    """The best weights of a stage so far, by its validation data."""

    best: float = -math.inf
    waited: int = 0
    weights: dict[str, Tensor] | None = None


def refuse(algorithms: Sequence[Algorithm], stream: Stream, budget: Budget | None = None) -> None:
    """Raise, before training, if an algorithm cannot work with this stream, a budget, or another algorithm."""
    refuse_budget(budget, algorithms)
    for algorithm in algorithms:
        if "boundaries" in algorithm.needs and not stream.boundaries:
            raise UserError(
                f"{algorithm} needs to know where one stage ends and the next begins, "
                "but this stream does not show it: choose an algorithm without that need, or a stream with boundaries"
            )
        check_traits(algorithm)
        algorithm.check(stream)
    for algorithm in algorithms:
        algorithm.beside(algorithms)


def without_boundaries(error: Exception, algorithms: Sequence[Algorithm], stream: Stream) -> UserError | None:
    """The error for a failed hook of an algorithm whose `begin`, `end` or `stage` this stream never calls.

    Some algorithms do not need these calls, so nothing is rejected in advance.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        failed = next((each for each in algorithms if frame.f_locals.get("self") is each), None)
        hooks = [hook for hook in ("begin", "end", "stage") if failed is not None and overrides(failed, hook)]
        if stream.boundaries or failed is None or not hooks:
            continue
        called, kind = " and ".join(f"`{hook}`" for hook in hooks), type(failed).__name__
        return UserError(
            f"{failed} failed in `{frame.f_code.co_name}` ({type(error).__name__}: {error}): this stream does not show "
            f"where a stage ends, so {called} of {kind} {'was' if len(hooks) == 1 else 'were'} never called. If {kind} "
            f'relies on that, write needs = frozenset({{"boundaries"}}) in the class, and choose a stream with '
            "boundaries; if not, set in `setup` what its other hooks use"
        )
    return None


def train(
    learner: Learner,
    stream: Stream,
    algorithms: Sequence[Algorithm],
    protocol: Evaluations,
    *,
    log: Log,
    checkpoints: Checkpoints | None = None,
    watch: Watch | None = None,
    budget: Budget | None = None,
) -> Position:
    """Train a learner on a stream with a list of algorithms, evaluating as the protocol says, within a budget.

    If `checkpoints` contains one, the run resumes from it and ends with the same weights and scores, bit for bit on the
    CPU, as an uninterrupted run.
    """
    loop = Loop(learner, stream, algorithms, protocol, log, checkpoints, watch or Watch(), budget)
    try:
        loop.start()
        with saves():
            if loop.at.scoring:
                loop.score()
                loop.save_if_due()
            while loop.at.stage < len(stream.stages):
                loop.learn(stream.stages[loop.at.stage])
    except (UserError, RunError, Stopped):
        raise
    except Exception as error:
        if (why := without_boundaries(error, algorithms, stream)) is not None:
            raise why from error
        raise
    loop.at.seconds = time.monotonic() - loop.began
    return loop.at


class Loop:
    """One run in progress: its position, and the parts that carry it out."""

    def __init__(
        self,
        learner: Learner,
        stream: Stream,
        algorithms: Sequence[Algorithm],
        protocol: Evaluations,
        log: Log,
        checkpoints: Checkpoints | None,
        watch: Watch,
        budget: Budget | None = None,
    ) -> None:
        self.learner, self.stream, self.algorithms = learner, stream, list(algorithms)
        self.protocol, self.log, self.checkpoints, self.watch = protocol, log, checkpoints, watch
        self.at, self.choice = Position(scoring=protocol.initial), Choice()
        self.loss: Tensor | None = None
        """The loss of the last step, on the learner's device."""
        self.given: Stage | None = None
        """The stage that is being learned, or was learned last."""
        self.waiting: list[Callable[[], None]] = []
        """Callbacks of outer layers of `learn`, to run when the next fit begins."""
        self.asked = AgreedStop(watch, learner.ranks)
        self.on_batch, self.on_loss, self.on_grads, self.on_after, on_stage = (
            overridden(self.algorithms, hook) for hook in ("batch", "loss", "grads", "after", "stage")
        )
        self.on_stage = on_stage if stream.boundaries else []
        self.on_observe = overridden(self.algorithms, "observe")
        self.counter, self.budget = learner.counter, budget
        self.pace = None if budget is None else Pace(budget, stream, learner)
        self.began = time.monotonic()

    # Starting, and resuming from a checkpoint

    def start(self) -> None:
        """Check and set up the algorithms, and resume from the newest checkpoint if there is one."""
        refuse(self.algorithms, self.stream, self.budget)
        self.learner.draw_at(-1)
        for algorithm in self.algorithms:
            with self.counting():
                algorithm.setup(self.learner)
        for algorithm in reversed(overridden(self.algorithms, "route")):
            answer = self.learner.route or self.learner.stepper.call
            self.learner.route = partial(algorithm.route, self.learner, answer=answer)
        if any(stage.training.accumulate > 1 for stage in self.stream.stages):
            self.learner.refuse_pieces([each.train for each in self.stream.stages if each.training.accumulate > 1])
        for training in {stage.training for stage in self.stream.stages}:
            refuse_unmatched(training, [name for name, _ in self.learner.model.named_parameters()])
        if self.learner.once is not None:
            learned = [stage.train for stage in self.stream.stages]
            self.learner.once.expect([*learned, *(each.ids for each in self.protocol.evaluations)])
        saved = self.newest()
        if saved is None:
            self.log.cut(0)
        else:
            self.resume(saved)
        stages, at = self.stream.stages, self.at
        self.given = next(iter(stages[at.stage if at.fitting else max(at.stage - 1, 0) :]), None)
        self.began = time.monotonic() - self.at.seconds

    def newest(self) -> dict[str, Any] | None:
        """The newest checkpoint that is intact, along with its scores; the first rank finds it for all."""
        if self.checkpoints is None:
            return None
        ranks, saved = self.learner.ranks, None
        if ranks.first:
            saved = self.checkpoints.load(lambda state: self.log.damage(state["log"]))
        step = ranks.agree(None if saved is None else str(saved["position"]["total"]))
        return saved if ranks.first or step is None else self.checkpoints.of_step(int(step))

    def resume(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save` wrote."""
        self.at, self.choice = Position(**saved["position"]), Choice(**saved["choice"])
        self.log.cut(saved["log"])
        for algorithm, state in zip(self.algorithms, saved["algorithms"], strict=True):
            algorithm.load_state_dict(self.learner, state)
        stages = self.stream.stages
        stage = stages[min(self.at.stage, len(stages) - 1)]
        if self.at.fitting:
            stage = self.as_trained(stage)
        self.learner.load_state_dict(saved["learner"], stage.training, batches(stage) * stage.training.epochs)

    def save(self) -> None:
        """Write a checkpoint, if this run keeps any."""
        self.check_health()
        self.at.seconds = time.monotonic() - self.began
        if self.checkpoints and self.checkpoints.writes:
            state: dict[str, Any] = {"position": asdict(self.at), "choice": vars(self.choice), "log": self.log.size()}
            state["learner"] = self.learner.state_dict()
            state["algorithms"] = [algorithm.state_dict() for algorithm in self.algorithms]
            self.checkpoints.save(self.at.total, state)

    def save_if_due(self) -> None:
        """Write a checkpoint if the last one is old: a killed run repeats no more than what came after that."""
        if self.checkpoints and self.checkpoints.due(self.at.total):
            self.save()

    def stop(self) -> NoReturn:
        """Save, and leave the run."""
        self.save()
        raise Stopped

    # A stage

    def learn(self, given: Stage) -> None:
        """Learn one stage: `begin`, the procedure of the algorithms, `end`, a checkpoint, the scores."""
        at, learner, self.given = self.at, self.learner, given
        learner.model.open_classes(given.classes)
        if at.observed is None:
            self.fitted(given)
            self.check_health()
            at.observed = 0
        for algorithm in self.on_observe[at.observed :]:
            self.observe(algorithm, given)
            at.observed += 1
        if self.stream.boundaries:
            learner.draw_at(at.stage, -2)
            for algorithm in self.algorithms:
                with self.counting():
                    algorithm.end(learner, given)
        at.stage, at.epoch, at.step, at.observed, self.choice = at.stage + 1, 0, 0, None, Choice()
        at.scoring = True
        if self.checkpoints:  # before the save: a run killed between the two writes the same weights again
            self.checkpoints.keep(at.stage, learner.model.state_dict())
        self.save()
        self.score()
        self.save_if_due()
        if self.asked.to_stop(at.total, now=True):
            self.stop()

    def fitted(self, given: Stage) -> None:
        """Train on one stage: `begin`, then the procedure of the algorithms."""
        at, learner = self.at, self.learner
        if self.stream.boundaries and not at.fitting:
            learner.draw_at(at.stage, -1)
            for algorithm in self.algorithms:
                with self.counting():
                    algorithm.begin(learner, given)
        stage = self.as_trained(given)
        self.watch.stage(at.stage, len(self.stream.stages), stage, batches(stage) * stage.training.epochs)
        procedure: Fit = partial(self.fit, stage)
        for algorithm in reversed(overridden(self.algorithms, "learn")):
            procedure = partial(self.nested, algorithm, stage, procedure)
        procedure()

    def observe(self, algorithm: Algorithm, stage: Stage) -> None:
        """Show the examples of a stage to an algorithm once more."""
        learner, size = self.learner, stage.training.batch_size
        with learner.lending([(stage.train, OTHER_RUNS)], self.leave), self.counting(), torch.no_grad():
            learner.model.eval()
            algorithm.observe(learner, stage, self.seen(stage.train, size))
            learner.train_mode()

    def seen(self, ids: Ids, size: int) -> Iterator[Batch]:
        """Examples in batches, with this rank's tensors as they are stored."""
        for start in range(0, len(ids), size):
            self.watch.observing()
            self.leave()
            yield self.learner.fetch(ids[start : start + size], augment=False)

    def as_trained(self, stage: Stage) -> Stage:
        """The stage after the `stage` hooks."""
        for algorithm in self.on_stage:
            with self.counting():
                stage = algorithm.stage(self.learner, stage)
        return stage

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the operations of a hook that is called once in a stage, and may change what models compute."""
        self.counter.forget()
        with self.counter.hook():
            yield
        self.counter.forget()
        self.counter.gather(self.learner.ranks)

    def nested(self, algorithm: Algorithm, stage: Stage, inner: Fit, start: Callable[[], None] | None = None) -> None:
        """One layer of `learn` around a fit, itself a fit; its own `start` waits for the innermost fit."""
        if start:
            self.waiting.append(start)
        with self.counting():
            algorithm.learn(self.learner, stage, inner)

    def fit(self, stage: Stage, start: Callable[[], None] | None = None) -> None:
        """Train on a stage for its epochs, or until its validation data stops it early."""
        at, training = self.at, stage.training
        if not at.fitting:
            self.begin_fit(stage, start)
        self.waiting.clear()
        asked = [(stage.train, training.epochs), *passes(self.algorithms, self.learner, stage)]
        if training.patience is not None:
            asked += [(validation.ids, training.epochs) for validation in stage.validation]
        with self.learner.lending(asked, self.leave, training.augment):
            self.counter.gather(self.learner.ranks)
            while at.epoch < training.epochs:
                self.epoch(stage)
                self.check_health(weights=False)
                if training.patience is not None:
                    self.choose(stage)
                    self.counter.gather(self.learner.ranks)
                at.epoch, at.step = at.epoch + 1, 0
                if training.patience is not None and self.choice.waited >= training.patience:
                    break
        if self.choice.weights is not None:
            self.learner.model.load_state_dict(self.choice.weights)
        at.fitting = False

    def begin_fit(self, stage: Stage, start: Callable[[], None] | None) -> None:
        """Run the callbacks that waited for this fit, and make a new optimiser."""
        for begin in (*self.waiting, start):
            if begin:
                begin()
        self.learner.restart(stage.training, batches(stage) * stage.training.epochs)
        self.learner.train_mode()
        self.learner.moved |= {name: each.numel() for name, each in self.learner.parameters.items()}
        self.choice = Choice()
        self.at.fitting, self.at.epoch, self.at.step = True, 0, 0

    def epoch(self, stage: Stage) -> None:
        """One pass over the stage's data, from the run's current step."""
        at, learner, training = self.at, self.learner, stage.training
        per_epoch, size = batches(stage), training.batch_size
        learner.stage, learner.epoch = at.stage, at.epoch
        ids = stage.train
        if training.shuffle:
            ids = shuffled(ids, seed=learner.seed, stage=at.stage, epoch=at.epoch)
        if self.pace is not None and at.step == 0:
            at.full = self.pace.full(self.algorithms)
        while at.step < per_epoch:
            of_fit = at.epoch * per_epoch + at.step
            new, following = (ids[step * size : (step + 1) * size] for step in (at.step, at.step + 1))
            seen = (at.epoch + min((at.step + 1) * size / len(ids), 1.0)) / training.epochs
            if self.pace is None or (not at.full and self.pace.affords(at.stage, seen, at.learned, len(new))):
                self.loss = self.step(Batch(new), following, of_fit)
                self.watch.step(of_fit + 1, self.loss)
                at.learned += len(new)
            else:
                at.step, at.total, at.skipped = at.step + 1, at.total + 1, at.skipped + 1
            if self.protocol.every and at.total % self.protocol.every == 0:
                self.score()
            self.save_if_due()
            if self.asked.to_stop(at.total):
                self.stop()

    def step(self, new: Batch, following: Ids, of_fit: int) -> Tensor:
        """Take one step, including its hooks, and return its loss; `following` are the ids of the next step."""
        at, learner, ranks = self.at, self.learner, self.learner.ranks
        learner.draw_at(at.stage, at.epoch, at.step)
        chosen, hook = new, self.counter.hook
        for number, algorithm in enumerate(self.on_batch):
            with hook("batch", at.stage, number, len(chosen.ids)):
                chosen = algorithm.batch(learner, chosen)
        if ranks.size > 1:  # from this point on, as for dropout, each rank draws its own numbers
            learner.draw_at(at.stage, at.epoch, at.step, ranks.rank)
        loss = learner.gradients(chosen.ids, self.on_loss, following)
        for number, algorithm in enumerate(self.on_grads):
            with hook("grads", at.stage, number, len(chosen.ids)):
                algorithm.grads(learner, chosen)
        learner.step(of_fit)
        for number, algorithm in enumerate(self.on_after):
            with hook("after", at.stage, number, len(new.ids)):
                algorithm.after(learner, new)
        self.counter.gather(ranks)
        at.step, at.total = at.step + 1, at.total + 1
        return loss

    def choose(self, stage: Stage) -> None:
        """Keep the weights of this epoch if they are the best so far on the stage's validation data."""
        scores = [result.score for result in self.evaluated(stage.validation)]
        self.choice.waited += 1
        if (mean := math.fsum(scores) / len(scores)) > self.choice.best:
            weights = {name: value.clone() for name, value in self.learner.model.state_dict().items()}
            self.choice = Choice(mean, 0, weights)

    # Health: a run that diverged fails, and has no score

    def check_health(self, weights: bool = True) -> None:
        """Stop a run whose loss is no longer finite, or whose weights have exploded."""
        if self.loss is not None and not math.isfinite(self.loss):
            raise self.diverged(f"the loss became {float(self.loss)}")
        if weights and not (norm := weight_norm(self.learner)) < LARGEST:
            raise self.diverged(f"the norm of the weights became {norm:.3g}")

    def evaluated(
        self, evaluations: Sequence[EvaluationSet], reached: Callable[[str], None] = lambda name: None
    ) -> list[Evaluated]:
        """The scores on evaluation sets, after checking that all outputs are finite."""
        results = evaluate_all(self.learner, evaluations, reached)
        for evaluation, result in zip(evaluations, results, strict=True):
            if not result.finite:
                raise self.diverged(f"the model's outputs on {evaluation.name!r} became NaN or infinite")
        return results

    def diverged(self, what: str) -> RunError:
        """An error that says what happened, where, and which settings may be too high."""
        assert self.given is not None, "without a stage, nothing can diverge"
        where = f"in stage {self.given.name!r}, by step {self.at.total}"
        return RunError(f"{what} {where}: {advice(self.given, self.algorithms)}")

    # Scores

    def score(self) -> None:
        """Take all scores of the protocol, and log them at once."""
        self.check_health()
        self.at.scoring = True
        asked = [(evaluation.ids, len(self.stream.stages)) for evaluation in self.protocol.evaluations]
        with self.counter.paused(), self.learner.lending(asked, self.leave):
            results = self.evaluated(self.protocol.evaluations, self.scoring)
        scores = list[tuple[Score, Array]]()
        for evaluation, result in zip(self.protocol.evaluations, results, strict=True):
            split, count = evaluation.split, len(evaluation.ids)
            score = Score(self.at.stage, self.at.total, evaluation.name, split, count, result.score)
            scores.append((score, result.predictions))
            for name, (rows, value) in result.details.items():
                scores.append((replace(score, name=name, count=rows, score=value), NOTHING))
        learner = self.learner
        self.at.spent.append(
            [self.at.stage, self.at.total, self.counter.flops, learner.examples_forward, learner.examples_backward]
        )
        if learner.ranks.first:
            self.log.add(scores)
        self.at.scoring = False

    def leave(self) -> None:
        """Stop between two blocks of examples that are computed for a fit or for scores, if requested."""
        if self.learner.ranks.size == 1 and self.watch.stopping:
            self.stop()

    def scoring(self, name: str) -> None:
        """Stop before a batch of an evaluation if requested: the resumed run takes all of these scores again."""
        self.watch.evaluating(name)
        self.leave()
