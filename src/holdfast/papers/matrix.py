"""Every measure of a score matrix, and which printed values do not follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast import metrics
from holdfast.errors import UserError, nearest
from holdfast.metrics import Undefined
from holdfast.papers.rounding import Printed, exactly, printed

NOISE = 9
"""Decimals that hide the noise of floating-point operations, and nothing that a paper prints."""
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores after each stage (rows) on each task (columns), as they were printed."""

    scores: Floats
    decimals: int | None = None
    """How many decimals each score was rounded to; None: it was not rounded."""
    before: Floats | None = None
    """The scores on the tasks before training, if known."""
    curve: tuple[float, ...] = ()
    """The accuracy over all classes seen so far, after each stage, if the file has it."""
    notes: tuple[str, ...] = ()
    """The assumptions made in reading the file."""

    @property
    def unit(self) -> float:
        """What a perfect score is: 1, or 100 for a matrix in percent.

        >>> ScoreMatrix(np.array([[0.5]])).unit, ScoreMatrix(np.array([[50.0]])).unit
        (1.0, 100.0)
        """
        finite = self.scores[np.isfinite(self.scores)]
        return 100.0 if len(finite) and np.abs(finite).max() > 1 + 1e-6 else 1.0


@dataclass(frozen=True)
class MatrixMeasure:
    """A measure of a matrix: its definition, its other names, and the scores with which it rises."""

    title: str
    definition: str
    of: Callable[[Floats, Floats | None], float]
    rises: Callable[[int], Mask]
    """The entries with which it rises or does not change; with the others, it falls."""
    names: tuple[str, ...] = ()


def _all(size: int) -> Mask:
    return np.ones((size, size), dtype=bool)


def _below(size: int) -> Mask:
    return np.tri(size, k=-1, dtype=bool)


def _not_last(size: int) -> Mask:
    found = _all(size)
    found[-1] = False
    return found


def _relative(table: Floats, before: Floats | None) -> float:
    if before is None:
        return Undefined("it needs the scores before training: a first row of their own")
    return metrics.forward_transfer(table, before)


MEASURES: Mapping[str, MatrixMeasure] = {
    "final_accuracy": MatrixMeasure(
        "final accuracy",
        "mean of the last row: (1/N) sum_j R_Nj (Lopez-Paz and Ranzato, 2017)",
        lambda table, before: metrics.final_accuracy(table),
        _all,
        ("acc", "average_accuracy", "final_average_accuracy", "faa", "last", "mfn", "aa", "a_n"),
    ),
    "average_incremental_accuracy": MatrixMeasure(
        "average incremental accuracy",
        "mean over stages of the mean score on the tasks learned so far (Rebuffi et al., 2017)",
        lambda table, before: metrics.average_incremental_accuracy(table),
        _all,
        ("aia", "caa", "aaa", "maa", "inc_acc", "average_anytime_accuracy"),
    ),
    "mean_accuracy": MatrixMeasure(
        "mean accuracy",
        "mean of the diagonal and all below: sum_{i >= j} R_ij / (N (N + 1) / 2) (Diaz-Rodriguez et al., 2018)",
        lambda table, before: metrics.mean_accuracy(table),
        _all,
    ),
    "learning_accuracy": MatrixMeasure(
        "learning accuracy",
        "mean of the diagonal: (1/N) sum_j R_jj (Riemer et al., 2019)",
        lambda table, before: metrics.learning_accuracy(table),
        _all,
        ("la", "mft", "plasticity"),
    ),
    "forgetting": MatrixMeasure(
        "forgetting",
        "mean over j < N of max_{l < N} R_lj - R_Nj (Chaudhry et al., 2018)",
        lambda table, before: metrics.forgetting(table),
        _not_last,
        ("f", "fm", "ff"),
    ),
    "drop_from_best": MatrixMeasure(
        "drop from best",
        "mean over j < N of max_l R_lj - R_Nj, the last stage included: what PILOT and PyCIL print as forgetting",
        lambda table, before: metrics.drop_from_best(table),
        _not_last,
        ("pilot_forgetting",),
    ),
    "backward_transfer": MatrixMeasure(
        "backward transfer",
        "mean over j < N of R_Nj - R_jj (Lopez-Paz and Ranzato, 2017)",
        lambda table, before: metrics.backward_transfer(table, final=True),
        _below,
        ("bwt",),
    ),
    "backward_transfer_all": MatrixMeasure(
        "backward transfer, all stages",
        "sum_{i > j} (R_ij - R_jj) / (N (N - 1) / 2) (Diaz-Rodriguez et al., 2018)",
        lambda table, before: metrics.backward_transfer(table),
        _below,
    ),
    "remembering": MatrixMeasure(
        "remembering",
        "1 - |min(BWT, 0)|, with BWT over all stages (Diaz-Rodriguez et al., 2018)",
        lambda table, before: metrics.remembering(table),
        _below,
        ("rem",),
    ),
    "forward_transfer": MatrixMeasure(
        "forward transfer",
        "mean over j > 1 of R_{j-1,j} - b_j, with b_j before training (Lopez-Paz and Ranzato, 2017)",
        _relative,
        _all,
        ("fwt",),
    ),
    "forward_transfer_all": MatrixMeasure(
        "forward transfer, all stages",
        "mean of all entries above the diagonal (Diaz-Rodriguez et al., 2018)",
        lambda table, before: metrics.forward_transfer(table),
        _all,
    ),
    "zero_shot_transfer": MatrixMeasure(
        "Transfer",
        "mean over tasks of the mean score before a task is learned (ZSCL, Zheng et al., 2023)",
        lambda table, before: metrics.zero_shot_transfer(table),
        _all,
        ("transfer",),
    ),
    "average_over_stages": MatrixMeasure(
        "Average",
        "mean of all entries (ZSCL, Zheng et al., 2023)",
        lambda table, before: metrics.average_over_stages(table),
        _all,
        ("average",),
    ),
}
"""Every measure that a matrix alone decides."""
NEEDS_MORE = {
    "intransigence": "it needs the scores of a model that learns all tasks together",
    "cl_score": "it needs weights, and intransigence if that is one of its parts",
}
"""Measures of `holdfast.metrics` that need more than a matrix."""


