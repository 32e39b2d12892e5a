"""Tables in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.table import Table

from holdfast.errors import printable

if TYPE_CHECKING:
    from holdfast.reports.tables import Grid

WIDE = 250
"""If the output is not a terminal, each row is one line, without wrapping to an arbitrary width."""


PROSE = 24
"""Cells longer than this that have words may be wrapped between words; all others stay whole."""
_WORDS = re.compile(r"[^\W\d_]{3}")


def table_of(grid: Grid) -> Table:
    """The table, without its notes, with each row on one line if the width allows it."""
    table = _empty(grid.title)
    for index, column in enumerate(grid.columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=index == 0, overflow="fold")
    for row in grid.rows:
        table.add_row(*map(printable, row))
    return table


def tables_of(grid: Grid, width: int) -> list[Table]:
    """The table in as many blocks of columns as the width needs; each block begins with the columns that name a row.

    >>> from holdfast.reports.tables import Grid
    >>> grid = Grid("scores", ("row", "one", "two"), (("er", "12.5 ±1.0", "7.5"),), ())
    >>> [[str(column.header) for column in block.columns] for block in tables_of(grid, 26)]
    [['row', 'one', 'two']]
    >>> [[str(column.header) for column in block.columns] for block in tables_of(grid, 22)]
    [['row', 'one'], ['row', 'two']]
    """
    rows = [[printable(cell) for cell in row] for row in grid.rows]
    columns = [[head, *cells] for head, *cells in zip(grid.columns, *rows, strict=True)]
    least = [max(map(_least, column)) for column in columns]
    found = []
    for number, block in enumerate(
        in_blocks([each + PADDING for each in least], _naming(rows, least, width), width - 1)
    ):
        table = _empty(grid.title if not number else None)
        room = width - _total(least[each] for each in block[1:]) - PADDING
        for place in block:
            folded = place == 0 and least[0] > room  # nothing else gives way
            table.add_column(
                grid.columns[place],
                justify="right" if place else "left",
                min_width=max(room, 1) if folded else least[place],
                max_width=max(room, 1) if folded else None,
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(row[place] for place in block))
        found.append(table)
    return found


def in_blocks(widths: Sequence[float], names: int, room: float) -> list[list[int]]:
    """The places of columns in as many blocks as the room needs; each block begins with the columns that name a row.

    >>> in_blocks([4, 3, 3, 3], 1, 10)
    [[0, 1, 2], [0, 3]]
    """
    blocks = [list(range(names))]
    for place in range(names, len(widths)):
        if len(blocks[-1]) > names and sum(widths[each] for each in [*blocks[-1], place]) > room:
            blocks.append(list(range(names)))
        blocks[-1].append(place)
    return blocks


PADDING = 3
"""The width of a column beyond its text."""


def _empty(title: str | None) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)


def _total(widths: Iterable[int]) -> int:
    return 1 + sum(each + PADDING for each in widths)


def _least(text: str) -> int:
    """The width in which a text can stand without breaking a number or a word."""
    if cell_len(text) <= PROSE or not _WORDS.search(text):
        return max(map(cell_len, text.splitlines()), default=0)
    return min(max(PROSE, *map(cell_len, text.split())), cell_len(text))


def _naming(rows: Sequence[Sequence[str]], least: Sequence[int], width: int) -> int:
    """How many of the first columns name a row: one, or two or three if one is ambiguous and they take little room."""
    for count in (1, 2, 3):
        if len({tuple(row[:count]) for row in rows}) == len(rows):
            return count if _total(least[:count]) <= width // 2 and count < len(least) else 1
    return 1
