"""The papers' numbered tables as data: one JSON file for each table, in the folder of its paper."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.errors import UserError, nearest

Cell = str | float | int | None
Kind = Literal["key", "value", "text"]

PAPERS: tuple[str, ...] = ("climb", "climb-v1", "viscoll", "clvqa", "cfst", "zscl", "o-lora")
PAPERS += ("l2p", "l2p-pytorch", "esn", "nsp2", "vq-prompt", "mcitlib")
ALIASES = {"greco": "clvqa"}


@dataclass(frozen=True)
class Column:
    """One column: a key identifies a cell, a value is a number as printed, a text is words.

    `decimals` is the number of decimals the paper prints, and so how far a number may have been rounded; None means
    that nothing was rounded (a learning rate) or that the column contains words.

    >>> Column("score", "value", unit="%", decimals=2).kind
    'value'
    """

    name: str
    kind: Kind
    unit: str | None = None
    decimals: int | None = None
    means: str | None = None


@dataclass(frozen=True)
class PublishedTable:
    """One published table in tidy form: one row for each printed cell, its keys first.

    Iterating gives the rows as dictionaries.

    >>> results = table("climb", 3)
    >>> next(row for row in results if row["algorithm"] == "er" and row["task"] == "vcr")["score"]
    59.7
    """

    paper: str
    number: str
    title: str
    measures: str
    where: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            assert len(row) == len(self.columns), f"{self.paper} table {self.number}: {row} has the wrong width"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that identify a cell.

        >>> table("climb", 8).keys
        ('algorithm', 'task', 'after')
        """
        return tuple(column.name for column in self.columns if column.kind == "key")

    def column(self, name: str) -> Column:
        """The column of that name.

        >>> table("climb", 3).column("transfer").decimals
        2
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.columns]
        raise UserError(f"{self._called} has no column {name!r}: {nearest(name, names)}")

    def select(self, **keys: Cell) -> PublishedTable:
        """The same table with only the rows whose columns have these values (16 and "16" are the same).

        >>> [row["score"] for row in table("climb", 3).select(algorithm="direct")]
        [67.7, 73.07, 76.31, 61.31]
        """
        wanted = {self.columns.index(self.column(name)): str(value) for name, value in keys.items()}
        rows = tuple(row for row in self.rows if all(str(row[i]) == value for i, value in wanted.items()))
        return PublishedTable(
            self.paper, self.number, self.title, self.measures, self.where, self.columns, rows, self.notes
        )

    def value(self, column: str, **keys: Cell) -> Cell:
        """The one cell of `column` that these keys identify.

        >>> table("climb", 8).value("forgetting", algorithm="ewc", task="vqav2", after="vcr")
        65.25
        """
        position = self.columns.index(self.column(column))
        found = self.select(**keys).rows
        if len(found) == 1:
            return found[0][position]
        asked = ", ".join(f"{name}={value!r}" for name, value in keys.items()) or "no key"
        if found:
            missing = [name for name in self.keys if name not in keys]
            raise UserError(f"{self._called} has {len(found)} rows for {asked}: specify {' and '.join(missing)} too")
        for name, value in keys.items():
            there = sorted({str(row[name]) for row in self})
            if str(value) not in there:
                raise UserError(f"{self._called} has no {name} {value!r}: {nearest(str(value), there)}")
        raise UserError(f"{self._called} prints nothing for {asked}")

    @property
    def _called(self) -> str:
        return f"table {self.number} of {self.paper}"


def papers() -> tuple[str, ...]:
    """The papers whose tables are included.

    >>> papers()
    ('climb', 'climb-v1', 'viscoll', 'clvqa', 'cfst', 'zscl', 'o-lora', 'l2p', 'l2p-pytorch',
     'esn', 'nsp2', 'vq-prompt', 'mcitlib')
    """
    return PAPERS


def table(paper: str, number: int | str) -> PublishedTable:
    """One table of one paper; its number may be an integer or a string such as "9a".

    >>> table("climb", "9a").title
    'Knowledge transfer of sequential fine-tuning under three task orders'
    >>> table("greco", 1).paper
    'clvqa'
    """
    name = _paper(paper)
    found = _tables(name)
    wanted = str(number).strip().lower().lstrip("0")
    if wanted not in found:
        raise UserError(f"the paper {name} has no table {number}: {nearest(wanted, found)}")
    return found[wanted]


def tables(paper: str | None = None) -> list[PublishedTable]:
    """Every table of one paper, or of all papers, in the papers' own order.

    >>> [each.number for each in tables("climb")][7:11]
    ['8', '9a', '9b', '10']
    """
    chosen = PAPERS if paper is None else (_paper(paper),)
    return [each for name in chosen for each in _tables(name).values()]


def parse(text: str) -> PublishedTable:
    """A table from the text of its JSON file.

    >>> parse('{"paper": "p", "number": "1", "title": "t", "measures": "m", "where": "w", "notes": [],'
    ...       ' "columns": [{"name": "task", "kind": "key"}], "rows": [["vcr"]]}').rows
    (('vcr',),)
    """
    raw: dict[str, Any] = json.loads(text)
    columns = tuple(Column(**column) for column in raw.pop("columns"))
    rows = tuple(tuple(row) for row in raw.pop("rows"))
    return PublishedTable(columns=columns, rows=rows, notes=tuple(raw.pop("notes", ())), **raw)


def _paper(name: str) -> str:
    lowered = name.strip().lower()
    known = ALIASES.get(lowered, lowered)
    if known not in PAPERS:
        raise UserError(f"no paper is called {name!r}: {nearest(lowered, [*PAPERS, *ALIASES])}")
    return known


@functools.cache
def _tables(paper: str) -> dict[str, PublishedTable]:
    # The file names have leading zeros, so that sorting them gives the order of the tables.
    folder = importlib.resources.files("holdfast.papers") / paper
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    parsed = [parse(file.read_text(encoding="utf-8")) for file in files]
    return {each.number: each for each in parsed}
