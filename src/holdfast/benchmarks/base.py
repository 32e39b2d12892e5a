"""What every benchmark gives: data, tasks, a stream, a protocol, and the measures that follow from the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.types import Array, Inputs, Protocol, Score, Stream, Task, Wants

if TYPE_CHECKING:
    from holdfast.data.table import Data
    from holdfast.engine.learner import Learner


@dataclass(frozen=True)
class Measure:
    """How a measure is shown: its title, whether more is better, and the factor for print (100 for percent)."""

    title: str
    higher: bool = True
    factor: float = 100.0


@dataclass(frozen=True)
class Setup:
    """A benchmark made ready: what a run needs of it, and what its examples look like to a model."""

    data: Data
    tasks: Mapping[str, Task]
    stream: Stream
    protocol: Protocol
    inputs: Inputs
    chance: Mapping[str, float] = field(default_factory=dict)
    """What guessing scores on each evaluation set, where that is worth a word."""
    problems: tuple[str, ...] = ()
    """A sentence on each bad record that was left out."""
    finish: Callable[[Learner, int, int], Sequence[tuple[Score, Array]]] | None = None
    """What is still to be scored once the last stage is learned: given the learner, the stages and the steps so far, it
    gives scores and what is behind each of them."""


class Benchmark(ABC):
    """A benchmark with its settings as fields; `seed` is the run's, for what a benchmark draws at random."""

    default_model: ClassVar[str]
    reference: ClassVar[str] = ""
    """The transform of the stream whose run some measures of the other runs are taken against."""
    places: ClassVar[frozenset[str]] = frozenset({"data", "skip_bad", "features"})
    """Settings that say where data lies, not what it is: in a run's id, the data's fingerprint stands for them."""

    def model(self) -> str:
        """The name of the model where a user names none."""
        return self.default_model

    @abstractmethod
    def setup(self, wants: Wants) -> Setup:
        """Read or make the data, as far as can be as the model wants it, and lay out stream and protocol."""

    @staticmethod
    @abstractmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The benchmark's measures from a score log; one that is undefined is a NaN with a reason."""

    @staticmethod
    def relative(scores: Sequence[Score], reference: Sequence[Score]) -> dict[str, float]:
        """The measures that follow from a score log and that of the reference's run, where a benchmark has such."""
        return {}


def score_matrix(
    scores: Sequence[Score], split: str = "test"
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """The names of the evaluation sets, their scores before training, and one row of scores after each stage.

    >>> log = [Score(0, 0, "a", "test", 9, 0.5), Score(1, 7, "a", "test", 9, 0.75)]
    >>> score_matrix(log)
    (['a'], array([0.5]), array([[0.75]]))
    """
    names = list(dict.fromkeys(s.name for s in scores if s.split == split))
    stages = max((s.stage for s in scores), default=0)
    rows = np.full((stages + 1, len(names)), np.nan)
    # The first score after a stage is the one taken at its end; later ones were taken within the next stage.
    for score in sorted((s for s in scores if s.split == split), key=lambda s: -s.step):
        if score.stage or not score.step:
            rows[score.stage, names.index(score.name)] = score.score
    return names, rows[0], rows[1:]
