"""The content of the paper's figures as data from records: log-perplexity over time, and seen vs novel compositions.

This module does not need torch. Records come from the store; their scores are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.benchmarks.viscoll.protocol import KINDS, LEARNED, NOVEL, REGULAR, TASK, WORD, composed, history
from holdfast.types import Ids, Score


class ScoredRun(Protocol):
    """The parts of a record that are read."""

    @property
    def scores(self) -> Sequence[Score]: ...  # noqa: D102


@dataclass(frozen=True)
class Curve:
    """The log-perplexity of one thing at each evaluation; `learned` is the step after which its data had been seen."""

    name: str
    steps: Ids
    values: NDArray[np.float64]
    learned: float | None = None


def over_time(run: ScoredRun, what: Literal["all", "task", "word"] = "all") -> list[Curve]:
    """Curves over time.

    `what` is all regular phrases (Figure 9), each task (Figure 7), or the verb or adjective of each composition (Figure
    8).
    """
    prefix = {"all": REGULAR, "task": TASK, "word": WORD}[what]
    found = history(run.scores, prefix)
    learned = {s.name.removeprefix(LEARNED): s.score for s in run.scores if s.name.startswith(LEARNED)}
    return [
        Curve(name or REGULAR, found.steps, found.values[:, column], learned.get(name))
        for column, name in enumerate(found.names)
    ]


def mean_over_time(runs: Sequence[ScoredRun], what: Literal["all", "task", "word"] = "all") -> list[Curve]:
    """Curves for runs that differ only in their seeds: the mean of their values at each evaluation."""
    curves = [over_time(run, what) for run in runs]
    return [replace(own[0], values=np.mean([curve.values for curve in own], 0)) for own in zip(*curves, strict=True)]


@dataclass(frozen=True)
class KindPerplexity:
    """The log-perplexity of one kind of composition, seen or novel, and that of each composition."""

    kind: str
    group: str
    value: float
    each: Mapping[str, float]


def compositional(run: ScoredRun) -> list[KindPerplexity]:
    """Seen against novel compositions of nouns with verbs and with adjectives, at the end of a run (Figure 6)."""
    tests = [s for s in run.scores if s.split == "test"]
    last = {s.name: s.score for s in sorted(tests, key=lambda s: (s.step, s.stage))}
    bars = []
    for kind in KINDS:
        for group in ("seen", NOVEL):
            start = f"{kind} {group}/"
            each = {name.removeprefix(start): -score for name, score in last.items() if name.startswith(start)}
            bars.append(KindPerplexity(kind, group, composed(last, kind, group), each))
    return bars
