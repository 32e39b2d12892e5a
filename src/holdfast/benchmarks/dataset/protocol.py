"""The measures of `dataset`."""

from holdfast.benchmarks.own.measures import MEASURES

__all__ = ["MEASURES"]
