"""The kind of answer that each kind of question gets: the tables of the paper's supplement, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast import metrics
from holdfast.benchmarks.clvqa.stream import SETTINGS, task_order
from holdfast.benchmarks.clvqa.tasks import ANSWERS, CATEGORIES, KINDS
from holdfast.papers import tables

TITLES = {"yes_no": "Yes/No"}
_METHODS = {"finetune": "naive", "cumulative": "cumulative", "rehearsal": "rehearsal", "ewc": "ewc"}


@dataclass(frozen=True)
class Confusion:
    """Counts by type of question (rows) and category of answer (columns)."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    title: str = ""


def confusion(functions: Mapping[str, Sequence[str]], predictions: Mapping[str, Sequence[int]]) -> Confusion:
    """The table of a run, from what each test question of each task asks, and the number of the predicted answer.

    >>> found = confusion({"wh": ["query_size"], "yn": ["equal_size"]}, {"wh": [16], "yn": [16]})
    >>> found.columns[-1], found.counts[found.rows.index("query_size")].tolist()
    ('yes_no', [0, 0, 0, 0, 1])
    """
    category = {answer: name for name, answers in CATEGORIES.items() for answer in answers}
    asked = [function for task in functions for function in functions[task]]
    answered = [category[ANSWERS[number]] for task in functions for number in predictions[task]]
    rows = tuple(function for task in KINDS if task in functions for function in KINDS[task])
    # The paper's models could answer with a number as well, but never do; if ours does, a column shows it.
    columns = tuple(name for name in CATEGORIES if name != "count" or name in answered or "count" in rows)
    return Confusion(rows, columns, metrics.confusion(asked, answered, rows, columns))


def published(algorithm: str, order: str) -> Confusion | None:
    """The paper's table for a method and an order of tasks, if there is one.

    >>> published("finetune", "wh>yn").counts[2].tolist()  # what size: yes, or no
    [0, 0, 0, 0, 6666]
    """
    names = task_order(order, "two")
    method = "independent" if len(names) == 1 else _METHODS.get(algorithm)
    setup = "-".join(names)
    rows, columns = tuple(f for task in SETTINGS["two"] for f in KINDS[task]), tuple(CATEGORIES)[:-1]
    for table in tables("clvqa"):
        cells: list[dict[str, Any]] = [dict(row) for row in table if "predicted" in row]
        found = {
            (c["question_type"], c["predicted"]): c["count"]
            for c in cells
            if (c["method"], c["setup"]) == (method, setup)
        }
        if found:
            counts = np.array([[found[row, column] for column in columns] for row in rows], np.int64)
            return Confusion(rows, columns, counts, f"table {table.number} of the paper")
    return None
