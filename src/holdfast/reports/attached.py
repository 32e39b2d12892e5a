"""Pictures and tables that other commands have left in a run's folder.

<id>/pictures/NAME.png   pictures: t-SNE, class activation maps (png, jpg or svg)
<id>/tables/NAME.json    tables: {"title": ..., "columns": [...], "rows": [[...], ...], "notes": [...], "warning": ...}
                         or, as a benchmark's own command prints it, {"ours": {row: {column: count}}, "paper": ...}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import printable
from holdfast.files import Bounds, FileError, read_inside
from holdfast.reports.blocks import Block, Cell, Note, PictureBlock, TableBlock
from holdfast.reports.render import KINDS

LARGEST = 500_000
"""The maximum number of bytes of a picture that a page includes; larger ones are only named."""
MOST = 12
"""The maximum number of pictures on a page."""


def attached(folder: Path, caution: str = "") -> list[Block]:
    """The pictures and tables in a run's folder, with a note for each that cannot be shown.

    `caution` says why the run is not comparable with a paper: it is shown with each table of the paper.
    """
    blocks: list[Block] = []
    for path in _files(folder, "tables", "*.json"):
        try:
            blocks += read_tables(path, caution)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = error.what if isinstance(error, FileError) else f"{type(error).__name__}: {error}"
            blocks.append(Note(printable(f"tables/{path.name} is not a table: {what}"), problem=True))
    pictures = [p for p in _files(folder, "pictures", "*") if p.suffix.lstrip(".").lower() in KINDS]
    for path in pictures[:MOST]:
        try:
            content = read_inside(folder.parent, path, LARGEST)
        except (OSError, FileError) as error:
            why = error.what if isinstance(error, FileError) else error.strerror
            blocks.append(Note(printable(f"pictures/{path.name} is not shown: {why}."), problem=True))
        else:
            blocks.append(PictureBlock(printable(path.stem), content, path.suffix.lstrip(".").lower()))
    if len(pictures) > MOST:
        blocks.append(Note(f"{len(pictures) - MOST} more pictures are in the run's folder."))
    return blocks


def _files(folder: Path, name: str, pattern: str) -> list[Path]:
    if not (folder / name).is_dir():
        return []
    try:
        Bounds(folder.parent).check(folder / name)
    except FileError:
        return []
    return sorted((folder / name).glob(pattern))


def read_tables(path: Path, caution: str = "") -> list[TableBlock]:
    """The tables of a file; cells may be plain numbers."""
    raw = json.loads(read_inside(path.parent.parent.parent, path))
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
        raise ValueError("a row and the header differ in length")
    return TableBlock(title, tuple(map(str, columns)), rows, tuple(map(str, notes)), warning)


def _cell(value: object) -> Cell:
    if isinstance(value, bool | str) or value is None:
        return Cell("" if value is None else str(value))
    if isinstance(value, int | float):
        return Cell(str(value), number=float(value))
    raise TypeError(f"a cell is {value!r}")
