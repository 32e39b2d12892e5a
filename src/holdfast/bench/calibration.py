"""How well a small model learns each synthetic dataset alone: hard enough to separate algorithms, yet learnable.

Each case is a run of a benchmark with one task, on all synthetic data at a scale. Its score on test data should lie in
a target range: 80 to 97 %; for masked phrases, a log-perplexity from 0.3 to 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast import registry
from holdfast.errors import RunError, UserError
from holdfast.experiments.carry import carry
from holdfast.experiments.local import Options
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store

ALL = 1_000_000_000
"""More examples than any dataset has: a limit without effect."""
EPOCHS = {"large": 8}
"""The training length at each scale, keeping the best epoch; for other scales, see below."""
LONG = 30


@dataclass(frozen=True)
class CalibrationCase:
    """A dataset, the run that learns it, the measure of that run, and its target range."""

    dataset: str
    benchmark: str
    measure: str
    algorithm: str = "finetune"
    order: str | None = None
    scale: str = "small"
    """The amount of data it is calibrated with."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    own_epochs: bool = True
    """Whether the benchmark, rather than this module, decides how long to train."""
    low: float = 0.80
    high: float = 0.97


@dataclass(frozen=True)
class Calibrated:
    """The outcome of a case; without a score, the reason."""

    dataset: str
    scale: str
    score: float | None
    chance: float | None
    low: float
    high: float
    seconds: float
    reason: str = ""

    @property
    def within(self) -> bool | None:
        """Whether the score lies in its target range."""
        return None if self.score is None else self.low <= self.score <= self.high


def all_cases() -> tuple[CalibrationCase, ...]:
    """The cases of all benchmarks, from `speed.py` in their folders."""
    return tuple(
        case for family in registry.families() for case in getattr(registry.part(family, "speed"), "CALIBRATION", ())
    )


def calibration(
    store: Store,
    scale: str = "",
    device: str = "cpu",
    only: str = "",
    compiled: bool = False,
    cases: Sequence[CalibrationCase] | None = None,
    begin: Callable[[CalibrationCase], None] = lambda case: None,
) -> Iterator[Calibrated]:
    """Run each case whose dataset has `only` in its name, one after another; a run in the store is not repeated.

    With `scale`, all cases run at that scale, instead of each at its own.
    """
    for case in all_cases() if cases is None else cases:
        if only not in case.dataset or case.benchmark not in registry.BENCHMARKS:
            continue
        begin(case)
        settings, here = dict(case.settings), scale or case.scale
        if not case.own_epochs:
            settings |= dict.fromkeys(("train.epochs", "train.patience"), EPOCHS.get(here, LONG))
        request = Request(case.benchmark, case.algorithm, scale=here, order=case.order, settings=settings)
        try:
            setups = Setups()
            plan = graph([request], needs=False, setups=setups)
            (record,) = carry(plan, store, Options(device, compiled=compiled), setups)
        except (UserError, RunError) as error:
            yield Calibrated(case.dataset, here, None, None, case.low, case.high, 0.0, str(error))
            continue
        score, chance = record.summary[case.measure], record.chance.get(case.measure)
        reason = record.reasons.get(case.measure, "")
        yield Calibrated(case.dataset, here, score, chance, case.low, case.high, record.cost["seconds"], reason)
