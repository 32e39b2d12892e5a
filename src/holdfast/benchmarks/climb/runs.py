"""Records of CLiMB's runs, found by their properties: model, algorithm, order, few-shot examples and start."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from holdfast import metrics
from holdfast.benchmarks.base import score_matrix
from holdfast.benchmarks.climb.protocol import DIRECT, unclear
from holdfast.benchmarks.climb.transfer import LowShotRun, final, tested
from holdfast.benchmarks.versions import mixed
from holdfast.errors import UserError
from holdfast.types import Score

T = TypeVar("T")

NAMES = {"finetune": "seqft", "replay": "er"}
"""The paper's names of algorithms, if they differ from this library's."""
ROWS = ("seqft", "frozen-encoder", "frozen-bottom-9", "er", "ewc", "adapters")
"""The paper's algorithms, in the order of its tables."""

UNSEEN = "Transfer is measured against the runs that a run's own record names, not all of which are shown."


class RecordView(Protocol):
    """The parts of a record that are read."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def config(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def environment(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def scores(self) -> Sequence[Score]: ...  # noqa: D102
    @property
    def chance(self) -> Mapping[str, float]: ...  # noqa: D102
    @property
    def cost(self) -> Mapping[str, float]: ...  # noqa: D102
    @property
    def others(self) -> Mapping[str, str]: ...  # noqa: D102


@dataclass(frozen=True)
class Upstream:
    """A run over upstream tasks; an order of one task with `seqft` is direct fine-tuning."""

    id: str
    model: str
    algorithm: str
    order: str
    seed: int
    scores: Sequence[Score]
    trained: float | None = None
    """The share of its parameters that it trained, if the record has it."""
    others: Mapping[str, str] = field(default_factory=dict)
    """The ids of the runs that its measures are relative to, if the record names them."""

    def score(self, task: str, stage: int) -> float:
        """The score on a task after a stage, counted from 0."""
        names, _, matrix = score_matrix(self.scores)
        return float(matrix[stage, names.index(task)])


@dataclass(frozen=True)
class LowShotRecord:
    """A low-shot run; `start` is the upstream run and the stage from which it started, or empty."""

    id: str
    model: str
    task: str
    shots: str
    sample: int
    seed: int
    start: str
    image: str
    reallocate: bool
    chance: float
    scores: Sequence[Score]

    @property
    def draw(self) -> tuple[int, str, int]:
        """The few examples it learned, and their order: the same for runs that are compared in pairs."""
        return self.seed, self.shots, self.sample

    def shows(self, image: str, reallocate: bool) -> bool:
        """Whether its texts come with this kind of image."""
        return (self.image, self.reallocate) == (image, reallocate)


DRAWN = 3
"""The minimum number of runs whose interval a figure shows."""


def low_shot_transfer(after: Sequence[LowShotRecord], direct: Sequence[LowShotRecord]) -> float:
    """T_LS in percent, from the means of both; undefined if the direct runs are not clearly above chance."""
    score, base = (metrics.mean([final(each.scores) for each in runs]) for runs in (after, direct))
    doubt = unclear([base], [tested(direct[0].scores)], direct[0].chance)
    return doubt or metrics.low_shot_transfer(score, base, direct[0].chance)


def low_shot_interval(after: Sequence[LowShotRecord], direct: Sequence[LowShotRecord]) -> float | None:
    """The half-width of T_LS's 95 % interval, in percent; None if it is undefined or based on one pair of runs.

    With r = (S - R) / (D - R) the ratio of two means, T_LS = 100 (r - 1), and its error is, to first order, the mean of
    (s - R) - r (d - R) over pairs of runs of one seed and sub-sample, divided by D - R (Cochran, 1977, section 2.11).
    """
    bases = {each.draw: final(each.scores) for each in direct}
    pairs = [(final(each.scores), bases[each.draw]) for each in after if each.draw in bases]
    transfer, chance = low_shot_transfer(after, direct), direct[0].chance
    if len(pairs) < max(2, len(after)) or transfer != transfer:
        return None
    ratio, base = 1 + transfer / 100, metrics.mean([d for _, d in pairs]) - chance
    return 100 * metrics.t_interval([(s - chance) - ratio * (d - chance) for s, d in pairs]) / base


def mean_and_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean of some values, and the half-width of its 95 % interval, for a figure.

    Two values have an interval twelve times as wide as their deviation, which would hide everything else in a figure.

    >>> mean_and_interval([1.0, 2.0, 3.0])
    (2.0, 2.484...)
    >>> mean_and_interval([1.0, 2.0]), mean_and_interval([])
    ((1.5, None), (None, None))
    """
    if not values:
        return None, None
    return metrics.mean(values), metrics.t_interval(values) if len(values) >= DRAWN else None


