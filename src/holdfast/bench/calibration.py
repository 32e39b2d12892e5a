"""How well a small model learns each dataset of the world alone: hard enough to tell algorithms apart, and learnable.

Each case is a run of a benchmark with one task, on all that the world has at a scale: CLiMB's four tasks at `large`,
since `small` has few of their pictures. Its score on test data is to lie in a band: 80 to 97 %; of masked phrases, a
log-perplexity from 0.3 to 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast import registry
from holdfast.errors import RunError, UserError
from holdfast.experiments.config import Request, prepare
from holdfast.experiments.runner import run
from holdfast.experiments.store import Store

ALL = 1_000_000_000
"""More examples than any dataset has: a cap that caps nothing."""
EPOCHS = {"large": 8}
"""How long a model is trained at a scale, the best epoch staying; elsewhere as below."""
LONG = 30


@dataclass(frozen=True)
class Case:
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


def _upstream(task: str, dataset: str) -> Case:
    whole = {"benchmark.train": ALL, "benchmark.scored": ALL}
    return Case(dataset, "climb", task, order=task, scale="large", settings=whole, own_epochs=False)


def _words(task: str, dataset: str) -> Case:
    whole = {"benchmark.task": task, "benchmark.shots": "100%"}
    return Case(dataset, "climb:lowshot", "score", settings=whole, own_epochs=False)


PHRASES = {"train.batch_size": 32}
"""Ten epochs in random order, in batches as large as the paper's."""
CASES = (
    _upstream("vqav2", "vqav2"),
    _upstream("nlvr2", "nlvr2"),
    _upstream("snli-ve", "snli_ve"),
    _upstream("vcr", "vcr"),
    *(Case(f"clevr, {task}", "clvqa", task, order=task) for task in ("wh", "yn")),
    *(_words(task, task.replace("-", "")) for task in ("imdb", "sst-2", "hellaswag", "commonsenseqa", "piqa")),
    *(
        Case(f"phrases, {name}", f"viscoll:{name}", "log_perplexity", "offline", settings=PHRASES, low=0.3, high=1.0)
        for name in ("coco", "flickr")
    ),
)


def calibration(
    store: Store,
    scale: str = "",
    device: str = "cpu",
    only: str = "",
    compiled: bool = False,
    cases: tuple[Case, ...] = CASES,
    begin: Callable[[Case], None] = lambda case: None,
) -> Iterator[Calibrated]:
    """Each case whose dataset has `only` in its name, one after another; a run that the store has is not run again.

    With `scale`, all are run at that one, and not each at its own.
    """
    for case in cases:
        if only not in case.dataset or case.benchmark not in registry.BENCHMARKS:
            continue
        begin(case)
        settings, here = dict(case.settings), scale or case.scale
        if not case.own_epochs:
            settings |= dict.fromkeys(("train.epochs", "train.patience"), EPOCHS.get(here, LONG))
        request = Request(case.benchmark, case.algorithm, scale=here, order=case.order, settings=settings)
        try:
            record = run(prepare(request), store, device=device, compiled=compiled)
        except (UserError, RunError) as error:
            yield Calibrated(case.dataset, here, None, None, case.low, case.high, 0.0, str(error))
            continue
        score, chance = record.summary[case.measure], record.chance.get(case.measure)
        reason = record.reasons.get(case.measure, "")
        yield Calibrated(case.dataset, here, score, chance, case.low, case.high, record.cost["seconds"], reason)
