"""The arguments of the metrics: array-likes of numbers, checked once; every error names the argument."""

import math
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import UserError
from holdfast.metrics.undefined import Undefined

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def vector(values: ArrayLike, name: str) -> Floats:
    """A non-empty one-dimensional array of floats, or a UserError that names the argument.

    >>> vector([1, 2], "values")
    array([1., 2.])
    """
    return _numbers(values, name, 1, "a flat list")


def matrix(values: ArrayLike, name: str) -> Floats:
    """A non-empty two-dimensional array of floats, or a UserError that names the argument.

    >>> matrix([[1, 2]], "history")
    array([[1., 2.]])
    """
    return _numbers(values, name, 2, "a table (rows of equal length)")


def square(values: ArrayLike, name: str) -> Floats:
    """A non-empty square matrix of floats, or a UserError that names the argument.

    >>> square([[1]], "scores")
    array([[1.]])
    """
    table = matrix(values, name)
    if table.shape[0] != table.shape[1]:
        rows, columns = table.shape
        raise UserError(
            f"{name} must be square (one row for each stage, one column for each task), not {rows}x{columns}"
        )
    return table


def number(value: SupportsFloat, name: str) -> float:
    """One float. An Undefined is returned unchanged; any other NaN or infinity becomes an Undefined naming the
    argument.

    >>> number(3, "score")
    3.0
    >>> number(float("nan"), "score")
    Undefined('score is not a finite number')
    """
    if isinstance(value, Undefined):
        return value
    try:
        result = float(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} must be one number, not {value!r}") from error
    return result if math.isfinite(result) else Undefined(f"{name} is not a finite number")


def integers(values: ArrayLike, name: str, dimensions: int | None = 1) -> Integers:
    """A non-empty array of whole numbers (None: of any shape), or a UserError that names the argument.

    >>> integers([2, 1.0], "lengths")
    array([2, 1])
    """
    floats = _numbers(values, name, dimensions, "an array" if dimensions is None else "a flat list")
    whole = floats.astype(np.int64) if np.isfinite(floats).all() else None
    if whole is None or (whole != floats).any():
        raise UserError(f"{name} must hold whole numbers only")
    return whole


def same_length(first: Any, first_name: str, second: Any, second_name: str) -> None:
    """Raise a UserError unless two parallel arrays have the same length.

    >>> same_length([1], "predictions", [1, 2], "targets")
    Traceback (most recent call last):
    ...
    holdfast.errors.UserError: predictions and targets must have the same length, not 1 and 2
    """
    if len(first) != len(second):
        raise UserError(f"{first_name} and {second_name} must have the same length, not {len(first)} and {len(second)}")


def missing(values: Floats, name: str) -> Undefined | None:
    """Why nothing can be computed from these values: the first NaN or infinity. None if all are finite.

    >>> missing(np.array([1.0, np.nan]), "values")
    Undefined('values[1] is not a finite number')
    """
    finite = np.isfinite(values)
    if finite.all():
        return None
    where = np.argwhere(~finite)
    return Undefined(f"{name}[{', '.join(map(str, where[0]))}] is not a finite number")


def _numbers(values: ArrayLike, name: str, dimensions: int | None, shape: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} must be {shape} of numbers") from error
    if array.size == 0:
        raise UserError(f"{name} is empty")
    if dimensions is not None and array.ndim != dimensions:
        raise UserError(f"{name} must be {shape} of numbers, but has {array.ndim} dimensions")
    return array
