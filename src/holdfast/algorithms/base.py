"""The hooks of an algorithm, and the rule by which each of them combines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from torch import Tensor

from holdfast.errors import UserError, nearest
from holdfast.types import Batch, Ids, Stage, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.engine.learner import Learner


TRAITS: Mapping[str, str] = {
    "weight-penalty": "adds only a penalty on the weights, in `grads`, to gradients that are complete by then",
    "extra-steps": "takes optimiser steps of its own, beside the one for each batch",
    "several-fits": "fits a stage several times and keeps one of the results",
    "encoder-per-stage": "keeps an encoder, or parts of one, for each stage",
    "encoder-per-head": "gives each head an encoder, or parts of one, of its own",
    "adds-to-blocks": "adds modules to the transformer blocks",
    "sets-weights": "sets the weights between stages, by merging",
}
"""The traits that an algorithm can declare, so that others can tell whether the two are compatible. In messages, the
text follows the algorithm's name."""


Answer: TypeAlias = "Callable[[Mapping[str, Tensor], str], Tensor]"
"""From inputs and the name of a head to the outputs of that head."""


KEEPS: Mapping[str, str] = {
    "examples": "keeps examples of the past",
    "weights": "keeps copies of weights, or numbers for each of them",
    "statistics": "keeps statistics of features or outputs",
}
"""The things that an algorithm can keep beside the model: see `Algorithm.keeps`."""


class Fit(Protocol):
    """Trains the current stage, as the loop would.

    `start` runs just before the first step, and not again if a resumed run is already past it. Whatever must happen
    once per fit (restoring weights, choosing a path) belongs there.
    """

    def __call__(self, start: Callable[[], None] | None = None) -> None:
        """Train the stage."""


class Algorithm:
    """A set of hooks that change plain fine-tuning. A run takes a list of algorithms and runs them in that order.

    | hook              | combines by                 | for                                      |
    |-------------------|-----------------------------|------------------------------------------|
    | check, beside     | each in order               | refusing unsupported streams or partners |
    | setup, begin, end | each in order               | freezing, adapters, Fisher, teachers     |
    | stage             | chain                       | rehearsal                                |
    | batch             | chain                       | replay                                   |
    | loss              | sum                         | penalties, distillation                  |
    | grads             | chain                       | projections                              |
    | after             | each (sees new data only)   | memory, separate replay steps            |
    | learn             | nesting, the first outermost| procedures of several fits, or of none   |
    | observe           | each in order               | statistics of a stage, without gradients |
    | route             | nesting, the first outermost| answers in evaluation                    |

    `setup` builds all structure, for every stage to come. `begin` and `end` are called only if the stream shows
    boundaries; an algorithm with "boundaries" in `needs` is refused if it does not. A resumed run calls `setup`, then
    `load_state_dict`, and not `begin` again: anything that `begin` computed must be in the state. The weights, and
    which of them are trainable, are part of the learner's state, not the algorithm's.

    `setup`, `begin`, `end` and `batch` may draw random numbers from torch's global generator, which the loop seeds by
    the position in the run, alike on every rank. The other hooks draw from a generator of their own, whose state they
    save.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    instead: ClassVar[Mapping[str, str]] = {}
    """Settings that, if the user specifies them, replace another setting made by a benchmark."""
    keeps: ClassVar[frozenset[str]] = frozenset()
    """What it keeps beside the model, with its default settings: names from `KEEPS`."""
    pretrained: ClassVar[bool] = False
    """Whether it relies on a pre-trained encoder: the encoder itself learns nothing, or little."""
    strengths: ClassVar[tuple[str, ...]] = ()
    """The settings that weight its terms in the loss or gradient: if a run diverges, the error message names them."""
    traits: frozenset[str] = frozenset()
    """What other algorithms of a run need to know about it: names from `TRAITS`. Declare them in the class, or in
    `__post_init__` if they depend on settings."""
    remedies: ClassVar[Mapping[str, str]] = {}
    """For messages, which setting avoids a trait: `{"extra-steps": "set replay.mode=joint"}`."""
    recordable: ClassVar[bool] = False
    """Whether `loss` depends on the tensors of the batch alone: see `engine/stepper.py`. It is not inherited."""
    called: str = ""
    """The name under which the run requested it, for messages."""

    def __str__(self) -> str:
        return self.called or type(self).__name__

    def uses(self) -> tuple[type, ...]:
        """The memory classes and other algorithms that it creates: a run's id covers their versions as well."""
        return ()

    def check(self, stream: Stream) -> None:
        """Raise a `UserError`, before anything is built, if the stream is not supported."""

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Inspect all algorithms of the run, itself included, in order; raise a `UserError` for incompatible ones.

        Called after every `check`, before anything is built, and again when a run is resumed. Ask the others for their
        `traits`, not for their class: see `refuse_trait`.
        """

    def setup(self, learner: Learner) -> None:
        """Called once, before the first step of a new or resumed run."""

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Called before the first step of a stage."""

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """Change the stage to be trained, for example by adding examples, if the stream shows boundaries.

        Called after `begin`, and again if a run is resumed within the stage: the result must depend on the state alone.
        `learn` sees the changed stage; `begin` and `end` see the stream's own.
        """
        return stage

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """Choose the examples to learn from, by id, before their tensors are fetched."""
        return batch

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """A term to add to the loss, given the model's output for each part of the batch; None adds nothing.

        It is averaged over the ranks: see `Learner.share` for sums over this rank's rows. With `train.accumulate` it is
        computed for each piece of the batch and weighted by the piece's share: see `refuse_accumulation` if that would
        not give the same result.
        """
        raise AssertionError("called only if it is overridden")

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Change the gradients in place; they are already averaged over the ranks. The batch has only its ids."""

    def after(self, learner: Learner, batch: Batch) -> None:
        """Called after the optimiser's step, with the ids of the new examples only."""

    def end(self, learner: Learner, stage: Stage) -> None:
        """Called after the last step of a stage, before it is evaluated."""

    def passes(self, learner: Learner, stage: Stage) -> Sequence[tuple[Ids, int]]:
        """Examples beside the stage's own that it passes through the model, and about how often in a run.

        What is frozen is computed once for them as well, if that pays.
        """
        return ()

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Train a stage; by default, with one fit.

        If a run is killed inside this method, resuming calls it again, after `load_state_dict`: keep its progress in
        the state, and the first `fit` continues from the step that was saved.
        """
        fit()

    def observe(self, learner: Learner, stage: Stage, batches: Iterator[Batch]) -> None:
        """Look at each example of a stage once more, in evaluation mode and without gradients, after it was trained.

        Each batch has this rank's rows (padding rows have weight 0). Sum what you need in local variables, add them up
        over the ranks with `learner.ranks.sum`, and change the state only after the last batch: a run that is
        interrupted begins the pass again. Called on streams without boundaries as well, for their only stage.
        """

    def route(self, learner: Learner, inputs: Mapping[str, Tensor], head: str, answer: Answer) -> Tensor:
        """The outputs of a head in evaluation mode: what decides the scores.

        `answer(inputs, head)` returns the answer of the algorithms after this one and, after the last, of the network.
        `learner.model.features(inputs)` is the encoder's output.
        """
        return answer(inputs, head)

    def memory_bytes(self, learner: Learner) -> int:
        """The size in bytes of everything kept beside the model: examples at their stored size, and tensors."""
        return 0

    def state_dict(self) -> dict[str, Any]:
        """The state for resuming a run: numbers, strings, lists, dicts, arrays and tensors; no pickled objects."""
        return {}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state; called after `setup`, before the weights are restored."""