class RunsAtScale:
    """The runs of a store at one scale: by default, the scale with the most runs.

    Of runs that differ in more than their seed, the configuration with the most seeds is used, and a note says so. The
    baseline of a run's transfer is the one that its record names, whatever the table shows beside it. Runs that learned
    only the first stages of their order are left out.
    """

    def __init__(self, records: Iterable[RecordView], scale: str = "") -> None:
        found = [r for r in records if _benchmark(r) in ("climb", "climb:lowshot")]
        if not found:
            raise UserError("there are no runs of climb or climb:lowshot: make some with `holdfast run climb`")
        found = [r for r in found if whole(r.config)]
        if not found:
            raise UserError("all these runs of climb learned only their first stages: `holdfast run climb` learns all")
        scales = Counter(r.config["benchmark"]["scale"] for r in found)
        self.scale = scale or scales.most_common(1)[0][0]
        if self.scale not in scales:
            raise UserError(f"there are no runs of climb at the scale {scale!r}: there are {', '.join(scales)}")
        found = [r for r in found if r.config["benchmark"]["scale"] == self.scale]
        self.world = any(_on_world(r.environment) for r in found)
        notes: list[str] = []
        upstream = _one_each([r for r in found if _benchmark(r) == "climb"], _what, notes)
        few = _one_each([r for r in found if _benchmark(r) == "climb:lowshot"], _which_few, notes)
        self._upstream = [_upstream(record) for record in upstream]
        self._few = [_low_shot(record) for record in few]
        self._named = {r.id: r for r in found}
        unseen = self._named.keys() - {r.id for r in (*upstream, *few)}
        if any(other in unseen for run in self._upstream for other in run.others.values()):
            notes.append(UNSEEN)
        made = [(_algorithm(r), r.config) for r in upstream] + [(_task(r), r.config) for r in few]
        self.notes = tuple(dict.fromkeys([*notes, *mixed(made)]))

    def by_algorithm(self, model: str, order: str) -> dict[str, list[Upstream]]:
        """The runs of an order, by algorithm: the paper's first, whether or not they were run, then others."""
        found: dict[str, list[Upstream]] = {name: [] for name in ROWS}
        for run in self._upstream:
            if (run.model, run.order) == (model, order):
                found.setdefault(run.algorithm, []).append(run)
        return found

    def alone(self, model: str, task: str) -> list[Upstream]:
        """The direct runs of a task."""
        return [r for r in self._upstream if (r.model, r.order, r.algorithm) == (model, task, "seqft")]

    def direct(self, run: Upstream) -> dict[str, Sequence[Score]]:
        """The direct runs that an upstream run needs, by its names for them: from its record, or of the same seed."""
        named = {name: other for name, other in run.others.items() if name.startswith(DIRECT)}
        if named:
            return {name: self._named[other].scores for name, other in named.items() if other in self._named}
        tasks = run.order.split(">")
        found = {DIRECT + t: [r for r in self.alone(run.model, t) if r.seed == run.seed] for t in tasks}
        return {name: runs[0].scores for name, runs in found.items() if runs}

    def few(self, model: str, task: str) -> list[LowShotRecord]:
        """The low-shot runs of a task from the pre-trained encoder, whatever image they show."""
        return [r for r in self._few if (r.model, r.task) == (model, task) and not r.start]

    def pretrained(self, model: str, task: str) -> list[LowShotRecord]:
        """The low-shot runs of a task from the pre-trained encoder, with the image used for measuring transfer."""
        return [r for r in self.few(model, task) if r.shows("mean", True)]

    def before(self, runs: Sequence[Upstream], task: str) -> list[LowShotRecord]:
        """The low-shot runs from the pre-trained encoder that upstream runs name; if they name none, all of them."""
        named = {each.id: each for run in runs for each in self._low_shot(run, 0) if each.task == task}
        return list(named.values()) or [each for run in runs[:1] for each in self.pretrained(run.model, task)]

    def after(self, run: Upstream, stage: int) -> list[LowShotRecord]:
        """The low-shot runs named by an upstream run that start from its weights after a stage, counted from 1."""
        start = f"{run.id}@{stage}"
        named = [each for each in self._low_shot(run, stage) if each.start == start]
        return named or [each for each in self._few if each.start == start]

    def _low_shot(self, run: Upstream, stage: int) -> list[LowShotRecord]:
        """The low-shot runs of a stage that the record of an upstream run names, as far as they exist."""
        parsed = ((LowShotRun.parse(name), other) for name, other in run.others.items() if other in self._named)
        return [_low_shot(self._named[other]) for each, other in parsed if each is not None and each.stage == stage]


