"""Every numbered table of the papers behind the benchmarks, as data, and an audit of their arithmetic.

>>> from holdfast import papers
>>> papers.table("climb", 3).value("score", algorithm="er", task="vcr")
59.7
"""

from holdfast.papers.published import Cell, Column, PublishedTable, papers, table, tables

__all__ = ["Cell", "Column", "PublishedTable", "papers", "table", "tables"]


def __dir__() -> list[str]:
    return sorted(__all__)
