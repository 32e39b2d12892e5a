"""Rows as examples: which cells are inputs, which is the answer, and which rows belong together."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.benchmarks.cache import digest, exclusive, place
from holdfast.benchmarks.own.listing import Listed, refuse_beyond, split_of
from holdfast.benchmarks.table.files import Row, TableFile, find_tables, limits_of, read_rows
from holdfast.data.prepared import file_state, files_fingerprint
from holdfast.datasets.base import Reading
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.errors import UserError, in_bytes
from holdfast.files import FileError, bounds, within

_EVERY = 1 << 60
MOST_TEXT = 1 << 29
"""The maximum number of characters in a table: a compressed file of kilobytes can hold gigabytes."""
CONTINUOUS = 50
"""More different answers than this, with decimals in them, are not classes."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are used; empty for an unused one."""

    target: str
    image: str = ""
    text: str = ""
    by: str = ""
    split: str = ""
    group: str = ""

    def needed(self) -> dict[str, str]:
        """The required columns, by setting."""
        return {setting: name for setting, name in vars(self).items() if name}


@dataclass(frozen=True)
class _RowExample:
    id: str
    target: str
    image: Path | None
    text: str
    value: str
    split: str
    group: str


def list_table(data: Path, columns: Columns, images: str, skip: int) -> Listed:
    """The rows of a table as examples."""
    tables, reading = find_tables(data), Reading(skip=_EVERY)
    rows, seen, taken = list[_RowExample](), Counter[str](), 0
    for table in tables:
        pictures = _Pictures(data, table.path, images)
        for where, row in read_rows(table.path, columns.needed(), reading):
            try:
                found = _example(row, columns, table, pictures, seen)
            except FileError as error:
                reading.bad(table.path, where, f"{error.path}: {error.what}", error.remedy)
                continue
            except ValueError as error:
                what, _, remedy = str(error).partition(": ")
                reading.bad(table.path, where, what, remedy)
                continue
            rows.append(found)
            if (taken := taken + len(found.text)) > MOST_TEXT:
                raise UserError(f"{table.path} unpacks to more than {in_bytes(MOST_TEXT)} of text: give fewer rows")
    told = refuse_beyond(skip, reading.problems)
    if not rows:
        raise UserError(f"{data} has no rows" + (" that can be used" if told else ""))
    _refuse_numbers([row.target for row in rows], columns.target, len(rows))
    return Listed(
        [row.id for row in rows],
        [row.target for row in rows],
        [row.image for row in rows if row.image is not None] if columns.image else None,
        [row.text for row in rows] if columns.text else None,
        [row.value for row in rows] if columns.by else None,
        [row.split for row in rows] if columns.split or tables[0].split else None,
        [row.group for row in rows],
        told,
    )


def _example(row: Row, columns: Columns, table: TableFile, pictures: _Pictures, seen: Counter[str]) -> _RowExample:
    """The example of a row; raises a ValueError, with a remedy after a colon, if it cannot be used."""
    target = _cell(row, columns.target)
    text = _cell(row, columns.text) if columns.text else ""
    value = _cell(row, columns.by) if columns.by else ""
    split = table.split or ""
    if columns.split:
        word = _cell(row, columns.split)
        if (split := split_of(word) or "") == "":
            raise ValueError(f"its {columns.split!r} is {word!r:.40}, not a split: write train, validation or test")
    name, image = pictures.find(row, columns.image) if columns.image else ("", None)
    group = _cell(row, columns.group) if columns.group else name or text
    content = json.dumps([name, text, target, value, split, group])
    id = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    seen[id] += 1
    return _RowExample(f"{id}-{seen[id]}" if seen[id] > 1 else id, target, image, text, value, split, group)


def _cell(row: Row, name: str) -> str:
    """A cell as text."""
    value: Any = row.get(name)
    if isinstance(value, list | tuple | dict):
        raise ValueError(f"its {name!r} has several values: keep one, as text or a number")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None or value != value else str(value).strip()
    if not text:
        raise ValueError(f"its {name!r} is empty: fill it in")
    return text


def _refuse_numbers(targets: Sequence[str], column: str, rows: int) -> None:
    names = set(targets)
    if len(names) > CONTINUOUS and any("." in name for name in names):
        try:
            for name in names:
                float(name)
        except ValueError:
            return
        raise UserError(
            f"column {column!r} (benchmark.target) has {len(names)} different numbers, such as {targets[0]}: classes "
            "are learned here, not quantities. Give a column of classes, or of ranges such as 'low' and 'high'"
        )
    if rows > CONTINUOUS and len(names) == rows:
        raise UserError(f"column {column!r} (benchmark.target) has another answer in each row: is it the right column?")


class _Pictures:
    """The pictures of a table: in a folder, by name, or in the table itself, from which they are unpacked."""

    def __init__(self, data: Path, table: Path, images: str) -> None:
        if images and not Path(images).is_dir():
            raise UserError(f"benchmark.images is {images!r}: no such folder")
        self.roots = (
            [Path(images)] if images else list(dict.fromkeys([table.parent, data if data.is_dir() else table.parent]))
        )
        self.files, self.table = ImageFiles(*self.roots), table
        self.limits = bounds(Path(images)) if images else limits_of(data)
        self.unpacked: Path | None = None

    def find(self, row: Row, column: str) -> tuple[str, Path]:
        """A name of the picture in a cell, and its file."""
        value = row.get(column)
        content, name = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, value)
        if isinstance(content, bytes):
            return self._unpack(content)
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"its {column!r} holds no picture: give the name of a file")
        names = [self._relative(each) for each in dict.fromkeys([name.strip(), name.strip().replace("\\", "/")])]
        with within(self.limits):
            path = self.files.find(names)
        if path is None:
            raise ValueError(f"its picture {name.strip():.200} is not in {self.roots[0]}: {self._remedy(name)}")
        self.limits.check(path)
        return names[-1], path

    def _relative(self, name: str) -> str:
        """The name within the folder of the pictures; nothing else may be read."""
        for root in self.roots:
            if name.startswith("/") and Path(name).is_relative_to(root.absolute()):
                name = str(Path(name).relative_to(root.absolute()))
        return name.removeprefix("./")

    def _remedy(self, name: str) -> str:
        name = name.strip()
        if name.startswith("/") or ".." in name.split("/"):
            return "set benchmark.images to a folder that holds it; nothing outside that folder is read"
        if name[1:3] in (":\\", ":/"):
            return "write it without the drive, and set benchmark.images to the folder where the rest of it begins"
        return "set benchmark.images to the folder of the pictures, or correct the name"

    def _unpack(self, content: bytes) -> tuple[str, Path]:
        """A file with the content of a picture, named by its hash, in the cache."""
        if self.unpacked is None:
            name = digest("pictures", file_state(self.table.absolute()))
            self.unpacked = place(
                "table",
                name,
                f"{self.table.name}: its pictures",
                [],
                {str(self.table.absolute()): files_fingerprint(self.table)},
            )
            with exclusive(self.unpacked):
                self.unpacked.mkdir(exist_ok=True)
        name = hashlib.blake2b(content, digest_size=16).hexdigest()
        path = self.unpacked / name
        if not path.exists() or path.read_bytes() != content:  # a disk may have damaged it
            partial = path.with_name(f".{name}")
            partial.write_bytes(content)
            partial.rename(path)
        return name, path