def whole(config: Mapping[str, Any]) -> bool:
    """Whether a run learned all its stages, like those in the paper's tables.

    >>> whole({"seed": 0}), whole({"seed": 0, "stages": 2})
    (True, False)
    """
    return config.get("stages") is None


def _benchmark(record: RecordView) -> str:
    name: str = record.config["benchmark"]["name"]
    return name


def _model(record: RecordView) -> str:
    """The family of a model: vilt for vilt-tiny."""
    name: str = record.config["model"]["name"]
    return name.partition("-")[0]


def _algorithm(record: RecordView) -> str:
    config = record.config
    return "+".join([*config["transforms"], *map(_row, config["algorithms"])]) or NAMES["finetune"]


def _row(algorithm: Mapping[str, Any]) -> str:
    """The paper's name for an algorithm with its settings.

    >>> _row({"name": "frozen-bottom", "k": 2}), _row({"name": "replay", "capacity": 200}), _row({"name": "mas"})
    ('frozen-bottom-2', 'er', 'mas')
    """
    name: str = algorithm["name"]
    return f"{name}-{algorithm['k']}" if name == "frozen-bottom" else NAMES.get(name, name)


def _what(record: RecordView) -> str:
    return f"{_model(record)}, {_algorithm(record)}, {record.config['benchmark']['order']}"


def _task(record: RecordView) -> str:
    return f"low-shot {record.config['benchmark']['task']}"


def _which_few(record: RecordView) -> str:
    own, start = record.config["benchmark"], record.config.get("start", "")
    few = f"{_model(record)}, {own['task']}, {own['shots']} shots, {own['image']}, {own['reallocate']}"
    return f"{few}, from {start}" if start else few


def _one_each(records: Sequence[RecordView], key: Callable[[RecordView], str], notes: list[str]) -> list[RecordView]:
    """Restrict records that a table would mix to those of one configuration."""
    chosen: list[RecordView] = []
    for name, group in _grouped(records, key).items():
        same = _grouped(group, _settings)
        best = max(same.values(), key=len)  # the first of the largest
        if len(same) > 1:
            notes.append(f"{name}: {len(same)} settings were run; the one of run {best[0].id} is shown.")
        latest = {_which_seed(record): record for record in sorted(best, key=_started)}
        if len(latest) < len(best):
            notes.append(f"{name}: several runs have the same seed on different data; the latest is shown.")
        chosen += latest.values()
    return chosen


def _on_world(environment: Mapping[str, Any]) -> bool:
    """Whether the data is synthetic; a record of an earlier version shows that only in its command."""
    return bool(environment.get("world", "--data" not in environment.get("command", "").split()))


def _which_seed(record: RecordView) -> tuple[int, int]:
    return record.config["seed"], record.config["benchmark"].get("sample", 0)


def _started(record: RecordView) -> str:
    started: str = record.environment.get("started", "")
    return started


def _settings(record: RecordView) -> str:
    """A configuration without the settings that differ between seeds and sub-samples."""
    config = record.config
    own = {name: value for name, value in config["benchmark"].items() if name not in ("seed", "sample")}
    rest = {name: value for name, value in config.items() if name not in ("seed", "data", "start", "benchmark")}
    return json.dumps([own, rest], sort_keys=True)


def _grouped(values: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found


def _upstream(record: RecordView) -> Upstream:
    config = record.config
    order, seed = config["benchmark"]["order"], config["seed"]
    parts = [record.cost.get(name) for name in ("trained", "parameters")]
    trained = parts[0] / parts[1] if parts[0] is not None and parts[1] else None
    return Upstream(record.id, _model(record), _algorithm(record), order, seed, record.scores, trained, record.others)


def _low_shot(record: RecordView) -> LowShotRecord:
    own, config = record.config["benchmark"], record.config
    return LowShotRecord(
        record.id,
        _model(record),
        own["task"],
        own["shots"],
        own["sample"],
        config["seed"],
        config.get("start", ""),
        own["image"],
        own["reallocate"],
        record.chance["score"],
        record.scores,
    )