@dataclass(frozen=True)
class MatrixValue:
    """The value of a measure, and its range over all unrounded scores; or why it has none."""

    name: str
    value: float
    low: float
    high: float
    reason: str = ""


@dataclass(frozen=True)
class PrintedCheck:
    """A printed value, whether it follows from the matrix, and the other measures that have this value."""

    name: str
    printed: float
    value: MatrixValue
    follows: bool
    others: tuple[str, ...] = ()


def measures(matrix: ScoreMatrix) -> list[MatrixValue]:
    """The value of every measure, in the unit of the matrix.

    >>> found = {each.name: each for each in measures(ScoreMatrix(np.array([[90.0, 10.0], [30.0, 60.0]]), decimals=0))}
    >>> found["final_accuracy"].value, found["final_accuracy"].low, found["backward_transfer"].low
    (45.0, 44.5, -61.0)
    """
    if matrix.scores.shape[0] != matrix.scores.shape[1]:
        rows, columns = matrix.scores.shape
        raise UserError(
            f"the matrix has {rows} rows and {columns} columns: it needs one row for each stage and one column for "
            "each task (and, if known, a first row with the scores before training)"
        )
    unit = matrix.unit
    half = 0.0 if matrix.decimals is None else 0.5 * 10.0**-matrix.decimals / unit
    table = matrix.scores / unit
    before = None if matrix.before is None else matrix.before / unit
    found = []
    for name, measure in MEASURES.items():
        value = measure.of(table, before)
        if isinstance(value, Undefined):
            found.append(MatrixValue(name, value, value, value, value.reason))
            continue
        way = np.where(measure.rises(len(table)), half, -half)
        low, high = (measure.of(_shares(table + sign * way), before) for sign in (-1, 1))
        rest = half if name == "forward_transfer" else 0.0  # the scores before training are rounded as well
        value, low, high = (round(each * unit, NOISE) for each in (value, low - rest, high + rest))
        found.append(MatrixValue(name, value, low, high))
    return found


def _shares(table: Floats) -> Floats:
    """Limit an interval at a perfect score: a rounded 100 % cannot stand for more."""
    within = (table >= -1e-6).all() and (np.nan_to_num(table) <= 1.01).all()
    return np.clip(table, 0, 1) if within else table


def audit_matrix(matrix: ScoreMatrix, values: Mapping[str, tuple[float, int | None]]) -> list[PrintedCheck]:
    """Check printed values, given by a measure's name, with the number of decimals that were printed.

    >>> found = audit_matrix(ScoreMatrix(np.array([[90.0, 10.0], [30.0, 60.0]]), decimals=0), {"bwt": (-40.0, 1)})
    >>> found[0].follows, found[0].value.value
    (False, -60.0)
    """
    known = {each.name: each for each in measures(matrix)}
    found = []
    for given, (value, decimals) in values.items():
        name = find(given)
        own = printed(value, decimals)
        right = known[name]
        follows = not right.reason and _meets(own, right)
        others = tuple(each.name for each in known.values() if not follows and not each.reason and _meets(own, each))
        found.append(PrintedCheck(name, value, right, follows, others))
    return found


def _meets(own: Printed, value: MatrixValue) -> bool:
    return own.meets(exactly(value.low) if value.low == value.high else Printed(value.value, value.low, value.high))


def find(name: str) -> str:
    """The measure that a name or one of its other names refers to.

    >>> find("BWT"), find("Average Accuracy")
    ('backward_transfer', 'final_accuracy')
    """
    lowered = name.strip().lower().replace(" ", "_").replace("-", "_")
    if lowered in NEEDS_MORE:
        raise UserError(f"{name} does not follow from a matrix alone: {NEEDS_MORE[lowered]}")
    names = {each: own for own, measure in MEASURES.items() for each in (own, *measure.names)}
    if lowered not in names:
        raise UserError(f"unknown measure {name!r} of a matrix: {nearest(lowered, names)}")
    return names[lowered]
