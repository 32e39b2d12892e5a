"""What other commands have left in a run's folder for people to look at.

<id>/pictures/NAME.png   pictures: t-SNE, class activation maps (png, jpg or svg)
<id>/tables/NAME.json    tables: {"title": ..., "columns": [...], "rows": [[...], ...], "notes": [...], "warning": ...}
                         or, as a benchmark's own command prints it, {"ours": {row: {column: count}}, "paper": ...}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from holdfast.reports.blocks import Block, Cell, Note, PictureBlock, TableBlock
from holdfast.reports.render import KINDS

LARGEST = 500_000
"""Bytes of a picture that a page holds; a larger one is named."""
MOST = 12
"""A page holds at most so many pictures."""


def attached(folder: Path, caution: str = "") -> list[Block]:
    """The pictures and tables in a run's folder; what cannot be shown is said.

    `caution` is why the run is not comparable with a paper: a table of the paper's is shown with it.
    """
    blocks: list[Block] = []
    for path in sorted((folder / "tables").glob("*.json")):
        try:
            blocks += read_tables(path, caution)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            blocks.append(Note(f"tables/{path.name} is no table: {type(error).__name__}: {error}", problem=True))
    pictures = [p for p in sorted((folder / "pictures").glob("*")) if p.suffix.lstrip(".").lower() in KINDS]
    for path in pictures[:MOST]:
        if path.stat().st_size > LARGEST:
            blocks.append(Note(f"pictures/{path.name} has {path.stat().st_size:,} bytes: too large for a page."))
        else:
            blocks.append(PictureBlock(path.stem, path.read_bytes(), path.suffix.lstrip(".").lower()))
    if len(pictures) > MOST:
        blocks.append(Note(f"{len(pictures) - MOST} more pictures are in the run's folder."))
    return blocks


def read_tables(path: Path, caution: str = "") -> list[TableBlock]:
    """The tables of a file; a number may stand as it is."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    if "rows" in raw:
        rows = tuple(tuple(_cell(value) for value in row) for row in raw["rows"])
        return [_table(str(raw["title"]), raw["columns"], rows, raw.get("notes", ()), str(raw.get("warning", "")))]
    found = []
    for name, counts in raw.items():
        columns = list(dict.fromkeys(column for row in counts.values() for column in row))
        rows = tuple((Cell(title), *(_cell(row.get(c)) for c in columns)) for title, row in counts.items())
        found.append(_table(f"{path.stem}, {name}", ["", *columns], rows, (), caution if "paper" in raw else ""))
    return found


def _table(
    title: str, columns: Sequence[object], rows: tuple[tuple[Cell, ...], ...], notes: Sequence[object], warning: str
) -> TableBlock:
    if any(len(row) != len(columns) for row in rows):
        raise ValueError("a row is not as long as the head")
    return TableBlock(title, tuple(map(str, columns)), rows, tuple(map(str, notes)), warning)


def _cell(value: object) -> Cell:
    if isinstance(value, bool | str) or value is None:
        return Cell("" if value is None else str(value))
    if isinstance(value, int | float):
        return Cell(str(value), number=float(value))
    raise TypeError(f"a cell is {value!r}")
