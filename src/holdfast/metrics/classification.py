"""Right and wrong answers: accuracy, multi-label F1 and confusion by question type. All shares lie between 0 and 1."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import UserError
from holdfast.metrics.arrays import Integers, integers, matrix, same_length
from holdfast.metrics.undefined import Undefined


def accuracy(predictions: ArrayLike, targets: ArrayLike) -> float:
    """Share of predictions that equal their target: (1/n) sum_i [p_i = t_i].

    Predictions and targets are class numbers, or strings.

    >>> accuracy([1, 0, 2, 2], [1, 0, 2, 1])
    0.75
    """
    guesses, truths = _labels(predictions, "predictions"), _labels(targets, "targets")
    same_length(guesses, "predictions", truths, "targets")
    return float((guesses == truths).mean())


def top1(logits: ArrayLike, targets: ArrayLike) -> float:
    """Share of examples (rows) whose highest logit belongs to the target class: (1/n) sum_i [argmax_c z_ic = t_i].

    If several logits tie for the highest, the first counts. A row with a NaN counts as wrong: a model that has diverged
    predicts nothing.

    >>> top1([[0.1, 0.9], [0.8, 0.2]], targets=[1, 1])
    0.5
    """
    table, truths = np.asarray(logits), integers(targets, "targets")  # no copy: logits of a whole test set are large
    if table.ndim != 2 or table.shape[1] == 0 or table.dtype.kind not in "bifu":
        raise UserError("logits must be a table of numbers, examples by classes")
    same_length(table, "logits", truths, "targets")
    if truths.min() < 0 or truths.max() >= table.shape[1]:
        raise UserError(f"targets must lie between 0 and {table.shape[1] - 1}: logits has {table.shape[1]} columns")
    best = table.argmax(axis=1)  # for a row with a NaN, this is the NaN's position
    return float(((best == truths) & ~np.isnan(table[np.arange(len(table)), best])).mean())


def micro_f1(predicted: ArrayLike, targets: ArrayLike) -> float:
    """F1 over all labels of all examples together: 2 TP / (2 TP + FP + FN).

    Both arguments are tables of 0 and 1, examples by labels. This is the score of CLiMB's COCO task (Srinivasan et al.,
    2022). Undefined if no label is predicted and none is true.

    >>> micro_f1([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]])  # TP 2, FP 1, FN 1
    0.66...
    """
    guesses, truths = _zero_one(predicted, "predicted"), _zero_one(targets, "targets")
    if guesses.shape != truths.shape:
        raise UserError(f"predicted and targets must have the same shape, not {guesses.shape} and {truths.shape}")
    hits = int((guesses & truths).sum())
    marked = int(guesses.sum()) + int(truths.sum())  # = 2 TP + FP + FN
    return 2 * hits / marked if marked else Undefined("no label is predicted and none is true")


def confusion(
    rows: Sequence[Hashable],
    columns: Sequence[Hashable],
    row_names: Sequence[Hashable],
    column_names: Sequence[Hashable],
) -> Integers:
    """Counts of examples by row name and column name: an integer table in the order of the given names.

    With each example's question type as `rows` and the category of its predicted answer as `columns`, these are the
    tables in the supplement of Greco et al. (2019), which show a model answering "yes" to "what colour".

    >>> asked = ["query_color", "query_color", "equal_color"]
    >>> answered = ["color", "yes/no", "yes/no"]
    >>> confusion(asked, answered, ["query_color", "equal_color"], ["color", "yes/no"])
    array([[1, 1],
           [0, 1]])
    """
    if not len(rows):
        raise UserError("rows is empty")
    same_length(rows, "rows", columns, "columns")
    if not len(row_names) or not len(column_names):
        raise UserError("row_names and column_names must not be empty")
    cell = _positions(rows, "rows", row_names) * len(column_names) + _positions(columns, "columns", column_names)
    counts = np.bincount(cell, minlength=len(row_names) * len(column_names))
    return counts.reshape(len(row_names), len(column_names))


def _labels(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise UserError(f"{name} must be a flat list of labels") from error
    if array.size == 0:
        raise UserError(f"{name} is empty")
    if array.ndim != 1:
        raise UserError(f"{name} must be a flat list of labels, but has {array.ndim} dimensions")
    return array


def _zero_one(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    table = matrix(values, name)
    if not np.isin(table, (0, 1)).all():
        raise UserError(f"{name} must hold only 0 and 1")
    return table.astype(np.bool_)


def _positions(labels: Sequence[Hashable], name: str, known: Sequence[Hashable]) -> Integers:
    position = {label: index for index, label in enumerate(known)}
    if len(position) != len(known):
        raise UserError(f"the names for {name} must be distinct")
    try:
        return np.fromiter((position[label] for label in labels), dtype=np.int64, count=len(labels))
    except KeyError as error:
        raise UserError(
            f"{name} contains {error.args[0]!r}, which is not one of {', '.join(map(str, known))}"
        ) from None
