"""Tables for a terminal, as Markdown, as LaTeX (booktabs), as CSV, and as JSON values."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import Any

from holdfast.reports.blocks import Cell, TableBlock
from holdfast.reports.latex import latex_table
from holdfast.reports.tables import Grid

BRACKETS = "In brackets: the paper's value."


def grid(
    table: TableBlock, plain: Callable[[str], str] = str, strong: Callable[[str], str] = lambda text: f"{text}*"
) -> Grid:
    """The table as text: the paper's values in brackets, our own through `plain`, and marked ones through `strong`.

    >>> grid(TableBlock("t", ("", "ACC"), ((Cell("er"), Cell(number=1.0, paper=2.0, best=True)),), marks="best")).rows
    (('er', '1.0* [2.0]'),)
    """

    def text(cell: Cell) -> str:
        own = strong(plain(cell.plain)) if cell.best else plain(cell.plain)
        return f"{own} {plain(f'[{cell.published}]')}" if cell.published else own

    rows = tuple(tuple(map(text, row)) for row in table.rows)
    return Grid(table.title, table.columns, rows, _notes(table, "*"))


def markdown(table: TableBlock) -> str:
    """The table as Markdown."""
    lines = [f"### {_cell_of_markdown(table.title)}", ""]
    lines += [f"**{_cell_of_markdown(table.warning)}**", ""] if table.warning else []
    lines.append("| " + " | ".join(map(_cell_of_markdown, table.columns)) + " |")
    lines.append("|" + "|".join([" --- ", *(" ---: " for _ in table.columns[1:])]) + "|")
    for row in table.rows:
        words = [_cell_of_markdown(cell.plain) for cell in row]
        words = [f"**{word}**" if cell.best else word for word, cell in zip(words, row, strict=True)]
        words = [
            f"{word} ({cell.published})" if cell.published else word for word, cell in zip(words, row, strict=True)
        ]
        lines.append("| " + " | ".join(words) + " |")
    notes = _notes(table)[1 if table.warning else 0 :]
    return "\n".join([*lines, "", *(f"{_cell_of_markdown(note)}  " for note in notes)]).rstrip() + "\n"


def latex(table: TableBlock, command: str = "") -> str:
    """The table as LaTeX, with a label and the command that made it (see `reports.latex`)."""
    return latex_table(table, _notes(table), command)


def as_csv(table: TableBlock) -> str:
    """The table as CSV: each number beside its interval, its mark and the paper's value, and the warning in each row.

    The column `NAME best` is `true` if the number is marked, and empty otherwise.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    numeric = [any(row[place].number is not None for row in table.rows) for place in range(len(table.columns))]
    published = [any(row[place].paper is not None for row in table.rows) for place in range(len(table.columns))]
    heads = ["table"]
    for name, number, paper in zip(map(_bare, table.columns), numeric, published, strict=True):
        heads += [
            name,
            *([f"{name} interval", f"{name} best"] if number else []),
            *([f"{name} paper"] if paper else []),
        ]
    writer.writerow([_harmless(head) for head in (*heads, "warning")])
    for row in table.rows:
        words: list[object] = [table.title]
        for cell, number, paper in zip(row, numeric, published, strict=True):
            plain = cell.text if cell.number is None else cell.number
            words += [
                plain,
                *([cell.interval, "true" if cell.best else None] if number else []),
                *([cell.paper] if paper else []),
            ]
        writer.writerow(["" if word is None else _harmless(word) for word in (*words, table.warning)])
    return file.getvalue()


def _harmless(word: object) -> object:
    """A word that no spreadsheet executes: one that begins like a formula and is not a number is quoted.

    >>> _harmless("=HYPERLINK(1)"), _harmless("-0.5"), _harmless(-0.5), _harmless("+3 %")
    ("'=HYPERLINK(1)", '-0.5', -0.5, "'+3 %")
    """
    if not isinstance(word, str) or not word.lstrip().startswith(("=", "+", "-", "@", "\t", "\r")):
        return word
    return word if re.fullmatch(r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?", word) else f"'{word}"


def as_json_values(table: TableBlock) -> dict[str, Any]:
    """The table as JSON values."""
    rows = [
        {
            column: cell.plain
            if cell.number is None and cell.paper is None
            else {"value": cell.number, "interval": cell.interval, "paper": cell.paper, "best": cell.best}
            for column, cell in zip(map(_bare, table.columns), row, strict=True)
        }
        for row in table.rows
    ]
    told = {"title": table.title, "warning": table.warning, "rows": rows, "notes": list(table.notes)}
    return {**told, "marks": table.marks}


FORMATS: dict[str, Callable[[TableBlock], str]] = {"markdown": markdown, "latex": latex, "csv": as_csv}
"""How a table is written to a file; `text` is drawn by the terminal."""


def _cell_of_markdown(text: str) -> str:
    return re.sub(r"([\\|*_<>`])", r"\\\1", text).replace("\n", " ")


def _bare(column: str) -> str:
    return column.rstrip(" ↑↓")


def _notes(table: TableBlock, mark: str = "Bold") -> tuple[str, ...]:
    how = (BRACKETS,) if table.has_published else ()
    marks = (f"{mark}: {table.marks}.",) if table.marks else ()
    return (*((table.warning,) if table.warning else ()), *how, *table.notes, *marks)
