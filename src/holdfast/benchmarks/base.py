"""The base of every benchmark: data, tasks, a stream, a protocol, and measures computed from the scores."""

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
    """How a measure is shown: its title, whether more is better, and the factor for printing (100 for percent)."""

    title: str
    higher: bool | None = None
    """Whether more is better. None: unknown, so reports show no arrow and mark nothing."""
    factor: float = 100.0
    decimals: int = 1
    pooled: str = ""
    """For a share pooled over tasks (see `metrics.pooling`): the score of which a task's share is taken."""
    asked: str = ""
    """The option that requests the runs to compare with, such as --downstream; empty if no option is needed."""
    mean_of: tuple[str, ...] = ()
    """Patterns of the evaluation sets whose mean score this is: guessing scores at most the mean of their chance
    levels."""
    relies_on: str = ""
    """The mean score that must be above chance for a mark here: a model that learned nothing forgets nothing."""

    @property
    def head(self) -> str:
        """The title with an arrow towards better values, if the direction is known.

        >>> Measure("BLEU-1", higher=True).head, Measure("PPL", higher=False).head, Measure("mine").head
        ('BLEU-1 ↑', 'PPL ↓', 'mine')
        """
        return headed(self.title, self.higher)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values for a record: everything that differs from the defaults.

        >>> Measure("BLEU-1", higher=True, decimals=2).to_json()
        {'title': 'BLEU-1', 'higher': True, 'decimals': 2}
        """
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        default = {each.name: each.default for each in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in found.items() if v != default[n]}

    @staticmethod
    def from_json(value: Any) -> Measure:
        """Parse the JSON values; raises a TypeError if they are invalid."""
        kinds = {"higher": bool | None, "factor": int | float, "decimals": int, "mean_of": list}
        if not isinstance(value, dict) or not all(isinstance(v, kinds.get(n, str)) for n, v in value.items()):
            raise TypeError("not the description of a measure")
        given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        found = Measure(**given)
        if not (
            abs(found.factor) < 1e9 and 0 <= found.decimals <= 12 and all(isinstance(n, str) for n in found.mean_of)
        ):
            raise TypeError("not the description of a measure")
        return found


def headed(title: str, higher: bool | None) -> str:
    """A column's head: the title with an arrow towards better values, if the direction is known."""
    return title if higher is None else f"{title} {'↑' if higher else '↓'}"


@dataclass(frozen=True)
class Need:
    """Another run that a measure compares with, as the difference of its request from this run's own.

    `change` replaces fields of the request: algorithm, order, benchmark, setting, settings, model. With another
    algorithm, the settings of algorithms are dropped; with another benchmark, also the benchmark's settings, setting
    and order. If `settings` is given, it replaces all settings but the model's, to which it may add.
    """

    change: Mapping[str, Any]
    after: int | None = None
    """None: it is independent. n: it starts from the weights of this run after stage n, and so comes after this run."""
    stage: int = 1
    """The stage of this run for which it is needed: if only earlier ones are learned, it is not needed."""


@dataclass(frozen=True)
class Setup:
    """A benchmark that is set up: what a run needs from it, and the form in which a model receives its examples."""

    data: Data
    tasks: Mapping[str, Task]
    stream: Stream
    protocol: Protocol
    inputs: Inputs
    chance: Mapping[str, float] = field(default_factory=dict)
    """The score of guessing on each evaluation set, if that is of interest."""
    problems: tuple[str, ...] = ()
    """A message for each bad record that was skipped."""
    finish: Callable[[Learner, Stream, int], Sequence[tuple[Score, Array]]] | None = None
    """Computes the final scores after the last stage: from the learner, the stream as it was learned and
    the number of steps, it gives scores, each with the values behind it."""
    whole: object = None
    """The data from which `narrow` takes its part, if a benchmark is set up for several."""
    keep_stages: bool = False
    """Whether the weights at the end of each stage are kept in the store, for runs that start from them."""


USUAL = {
    "final_accuracy": Measure("final acc.", higher=True, mean_of=("*",)),
    "learning_accuracy": Measure("learning acc.", higher=True, mean_of=("*",)),
    "forgetting": Measure("forgetting", higher=False, relies_on="final_accuracy"),
    "backward_transfer": Measure("BWT", higher=True, relies_on="final_accuracy"),
}
"""The usual measures of the field, on the whole score matrix."""


