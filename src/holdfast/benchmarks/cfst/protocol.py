"""The measures derived from the scores: those of the paper's tables, from the last stage and the few-shot tests.

The score log has, for each few-shot test, the mean accuracy of its tasks and, as `<test> interval`, half the width of
its 95 % interval; `non(f)`, `sys(o)` and so on are the tests on fresh and on old concepts (E.4).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast import metrics
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.benchmarks.cfst.combinations import MODES
from holdfast.types import Array, Score

INTERVAL = " interval"
COMPARED = ("non", "sys")
"""The tests that are repeated on fresh and on old concepts alone."""
TESTS = tuple(mode + group + end for mode in MODES for group in ("", "(f)", "(o)") for end in ("", INTERVAL))
"""The names of the scores of few-shot tests."""
MEASURES = {
    "Acon": Measure("Acon", higher=True, mean_of=("task-*",)),
    "Asys": Measure("Asys", higher=True, mean_of=("sys",)),
    "Apro": Measure("Apro", higher=True, mean_of=("pro",)),
    "Asub": Measure("Asub", higher=True, mean_of=("sub",)),
    "Hn": Measure("Hn", higher=True, mean_of=("sys", "pro", "sub")),
    "Anon": Measure("Anon", higher=True, mean_of=("non",)),
    "Anoc": Measure("Anoc", higher=True, mean_of=("noc",)),
    "Hr": Measure("Hr", higher=True, mean_of=("non", "noc")),
    "Ha": Measure("Ha", higher=True, mean_of=("sys", "pro", "sub", "non", "noc")),
}
_MISSING = "was not tested"


def scored(name: str, accuracies: Array, count: int, stage: int, step: int) -> list[tuple[Score, Array]]:
    """The log entries of a few-shot test over `count` queries, with the accuracies behind them.

    >>> import numpy as np
    >>> [score.score for score, _ in scored("sys", np.array([0.5, 1.0]), 20, stage=1, step=9)]
    [0.75, 0.48...]
    """
    width = metrics.confidence_interval(accuracies)
    found = ((name, float(accuracies.mean())), (name + INTERVAL, float(width)))
    return [(Score(stage, step, title, "test", count, value), accuracies) for title, value in found]


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """The row of a run in a table of the paper; without few-shot tests (Split-CIFAR100), Acon alone.

    Beside the row: the intervals, the related scores S of each test relative to `non` (E.6), and those of fresh and old
    concepts (E.4).
    """
    names, _, matrix = score_matrix(scores)
    last = dict(zip(names, matrix[-1].tolist(), strict=True)) if len(matrix) else {}
    tests = {name: value for name, value in last.items() if name.removesuffix(INTERVAL).split("(")[0] in MODES}
    continual = [value for name, value in last.items() if name not in tests]
    accuracy = metrics.mean(continual) if continual else metrics.Undefined(_MISSING)
    if not tests:
        return {"Acon": accuracy}
    modes = [mode for mode in MODES if mode in tests or mode != "sub"]
    given = {mode: tests.get(mode, metrics.Undefined(_MISSING)) for mode in modes}
    found = metrics.composition_scores(con=accuracy, **given)
    found |= {f"A{n.removesuffix(INTERVAL)}_interval": value for n, value in tests.items() if n.endswith(INTERVAL)}
    found |= {f"S({mode})": metrics.related_score(given[mode], given["non"]) for mode in modes if mode != "non"}
    for group in ("f", "o"):
        non, novel = (tests.get(f"{mode}({group})", metrics.Undefined(_MISSING)) for mode in COMPARED)
        found |= {f"Anon({group})": non, f"Asys({group})": novel, f"S({group})": metrics.related_score(novel, non)}
    return found
