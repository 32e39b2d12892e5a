"""How well a small model learns each dataset of the world alone: hard enough to tell algorithms apart, and learnable.

Each case is a run of a benchmark with one task, on all that the synthetic world has at a scale. Its score on test data
should lie in a band: 80 to 97 %; for masked phrases, a log-perplexity from 0.3 to 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast import registry
from holdfast.errors import RunError, UserError
from holdfast.experiments.carry import run_one
from holdfast.experiments.local import Options
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store

ALL = 1_000_000_000
"""More examples than any dataset has: a cap that caps nothing."""
EPOCHS = {"large": 8}
"""How long a model is trained at a scale, the best epoch staying; elsewhere as below."""
LONG = 30


@dataclass(frozen=True)
class CalibrationCase:
    """A dataset, the run that learns it, the measure of that run, and where it should lie."""

    dataset: str
    benchmark: str
    measure: str
    algorithm: str = "finetune"
    order: str | None = None
    scale: str = "small"
    """How much data it is calibrated with."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    own_epochs: bool = True
    """Whether the benchmark says how long to train, not we."""
    low: float = 0.80
    high: float = 0.97


@dataclass(frozen=True)
class Calibrated:
    """What a case came to; without a score, the reason."""

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
        """Whether the score lies in its band."""
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
    """Each case whose dataset has `only` in its name, one after another; a run that the store has is not run again.

    With `scale`, all are run at that one, and not each at its own.
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
            record = run_one(request, store, Options(device, compiled=compiled), needs=False)
        except (UserError, RunError) as error:
            yield Calibrated(case.dataset, here, None, None, case.low, case.high, 0.0, str(error))
            continue
        score, chance = record.summary[case.measure], record.chance.get(case.measure)
        reason = record.reasons.get(case.measure, "")
        yield Calibrated(case.dataset, here, score, chance, case.low, case.high, record.cost["seconds"], reason)
