"""How a budget is spent: evenly along the stream, as if examples arrived at a steady rate and did not wait."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.algorithms.base import TRAITS, Algorithm
from holdfast.engine.learner import Learner
from holdfast.errors import UserError
from holdfast.types import Budget, Stage, Stream

ROUNDING = 1e-9


def batches(stage: Stage) -> int:
    """The number of steps in one epoch; the last batch may be smaller."""
    return -(-len(stage.train) // stage.training.batch_size)


def refuse_budget(budget: Budget | None, algorithms: Sequence[Algorithm]) -> None:
    """Raise a UserError for algorithms that fit a stage several times: the first fit would spend its whole share."""
    for algorithm in algorithms if budget is not None else ():
        if "several-fits" in algorithm.traits:
            raise UserError(
                f"{algorithm} {TRAITS['several-fits']}, so a budget cannot be spread over its steps: "
                f"leave out --budget, or {algorithm}"
            )


def kept_bytes(learner: Learner, algorithms: Sequence[Algorithm]) -> int:
    """The bytes kept beside the model's initial weights: by the algorithms, and in the weights that they added."""
    return sum(algorithm.memory_bytes(learner) for algorithm in algorithms) + learner.added_bytes()


class Pace:
    """Decides which steps a run can afford.

    Each time an example of the stream arrives, it contributes its share of the budget. A step is skipped if, at the
    mean cost of an example so far, it would spend more than has been contributed. So training ends when the budget is
    spent, all of the stream is seen, and the learning rate follows the same schedule whatever the algorithm.
    """

    def __init__(self, budget: Budget, stream: Stream, learner: Learner) -> None:
        self._budget, self._learner = budget, learner
        examples = [len(stage.train) * stage.training.epochs for stage in stream.stages]
        self._starts = [sum(examples[:number]) / max(sum(examples), 1) for number in range(len(examples) + 1)]

    def full(self, algorithms: Sequence[Algorithm]) -> bool:
        """Whether more is kept than the budget allows."""
        return self._budget.bytes is not None and kept_bytes(self._learner, algorithms) > self._budget.bytes

    def affords(self, stage: int, along: float, learned: int, new: int) -> bool:
        """Whether a step with `new` new examples may be taken, after which a share `along` of the stage is done.

        So far, the run has learned from `learned` new examples.
        """
        budget, learner = self._budget, self._learner
        first, last = self._starts[stage : stage + 2]
        share = first + (last - first) * along
        passes = learner.examples_forward + learner.examples_backward
        return not learned or all(
            limit is None or own * (learned + new) / learned <= limit * share * (1 + ROUNDING)
            for own, limit in ((learner.counter.flops, budget.flops), (passes, budget.passes))
        )
