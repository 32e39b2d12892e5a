"""Where papers print different values for one method, on the same data under the same protocol.

Papers copy baselines from each other, and run them again. Both are compared here: a difference is one that rounding
cannot explain, and a copy is a row of numbers that one paper prints for two sets of data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from holdfast.papers.published import Cell, PublishedTable, tables
from holdfast.papers.rounding import printed

SHARED = ("method", "data", "protocol")
"""The keys of tables that can be compared with those of other papers."""
EDITIONS = {"climb-v1": "climb", "climb": "climb"}
"""Versions of one paper: their tables of the same number are compared, cell by cell."""


@dataclass(frozen=True)
class Quotation:
    """One printed value, and where it is printed."""

    paper: str
    table: str
    value: float
    decimals: int | None
    said: str = ""
    """Further information in the paper, such as whose code was run."""


@dataclass(frozen=True)
class Disagreement:
    """One quantity for which papers print different values, with all of the values."""

    keys: tuple[Cell, ...]
    column: str
    values: tuple[Quotation, ...]


@dataclass(frozen=True)
class CopiedRow:
    """Two rows of one paper with the same numbers for different data."""

    paper: str
    method: Cell
    data: tuple[Cell, Cell]
    tables: tuple[str, str]
    values: tuple[float, ...]


def disagreements(published: Iterable[PublishedTable] | None = None) -> list[Disagreement]:
    """The quantities that two papers print differently, in the order of the papers.

    >>> found = {(each.keys[:2], each.column): each.values for each in disagreements()}
    >>> [(each.value, each.paper) for each in found[("dualprompt", "cifar100"), "forgetting"]]
    [(5.03, 'l2p-pytorch'), (5.16, 'l2p-pytorch'), (5.16, 'nsp2')]
    """
    groups: dict[tuple[tuple[Cell, ...], str], list[Quotation]] = {}
    for table in tables() if published is None else published:
        edition = EDITIONS.get(table.paper)
        if edition is None and not set(SHARED) <= set(table.keys):
            continue
        names = SHARED if edition is None else table.keys
        for row in table:
            keys = tuple(row[name] for name in names)
            keys = keys if edition is None else (edition, f"table {table.number}", *keys)
            said = ", ".join(str(row[name]) for name in table.keys if name not in names)
            for column in (each for each in table.columns if each.kind == "value" and row[each.name] is not None):
                value = Quotation(table.paper, table.number, _number(row[column.name]), column.decimals, said)
                groups.setdefault((keys, column.name), []).append(value)
    return [
        Disagreement(keys, name, tuple(quoted))
        for (keys, name), quoted in groups.items()
        if any(a.paper != b.paper and not _same(a, b) for a, b in combinations(quoted, 2))
    ]


def copies(published: Iterable[PublishedTable] | None = None) -> list[CopiedRow]:
    """Rows of one paper and method that print the same numbers, at least three of them, for different data.

    >>> [(each.paper, each.method, each.data, each.values) for each in copies()]
    [('vq-prompt', 'dualprompt', ('cifar100', 'cub200'), (66.0, 0.57, 77.92, 0.5)),
     ('vq-prompt', 'coda-prompt', ('cifar100', 'cub200'), (70.03, 0.47, 74.26, 0.24))]
    """
    rows: dict[tuple[str, Cell, tuple[float, ...]], list[tuple[Cell, str]]] = {}
    for table in tables() if published is None else published:
        if not set(SHARED) <= set(table.keys):
            continue
        for row in table:
            values = tuple(
                _number(row[each.name]) for each in table.columns if each.kind == "value" and row[each.name] is not None
            )
            if len(values) > 2:
                rows.setdefault((table.paper, row["method"], values), []).append((row["data"], table.number))
    found = []
    for (paper, method, values), places in rows.items():
        for (data, number), (other, again) in combinations(places, 2):
            if data != other:
                found.append(CopiedRow(paper, method, (data, other), (number, again), values))
    return found


def _same(first: Quotation, second: Quotation) -> bool:
    return printed(first.value, first.decimals).meets(printed(second.value, second.decimals))


def _number(cell: Cell) -> float:
    assert isinstance(cell, int | float), cell
    return float(cell)
