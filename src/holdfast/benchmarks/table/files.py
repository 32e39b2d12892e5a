"""Rows of CSV, TSV, JSON, JSON lines, Parquet and Arrow files, and the tables in a folder."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.benchmarks.own.listing import split_of
from holdfast.datasets.base import DataError, Problem, Reading, cannot_open, read_json_lines, read_text
from holdfast.datasets.formats.hub import check_shards, columns_of, rows_of, snapshot_of
from holdfast.datasets.formats.json_members import stream_objects
from holdfast.errors import UserError, nearest
from holdfast.files import Bounds, bounds, refuse_outside

Row: TypeAlias = Mapping[str, Any]

LONGEST = 1 << 24
"""The maximum number of characters in a field of a CSV file."""
_DEPTH = 5
_KINDS = ((".parquet", ".arrow"), (".csv", ".tsv"), (".jsonl", ".ndjson"), (".json",))
"""The endings of tables. In a folder, the first kind that exists counts, since files of other kinds may only describe
it."""
_ABOUT = re.compile(r"dataset_infos?\.json|dataset_dict\.json|state\.json|cache-.*\.arrow|\..*")
"""Files that the `datasets` library keeps beside its tables."""
_SHARD = re.compile(r"(.*?)-?\d{5}-of-\d{5}(?:-[0-9a-f]{16})?")


@dataclass(frozen=True)
class TableFile:
    """One file of rows, and the split that its name indicates."""

    path: Path
    split: str | None


def limits_of(data: Path) -> Bounds:
    """The bounds for the files of a table: its folder."""
    return bounds(data if data.is_dir() else data.parent)


def find_tables(data: Path) -> list[TableFile]:
    """The tables of a file or folder: one of all rows, or one or more for each split."""
    if data.is_file():
        if data.suffix.lower() not in chain(*_KINDS):
            raise UserError(f"{data} is not a table: give a file that ends with {', '.join(chain(*_KINDS))}")
        return [TableFile(data, None)]
    if not data.is_dir():
        raise UserError(f"{data}: no such file or folder")
    every = [path for path in _walk(snapshot_of(data), _DEPTH) if not _ABOUT.fullmatch(path.name)]
    found = next((own for kind in _KINDS if (own := [p for p in every if p.suffix.lower() in kind])), [])
    if not found:
        raise UserError(f"{data} holds no table: no file name ends with {', '.join(chain(*_KINDS))}")
    named = [TableFile(path, split) for path in found if (split := _split(path, data))]
    for split in dict.fromkeys(each.split for each in named):
        check_shards(data, [each.path for each in named if each.split == split], Reading())
    if named:
        return named
    if len({_shard_name(path) for path in found}) > 1:
        names = ", ".join(str(path.relative_to(data)) for path in found[:5])
        raise UserError(f"{data} holds several tables ({names}): give one of them, or call them train, val and test")
    return [TableFile(path, None) for path in found]


def read_rows(path: Path, columns: Mapping[str, str], reading: Reading) -> Iterator[tuple[str, Row]]:
    """The rows of a file, each with its description for messages. `columns` are those that it must have, by setting."""
    names = columns_in(path)
    for setting, name in columns.items():
        if name not in names:
            raise UserError(f"{path} has no column {name!r} (benchmark.{setting}): {nearest(name, names)}")
    for number, line, row in _READERS[path.suffix.lower()](path, tuple(columns.values()), reading):
        yield f"row {number}" + (f" (line {line})" if line else ""), row


def columns_in(path: Path) -> list[str]:
    """The names of the columns; for JSON, those of the first record."""
    ending = path.suffix.lower()
    if ending in _KINDS[0]:
        return columns_of(path)
    if ending in _KINDS[1]:
        return _header(path, _csv(path))
    return list(next((row for _, _, row in _READERS[ending](path, (), Reading(skip=1 << 30))), {}))


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    refuse_outside(folder)
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise cannot_open(folder, error) from None
    for entry in entries:
        if entry.is_file() and Path(entry.name).suffix.lower() in chain(*_KINDS):
            yield folder / entry.name
        elif depth and entry.is_dir() and not entry.name.startswith("."):
            yield from _walk(folder / entry.name, depth - 1)


def _split(path: Path, data: Path) -> str | None:
    """The split indicated by the name of a file, or of a folder around it: `qa_train.csv`, `val/data-00000.arrow`."""
    words = [part for name in path.relative_to(data).with_suffix("").parts for part in re.split(r"[-_.\s]", name)]
    return next((split for word in reversed(words) if (split := split_of(word))), None)


def _shard_name(path: Path) -> str:
    found = _SHARD.fullmatch(path.stem)
    return str(path.with_name(found[1] if found else path.name))


def _json_lines(path: Path, columns: Sequence[str], reading: Reading) -> Iterator[tuple[int, int, Row]]:
    for number, (line, row) in enumerate(read_json_lines(path, reading), 1):
        yield number, line, row


def _json_list(path: Path, columns: Sequence[str], reading: Reading) -> Iterator[tuple[int, int, Row]]:
    for place, row in stream_objects(path, reading, "row"):
        yield place + 1, 0, row


def _columnar(path: Path, columns: tuple[str, ...], reading: Reading) -> Iterator[tuple[int, int, Row]]:
    for number, row in rows_of(path, columns, reading):
        if row is not None:
            yield number + 1, 0, row


def _separated(path: Path, columns: Sequence[str], reading: Reading) -> Iterator[tuple[int, int, Row]]:
    rows = _csv(path)
    names, number = _header(path, rows), 0
    while True:
        line = rows.line_num + 1
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            reading.bad(path, f"row {number} (line {line})", _why(error), "look for a quote that is not closed")
            continue
        if not fields:  # an empty line
            continue
        number += 1
        if len(fields) != len(names):
            what = f"it has {len(fields)} fields, and the header has {len(names)}"
            reading.bad(path, f"row {number} (line {line})", what, "put quotes around a field with a separator in it")
            continue
        yield number, line, dict(zip(names, fields, strict=True))


def _csv(path: Path) -> Any:
    """A reader at the first line; the separator is the one that occurs most often in this line."""
    try:
        text = read_text(path)
    except DataError as error:
        problem = error.problem
        if problem.what == "it is not UTF-8 text":
            raise DataError(Problem(problem.file, problem.record, problem.what, "save it as CSV in UTF-8")) from None
        raise
    first = text.split("\n", 1)[0]
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)


def _header(path: Path, rows: Any) -> list[str]:
    try:
        names = [name.strip() for name in next(rows, [])]
    except csv.Error as error:
        raise DataError(Problem(str(path), "line 1", _why(error), "give a header with the names of columns")) from None
    if not any(names):
        raise DataError(Problem(str(path), "line 1", "it has no header", "give a first line with the names of columns"))
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(Problem(str(path), "line 1", f"two columns are called {name!r}", "rename one"))
    return names


def _why(error: csv.Error) -> str:
    if "field limit" in str(error):
        return f"a field has more than {LONGEST:,} characters"
    return "a quote is opened and not closed" if "end of data" in str(error) else f"it cannot be read ({error})"


_READERS: dict[str, Callable[[Path, tuple[str, ...], Reading], Iterator[tuple[int, int, Row]]]] = {
    **dict.fromkeys(_KINDS[0], _columnar),
    **dict.fromkeys(_KINDS[1], _separated),
    **dict.fromkeys(_KINDS[2], _json_lines),
    **dict.fromkeys(_KINDS[3], _json_list),
}
"""A function that yields the rows of a file with their numbers and, in a text file, their lines."""
