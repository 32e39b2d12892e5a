"""What every benchmark gives: data, tasks, a stream, a protocol, and the measures that follow from the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.types import Inputs, Protocol, Score, Stream, Task, Wants

if TYPE_CHECKING:
    from holdfast.data.table import Data


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


class Benchmark(ABC):
    """A benchmark with its settings as fields; `seed` is the run's, for what a benchmark draws at random."""

    default_model: ClassVar[str]

    @abstractmethod
    def setup(self, wants: Wants) -> Setup:
        """Read or make the data, as far as can be as the model wants it, and lay out stream and protocol."""

    @staticmethod
    @abstractmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The benchmark's measures from a score log; one that is undefined is a NaN with a reason."""


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
