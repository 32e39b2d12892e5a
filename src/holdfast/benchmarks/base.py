"""What every benchmark gives: data, tasks, a stream, a protocol, and the measures that follow from the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast import metrics
from holdfast.errors import UserError
from holdfast.metrics import Undefined
from holdfast.metrics.pooling import Shares
from holdfast.types import Array, Inputs, Protocol, Score, Stream, Task, Wants

if TYPE_CHECKING:
    from holdfast.data.table import Data
    from holdfast.engine.learner import Learner


@dataclass(frozen=True)
class Measure:
    """How a measure is shown: its title, whether more is better, and the factor for print (100 for percent)."""

    title: str
    higher: bool | None = None
    """Whether more is better. None: unknown, so reports show no arrow and mark nothing."""
    factor: float = 100.0
    decimals: int = 1
    pooled: str = ""
    """Where it is a share pooled over tasks (see `metrics.pooling`): the score that a task's share is taken of."""
    asked: str = ""
    """What asks for the other runs that it is taken against, as --downstream does; empty: every record has it."""
    mean_of: tuple[str, ...] = ()
    """Patterns of the evaluation sets whose mean score this is: guessing scores at most the mean of their chances."""
    relies_on: str = ""
    """The mean score that must be above chance for a mark here: a model that learned nothing forgets nothing."""

    @property
    def head(self) -> str:
        """The title with an arrow towards the better values, where the direction is known.

        >>> Measure("BLEU-1", higher=True).head, Measure("PPL", higher=False).head, Measure("mine").head
        ('BLEU-1 ↑', 'PPL ↓', 'mine')
        """
        return headed(self.title, self.higher)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as a record keeps them: what is not as it is by default.

        >>> Measure("BLEU-1", higher=True, decimals=2).to_json()
        {'title': 'BLEU-1', 'higher': True, 'decimals': 2}
        """
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        default = {each.name: each.default for each in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in found.items() if v != default[n]}

    @staticmethod
    def from_json(value: Any) -> Measure:
        """Read it again; TypeError where it is no such thing."""
        kinds = {"higher": bool | None, "factor": int | float, "decimals": int, "mean_of": list}
        if not isinstance(value, dict) or not all(isinstance(v, kinds.get(n, str)) for n, v in value.items()):
            raise TypeError("no description of a measure")
        given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        found = Measure(**given)
        if not (
            abs(found.factor) < 1e9 and 0 <= found.decimals <= 12 and all(isinstance(n, str) for n in found.mean_of)
        ):
            raise TypeError("no description of a measure")
        return found


def headed(title: str, higher: bool | None) -> str:
    """A column's head: the title with an arrow towards the better values, where the direction is known."""
    return title if higher is None else f"{title} {'↑' if higher else '↓'}"


@dataclass(frozen=True)
class Need:
    """Another run that a measure is taken against: how its request differs from this run's own.

    `change` replaces fields of the request: algorithm, order, benchmark, setting, settings, model. With another
    algorithm, the settings of algorithms are dropped; with another benchmark, also the benchmark's settings, setting
    and order. Where `settings` is given, it replaces all settings but the model's, which it may add to.
    """

    change: Mapping[str, Any]
    after: int | None = None
    """None: it stands alone. n: it begins with the weights of this run after stage n, and so comes after this run."""
    stage: int = 1
    """The stage of this run that it is needed for: where only earlier ones are learned, it is not needed."""


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
    finish: Callable[[Learner, Stream, int], Sequence[tuple[Score, Array]]] | None = None
    """What is still to be scored once the last stage is learned: given the learner, the stream as it was learned and
    the number of steps, it gives scores and what is behind each of them."""
    whole: object = None
    """What `narrow` takes its part from, where a benchmark is set up for several."""
    keep_stages: bool = False
    """Whether the weights at the end of each stage stay in the store, for runs that begin with them."""


USUAL = {
    "final_accuracy": Measure("final acc.", higher=True, mean_of=("*",)),
    "learning_accuracy": Measure("learning acc.", higher=True, mean_of=("*",)),
    "forgetting": Measure("forgetting", higher=False, relies_on="final_accuracy"),
    "backward_transfer": Measure("BWT", higher=True, relies_on="final_accuracy"),
}
"""The field's usual measures, on the whole score matrix."""