def check_traits(algorithm: Algorithm) -> None:
    """Raise a UserError, before training, for an unknown trait, which would otherwise be ignored silently."""
    for trait in sorted(algorithm.traits - TRAITS.keys()):
        raise UserError(f"{algorithm} declares the trait {trait!r}, which does not exist: {nearest(trait, TRAITS)}")


def refuse_trait(algorithm: Algorithm, others: Iterable[Algorithm], trait: str, why: str, instead: str = "") -> None:
    """Raise a UserError, before training, if any other algorithm has a trait.

    The message says `why`, after the name of the algorithm that refuses, and which settings would let both stay:
    `instead`, and the other's remedy.
    """
    for other in others:
        if other is not algorithm and trait in other.traits:
            ways = [instead, other.remedies.get(trait, ""), "leave one of the two out"]
            raise UserError(f"{algorithm} {why}, and {other} {TRAITS[trait]}: {', or '.join(filter(None, ways))}")


def refuse_accumulation(name: str, stream: Stream) -> None:
    """Raise a UserError, before training, if batches would be split although the loss is not a mean over examples."""
    if any(stage.training.accumulate > 1 for stage in stream.stages):
        raise UserError(
            f"{name} needs each batch as a whole, but train.accumulate splits it into pieces: set train.accumulate=1"
        )


def overridden(algorithms: list[Algorithm], hook: str) -> list[Algorithm]:
    """The algorithms that override a hook, so that the loop calls no others."""
    return [algorithm for algorithm in algorithms if overrides(algorithm, hook)]


def passes(algorithms: Iterable[Algorithm], learner: Learner, stage: Stage) -> list[tuple[Ids, int]]:
    """The examples beside a stage's own that any of the algorithms passes through the model."""
    return [each for algorithm in algorithms for each in algorithm.passes(learner, stage)]


def overrides(algorithm: Algorithm, hook: str) -> bool:
    """Whether an algorithm overrides a hook."""
    return getattr(type(algorithm), hook) is not getattr(Algorithm, hook)