class Benchmark(ABC):
    """A benchmark with its settings as fields; `seed` is the run's, for random draws."""

    default_model: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, Measure]] = USUAL
    """How each measure from `summary` and `relative` is shown. A record keeps this, so that tables and reports of
    a store need no code of the benchmark."""
    brings_data: ClassVar[bool] = True
    """Whether it has its own data, synthetic or drawn, if a user gives none."""
    former: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Values of settings that earlier versions accepted, and what they are called now, by the full name of the setting:
    the commands of old records remain valid."""
    retests: ClassVar[frozenset[str]] = frozenset()
    """Settings that only affect the tests at the end of a run (`Setup.finish`), which can be repeated. Runs
    of such a benchmark keep the state in which their training ended."""
    places: ClassVar[frozenset[str]] = frozenset({"data", "skip_bad", "features"})
    """Settings for the location of data, not its content: a run's id has the data's fingerprint in their place."""

    def model(self, algorithm: str = "finetune") -> str:
        """The name of the default model for an algorithm (its row's name)."""
        if not self.default_model:
            raise UserError(f"{type(self).__name__} has no model of its own: give --model, or set its default_model")
        return self.default_model

    def preset(self, model: str, algorithm: str) -> Mapping[str, Any]:
        """The default settings of a run with this model and algorithm (its row's name)."""
        return {}

    def reads(self) -> Collection[str]:
        """The names of the datasets that it reads; a run's id covers the versions of their readers."""
        return ()

    def needs(self, title: str) -> Mapping[str, Need]:
        """The other runs that the measures of a run need, by the benchmark's own names; `title` is the run's row."""
        return {}

    def joined(self, others: Sequence[Benchmark]) -> Benchmark:
        """The benchmark to set up for this one and others of its kind, all of one plan: its own by default.

        If benchmarks share data, for example in different orders, the data is set up once for all of them, and `narrow`
        takes the part of each.
        """
        return self

    def narrow(self, setup: Setup) -> Setup:
        """Take the part of this benchmark from the set-up of `joined`."""
        return setup

    def check(self, wants: Wants) -> None:  # noqa: B027
        """Raise a UserError if this cannot be set up, as far as settings and the names of files show it.

        `holdfast plan --dry-run` asks every run, so no data is made, and at most the first example of a split is read.
        """

    def first(self, stages: int) -> Collection[str] | None:
        """The names of the evaluation sets that count if only the first `stages` stages are learned; None for all."""
        return None

    @abstractmethod
    def setup(self, wants: Wants) -> Setup:
        """Read or generate the data, if possible in the form that the model prefers; lay out stream and protocol."""

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The benchmark's measures from a score log; an undefined measure is a NaN with a reason.

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
        """The measures computed from a score log and those of the runs that it needs, by the names from `needs`.

        `others` contains only finished runs; a run that needs itself is among them. See `absent`.
        """
        return {}

    @staticmethod
    def shares(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> Mapping[str, Shares]:
        """What each task contributes to the measures pooled over tasks, as far as the other runs are available."""
        return {}


def absent(name: str) -> Undefined:
    """A measure without a value, because the run to compare with is missing.

    >>> absent("cumulative").reason
    "the run 'cumulative' is missing"
    """
    return Undefined(f"the run {name!r} is missing")


def score_matrix(
    scores: Sequence[Score], split: str = "test"
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """The names of the evaluation sets, their scores before training, and one row of scores after each stage.

    >>> log = [Score(0, 0, "a", "test", 9, 0.5), Score(1, 7, "a", "test", 9, 0.75)]
    >>> score_matrix(log)
    (['a'], array([0.5]), array([[0.75]]))
    """
    scores = [s for s in scores if "/" not in s.name]  # a name with a `/` is a part of another score
    names = list(dict.fromkeys(s.name for s in scores if s.split == split))
    stages = max((s.stage for s in scores), default=0)
    rows = np.full((stages + 1, len(names)), np.nan)
    # The first score after a stage is from its end; later ones are from within the next stage.
    for score in sorted((s for s in scores if s.split == split), key=lambda s: -s.step):
        if score.stage or not score.step:
            rows[score.stage, names.index(score.name)] = score.score
    return names, rows[0], rows[1:]
