"""A score that does not exist, and why."""

from typing import Self


class Undefined(float):
    """A NaN that says why it is undefined; the metrics return it where their definition would divide by zero.

    It is a float like any other NaN, so arithmetic, comparison and formatting keep working; the result of arithmetic
    is a plain NaN, without the reason.

    >>> result = Undefined("one task alone cannot be forgotten")
    >>> import math
    >>> math.isnan(result), result.reason
    (True, 'one task alone cannot be forgotten')
    >>> f"{result:.2f}"
    'nan'
    """

    __slots__ = ("reason",)
    reason: str

    def __new__(cls, reason: str) -> Self:
        """Make the NaN and keep the reason."""
        result = super().__new__(cls, "nan")
        result.reason = reason
        return result

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # so that copies and pickles keep the reason
        return (self.reason,)

    def __repr__(self) -> str:
        return f"Undefined({self.reason!r})"
