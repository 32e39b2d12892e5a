"""The measures of `table`."""

from holdfast.benchmarks.own.measures import MEASURES

__all__ = ["MEASURES"]
