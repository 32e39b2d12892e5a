"""The measures of `folder`."""

from holdfast.benchmarks.own.measures import MEASURES

__all__ = ["MEASURES"]