class Benchmark(ABC):
    """A benchmark with its settings as fields; `seed` is the run's, for what a benchmark draws at random."""

    default_model: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, Measure]] = USUAL
    """How each measure that `summary` and `relative` give is shown. A record keeps this, so that tables and reports of
    a store need no code of the benchmark."""
    brings_data: ClassVar[bool] = True
    """Whether it has data, the world's or drawn, where a user gives none."""
    retests: ClassVar[frozenset[str]] = frozenset()
    """Settings that act on nothing but the tests at the end of a run (`Setup.finish`): these can be taken again. Runs
    of such a benchmark keep the state in which their training ended."""
    places: ClassVar[frozenset[str]] = frozenset({"data", "skip_bad", "features"})
    """Settings that say where data lies, not what it is: in a run's id, the data's fingerprint stands for them."""

    def model(self, algorithm: str = "finetune") -> str:
        """The name of the model where a user names none, for an algorithm by its row's name."""
        if not self.default_model:
            raise UserError(f"{type(self).__name__} has no model of its own: give --model, or set its default_model")
        return self.default_model

    def preset(self, model: str, algorithm: str) -> Mapping[str, Any]:
        """Settings of a run with this model and algorithm (its row's name), where a user sets nothing else."""
        return {}

    def reads(self) -> Collection[str]:
        """The names of the datasets that it reads, whose readers' versions a run's id covers."""
        return ()

    def needs(self, title: str) -> Mapping[str, Need]:
        """The other runs that the measures of a run need, by names of the benchmark's own; `title` is the run's row."""
        return {}

    def joined(self, others: Sequence[Benchmark]) -> Benchmark:
        """The benchmark to set up for this one and others of its kind, all of one plan: its own by default.

        A benchmark that shares data with others over another order, say, is set up once for all of them, and `narrow`
        takes each one's part.
        """
        return self

    def narrow(self, setup: Setup) -> Setup:
        """Take the part of this benchmark from the set-up of `joined`."""
        return setup

    def first(self, stages: int) -> Collection[str] | None:
        """The names of the evaluation sets that count where only so many stages, the first, are learned; None: all."""
        return None

    @abstractmethod
    def setup(self, wants: Wants) -> Setup:
        """Read or make the data, as far as can be as the model wants it, and lay out stream and protocol."""

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The benchmark's measures from a score log; one that is undefined is a NaN with a reason.

        By default these are the usual ones; all but the final accuracy need one stage for each evaluation set.
        """
        _, _, matrix = score_matrix(scores)
        found = {"final_accuracy": metrics.mean(matrix[-1])}
        if matrix.shape[0] != matrix.shape[1]:
            reason = f"needs one stage for each task, but there are {matrix.shape[0]} for {matrix.shape[1]}"
            return found | {name: Undefined(reason) for name in USUAL if name not in found}
        return found | {
            "learning_accuracy": metrics.learning_accuracy(matrix),
            "forgetting": metrics.forgetting(matrix),
            "backward_transfer": metrics.backward_transfer(matrix, final=True),
        }

    @staticmethod
    def relative(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> dict[str, float]:
        """The measures that follow from a score log and those of the runs it needs, by the names that `needs` gave.

        Only runs that are done are among `others`; a run that is what it needs finds itself there. See `absent`.
        """
        return {}

    @staticmethod
    def shares(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> Mapping[str, Shares]:
        """What each task adds to the measures that are pooled over tasks, as far as the other runs are there."""
        return {}


def absent(name: str) -> Undefined:
    """A measure without a value, because the run that it is taken against is not there.

    >>> absent("cumulative").reason
    "the run 'cumulative' is not there"
    """
    return Undefined(f"the run {name!r} is not there")


def score_matrix(
    scores: Sequence[Score], split: str = "test"
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """The names of the evaluation sets, their scores before training, and one row of scores after each stage.

    >>> log = [Score(0, 0, "a", "test", 9, 0.5), Score(1, 7, "a", "test", 9, 0.75)]
    >>> score_matrix(log)
    (['a'], array([0.5]), array([[0.75]]))
    """
    scores = [s for s in scores if "/" not in s.name]  # a name with a `/` is a detail of another score
    names = list(dict.fromkeys(s.name for s in scores if s.split == split))
    stages = max((s.stage for s in scores), default=0)
    rows = np.full((stages + 1, len(names)), np.nan)
    # The first score after a stage is the one taken at its end; later ones were taken within the next stage.
    for score in sorted((s for s in scores if s.split == split), key=lambda s: -s.step):
        if score.stage or not score.step:
            rows[score.stage, names.index(score.name)] = score.score
    return names, rows[0], rows[1:]
