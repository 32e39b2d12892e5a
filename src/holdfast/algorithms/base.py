"""The hooks of an algorithm, and the one rule by which each combines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor

from holdfast.errors import UserError, nearest
from holdfast.types import Batch, Stage, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.engine.learner import Learner


TRAITS: Mapping[str, str] = {
    "weight-penalty": "adds nothing but a penalty on the weights, in `grads`, to gradients that are whole by then",
    "extra-steps": "takes optimiser steps of its own, beside the one for each batch",
    "several-fits": "fits a stage several times and keeps one of the results",
    "encoder-per-stage": "keeps an encoder, or parts of one, for each stage",
    "encoder-per-head": "gives each head an encoder, or parts of one, of its own",
    "adds-to-blocks": "adds modules to the transformer blocks",
}
"""What an algorithm can say about itself, so that others can tell whether the two go together: after its name, in
messages."""


class Fit(Protocol):
    """Trains the current stage, as the loop would.

    `start` runs just before the first step, and not again where a resumed run is already past it: what must happen
    once for each fit (restoring weights, choosing a path) belongs there.
    """

    def __call__(self, start: Callable[[], None] | None = None) -> None:
        """Train the stage."""


class Algorithm:
    """What changes about plain fine-tuning, as hooks. A run takes a list of algorithms; list order is execution order.

    | hook              | combines by                 | for                                      |
    |-------------------|-----------------------------|------------------------------------------|
    | check, beside     | each in order               | refusing what cannot be served           |
    | setup, begin, end | each in order               | freezing, adapters, Fisher, teachers     |
    | stage             | chain                       | rehearsal                                |
    | batch             | chain                       | replay                                   |
    | loss              | sum                         | penalties, distillation                  |
    | grads             | chain                       | projections                              |
    | after             | each (sees new data only)   | memory, separate replay steps            |
    | learn             | nesting, the first outermost| procedures of several fits               |

    `setup` builds all structure, for every stage to come. `begin` and `end` are called only where the stream shows
    boundaries, and an algorithm with "boundaries" in `needs` is refused where it does not. A resumed run calls
    `setup`, then `load_state_dict`, and not `begin` again: what `begin` computed must be in the state. What is
    trainable, and the weights, are the learner's state, not the algorithm's.

    `setup`, `begin`, `end` and `batch` may draw random numbers from torch's global generator, which the loop seeds by
    where the run stands, alike on every rank; the other hooks, from a generator of their own, whose state they save.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    instead: ClassVar[Mapping[str, str]] = {}
    """A setting that, where a user gives it, takes the place of another that a benchmark has set."""
    strengths: ClassVar[tuple[str, ...]] = ()
    """The settings that weigh what it adds to the loss or its gradient: where a run diverges, the error names them."""
    traits: frozenset[str] = frozenset()
    """What other algorithms of a run need to know about it: names from `TRAITS`. Declare them in the class, or in
    `__post_init__` where they depend on settings."""
    remedies: ClassVar[Mapping[str, str]] = {}
    """Which setting does without a trait, for messages: `{"extra-steps": "set replay.mode=joint"}`."""
    recordable: ClassVar[bool] = False
    """Whether `loss` follows from the tensors of the batch alone: see `engine/stepper.py`. No subclass inherits it."""
    called: str = ""
    """The name that a run asked for, for messages."""

    def __str__(self) -> str:
        return self.called or type(self).__name__

    def uses(self) -> tuple[type, ...]:
        """The kinds of memory and the other algorithms that it makes: a run's id covers their versions as well."""
        return ()

    def check(self, stream: Stream) -> None:
        """Refuse, with a `UserError`, a stream that it cannot serve: before anything is built."""

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """See all algorithms of the run, itself included, in order; refuse, with a `UserError`, what it cannot go with.

        Called after every `check`, before anything is built, and again where a run is resumed. Ask the others for
        their `traits`, not for their class: see `refuse_trait`.
        """

    def setup(self, learner: Learner) -> None:
        """Once, before the first step of a run or of its resumption."""

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Before the first step of a stage."""

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """The stage as it is trained, where the stream shows boundaries: with other examples, say.

        Called after `begin`, and again where a run is resumed within the stage: it must follow from the state alone.
        `learn` sees the changed stage; `begin` and `end` see the stream's own.
        """
        return stage

    def batch(self, learner: Learner, batch: Batch) -> Batch:
        """Which examples to learn from: by id, before their tensors are fetched."""
        return batch

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """An addition to the loss, given the model's output for each part of the batch; None adds nothing.

        It is averaged over the ranks: see `Learner.share` for what is summed over this rank's rows. With
        `train.accumulate` it is asked for each piece of the batch, and weighed by the piece's share: see
        `refuse_accumulation` where that is not the same.
        """
        raise AssertionError("called only where it is overridden")

    def grads(self, learner: Learner, batch: Batch) -> None:
        """Change the gradients in place; they are already averaged over the ranks. Of the batch, it sees the ids."""

    def after(self, learner: Learner, batch: Batch) -> None:
        """After the optimiser's step, with the ids of the new examples only."""

    def end(self, learner: Learner, stage: Stage) -> None:
        """After the last step of a stage, before it is evaluated."""

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """The procedure of a stage: one fit.

        A run that is killed inside calls it again on resuming, after `load_state_dict`: keep in the state how far
        it came, and the first `fit` goes on from the step that was saved.
        """
        fit()

    def memory_bytes(self, learner: Learner) -> int:
        """What it keeps beside the model, in bytes: examples at their stored size, and tensors."""
        return 0

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs: numbers, strings, lists, dicts, arrays and tensors; never a pickled object."""
        return {}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Go on from a saved state; called after `setup`, before the weights are restored."""


def check_traits(algorithm: Algorithm) -> None:
    """Refuse, before training, a trait that no rule knows: it would be passed over in silence."""
    for trait in sorted(algorithm.traits - TRAITS.keys()):
        raise UserError(f"{algorithm} declares the trait {trait!r}, which does not exist: {nearest(trait, TRAITS)}")


def refuse_trait(algorithm: Algorithm, others: Iterable[Algorithm], trait: str, why: str, instead: str = "") -> None:
    """Refuse, before training, any other algorithm that has a trait.

    The message says `why`, after the name of the algorithm that refuses, and by which settings both can stay:
    `instead`, and the other's remedy.
    """
    for other in others:
        if other is not algorithm and trait in other.traits:
            ways = [instead, other.remedies.get(trait, ""), "leave one of the two out"]
            raise UserError(f"{algorithm} {why}, and {other} {TRAITS[trait]}: {', or '.join(filter(None, ways))}")


def refuse_accumulation(name: str, stream: Stream) -> None:
    """Refuse, before training, to be asked by pieces: for a loss that is no mean over examples, each for itself."""
    if any(stage.training.accumulate > 1 for stage in stream.stages):
        raise UserError(
            f"{name} looks at a batch as a whole, and train.accumulate takes it in pieces: set train.accumulate=1"
        )


def overridden(algorithms: list[Algorithm], hook: str) -> list[Algorithm]:
    """The algorithms that say something at a hook, so that the loop asks no other."""
    return [algorithm for algorithm in algorithms if overrides(algorithm, hook)]


def overrides(algorithm: Algorithm, hook: str) -> bool:
    """Whether an algorithm says something at a hook."""
    return getattr(type(algorithm), hook) is not getattr(Algorithm, hook)
