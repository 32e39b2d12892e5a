"""Datasets as the Hugging Face hub stores them: tables of columns, one or more files for each split.

A folder may be a local snapshot (`train.parquet`, `data/train-00000-of-00001.parquet`, `default/train/0000.parquet`), a
repository in the hub's cache (`datasets--OWNER--NAME`), or files prepared or saved by the `datasets` library
(`NAME-train.arrow`, `train/data-00000-of-00001.arrow`). Nothing is downloaded. Tables are read a few rows at a time.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, get, open_file
from holdfast.datasets.formats.fields import label
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.errors import missing_extra
from holdfast.files import open_image, open_regular, refuse_outside
from holdfast.types import Example

Row: TypeAlias = dict[str, Any]

_SHARD = re.compile(r"(?P<name>.*?)(?:-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5}))?(?:-[0-9a-f]{16})?", re.ASCII)
# Folders of a layout, never of a dataset: a folder that holds several datasets must not be mistaken for one of them.
_LAYOUT = re.compile(
    r"data|default|plain_text|image_examples|[0-9]+\.[0-9]+\.[0-9]+|[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII
)
_NAMELESS = re.compile(r"[0-9]{4,5}|data", re.ASCII)
_SUFFIXES = (".parquet", ".arrow")
_END = b"\xff\xff\xff\xff\0\0\0\0"
_DEPTH = 4
_ROWS = 256
_REMEDY = "download it again"


@dataclass(frozen=True)
class Hub:
    """The hub's copy of a dataset.

    `columns` are those that a table must have. `splits` maps our name of a split to the hub's, if they differ.
    `example(row, split, number, folder)` makes an example from a row (without absent values), or raises ValueError.
    If a row has several examples, `parts(row)` returns a row for each.
    If `common` is true, other datasets have the same columns too, and the folder's path must contain this one's name
    for it to be recognised.
    """

    columns: tuple[str, ...]
    example: Callable[[Row, str, int, Path], Example]
    splits: Mapping[str, str]
    common: bool = False
    parts: Callable[[Row], Sequence[Row]] = lambda row: (row,)


def with_hub(dataset: Dataset, hub: Hub) -> Dataset:
    """The dataset, extended to read the hub's tables if a folder has no official files.

    >>> nothing = Dataset("sst2", ("train",), lambda folder, split, reading: iter(()), lambda folder: False, {})
    >>> hub = Hub(("sentence",), lambda row, split, number, folder: Example(str(number), text=row["sentence"]), {})
    >>> with_hub(nothing, hub).present(Path("nowhere"))
    False
    """

    def present(folder: Path) -> bool:
        return dataset.present(folder) or _recognised(dataset, hub, folder)

    def read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        if dataset.present(folder) or not any(_tables(folder, name) for name in _names(dataset, hub).values()):
            return dataset.read(folder, split, reading)
        return _read(dataset, hub, folder, split, reading)

    return replace(dataset, read=read, present=present)


def class_number(row: Row, name: str, classes: int, hidden: bool) -> int | None:
    """A class number; if a split's labels are hidden, -1, an empty text or no value at all means None.

    >>> class_number({"label": -1}, "label", 2, hidden=True), class_number({"label": "1"}, "label", 2, hidden=False)
    (None, 1)
    """
    if hidden and row.get(name, -1) in (-1, "-1", ""):
        return None
    return label(get(row, name, object), classes)


def picture(row: Row, name: str, folder: Path) -> Path | NDArray[np.uint8]:
    """A picture: decoded if the table contains it, else the file that the table names.

    >>> picture({"img": {"path": "7.png"}}, "img", Path("nowhere"))
    Traceback (most recent call last):
    ValueError: its 'img' contains no picture, and the file '7.png' does not exist
    """
    value: Any = get(row, name, object)
    content, file = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
    if not isinstance(content, bytes):
        if (path := ImageFiles(folder).find([file]) if isinstance(file, str) else None) is None:
            raise ValueError(f"its {name!r} contains no picture, and the file {file!r:.80} does not exist")
        return path
    from holdfast.data.images import to_rgb

    try:
        with open_image(content) as image:
            return np.array(to_rgb(image))
    except Exception as error:  # broken pictures make the decoder fail in a dozen ways
        why = "it is not an image" if type(error).__name__ == "UnidentifiedImageError" else f"{error!s:.80}"
        raise ValueError(f"its {name!r} cannot be decoded ({why})") from None


def picture_name(row: Row, name: str) -> str:
    """The name that a picture had as a file, without its extension; empty if the table does not say.

    >>> picture_name({"image": {"path": "a/n01440764_10026.JPEG"}}, "image")
    'n01440764_10026'
    """
    value = row.get(name)
    path = value.get("path") if isinstance(value, dict) else None
    return PurePosixPath(path).stem if isinstance(path, str) else ""


def _names(dataset: Dataset, hub: Hub) -> dict[str, tuple[str, ...]]:
    """The possible names of each split in file names."""
    return {split: tuple(dict.fromkeys((hub.splits.get(split, split), split))) for split in dataset.splits}


def _recognised(dataset: Dataset, hub: Hub, folder: Path) -> bool:
    if hub.common:
        parts = [part.lower().replace("-", "").replace("_", "") for part in folder.absolute().parts[-_DEPTH:]]
        if not any(dataset.name in part for part in parts):
            return False
    for names in _names(dataset, hub).values():
        for path in _tables(folder, names)[:1]:
            try:
                columns, _ = _open(path)
            except DataError:
                continue
            if set(hub.columns) <= set(columns):
                return True
    return False


def _read(dataset: Dataset, hub: Hub, folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    names = _names(dataset, hub)[split]
    paths = _tables(folder, names)
    if not paths:
        what = f"no such split: {names[0]!r}"
        raise DataError(Problem(str(folder), "", what, f"download those of {names[0]!r} too"))
    check_shards(folder, paths, reading)
    number, seen = -1, set()
    for path in paths:
        for row, record in rows_of(path, hub.columns, reading):
            number += 1
            if record is None:
                continue
            for part in hub.parts(record):
                try:
                    example = hub.example(part, split, number, folder)
                    if example.id in seen:
                        raise ValueError(f"its id {example.id:.40} occurred before")
                except ValueError as error:
                    reading.bad(path, f"row {row}", str(error), _REMEDY)
                    continue
                seen.add(example.id)
                yield example
    if number < 0:
        raise DataError(Problem(str(paths[0]), "", "it has no rows", _REMEDY))


def _tables(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """The tables of a split, in order: named after it, or in a folder named after it."""
    return list(_walk(snapshot_of(folder), names, _DEPTH))


def _walk(folder: Path, names: tuple[str, ...], depth: int) -> Iterator[Path]:
    tables, inner = [], []
    refuse_outside(folder)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIXES) and entry.is_file():
                    tables.append(folder / entry.name)
                elif (_LAYOUT.fullmatch(entry.name) or _is_split(entry.name, names)) and entry.is_dir():
                    inner.append(folder / entry.name)
    except OSError:
        return
    owned = _is_split(folder.name, names)
    for path in sorted(tables):
        name = _shard(path)["name"]
        if _is_split(name, names) or (owned and _NAMELESS.fullmatch(name)):
            yield path
    for path in sorted(inner) if depth else ():
        yield from _walk(path, names, depth - 1)


def _is_split(name: str, names: tuple[str, ...]) -> bool:
    """Whether a name, or the end of it (`imdb-train`), is that of a split."""
    return any(name == known or name.endswith(f"-{known}") for known in names)


def _shard(path: Path) -> re.Match[str]:
    match = _SHARD.fullmatch(path.stem)
    assert match is not None  # the pattern's first part takes anything
    return match


def snapshot_of(folder: Path) -> Path:
    """The folder itself, or the snapshot of a repository in the hub's cache: that of `main`, or the latest."""
    snapshots = folder / "snapshots"
    try:
        found = sorted((path for path in snapshots.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    except OSError:
        return folder
    try:
        main = snapshots / (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        main = folder
    return main if main in found or not found else found[-1]


def check_shards(folder: Path, paths: list[Path], reading: Reading) -> None:
    """Check that the files form one copy of the split, with all of `train-00000-of-00003`, so that no row moves."""
    copies: dict[tuple[Path, str, str, str | None], Path] = {}
    numbers: dict[str, Path] = {}
    for path in paths:
        shard = _shard(path)
        name = "" if _NAMELESS.fullmatch(shard["name"]) else shard["name"]
        first = copies.setdefault((path.parent, path.suffix, name, shard["count"]), path)
        twin = next(iter(copies.values())) if len(copies) > 1 else numbers.get(shard["number"])
        if twin is not None:
            what = f"{twin.relative_to(folder)} and {path.relative_to(folder)} are two copies of one split"
            raise DataError(Problem(str(folder), "", what, "leave one of them"))
        if shard["count"]:
            numbers[shard["number"]] = path
    for missing in range(int(_shard(first)["count"] or 0)):
        if f"{missing:05d}" not in numbers:
            name = first.name.replace(f"-{_shard(first)['number']}-of-", f"-{missing:05d}-of-")
            reading.bad(first.with_name(name), "", "this part of the split is missing", "download it too")


def _open(path: Path) -> tuple[list[str], Callable[[], Iterator[Any]]]:
    """The columns of a table, and a function that reads it: batches of a few rows each."""
    open_file(path).close()  # otherwise pyarrow's error for a file without read permission would look like damage
    try:
        if path.suffix == ".arrow":
            arrow, ipc = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.ipc"))
            _check_end(path)
            stream = ipc.open_stream(arrow.memory_map(str(path)))
            return list(stream.schema.names), lambda: iter(stream)
        parquet = importlib.import_module("pyarrow.parquet")
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        return list(file.schema_arrow.names), lambda: _whole(file)
    except ImportError:
        raise missing_extra(f"{path}: tables of the hub need pyarrow", "hub") from None
    except Exception as error:  # a broken file can fail in any way inside pyarrow
        raise _broken(path, error) from None


def _check_end(path: Path) -> None:
    """A stream that is cut between two batches reads like a shorter one: only the mark at its end is missing."""
    with open_regular(path) as file:
        file.seek(max(0, path.stat().st_size - len(_END)))
        if file.read() != _END:
            raise ValueError("it breaks off")


def _whole(file: Any) -> Iterator[Any]:
    count = 0
    for batch in file.iter_batches(batch_size=_ROWS):
        count += batch.num_rows
        yield batch
    if count != file.metadata.num_rows:
        raise ValueError(f"{count} of {file.metadata.num_rows} rows are there")


def columns_of(path: Path) -> list[str]:
    """The names of a table's columns."""
    return _open(path)[0]


def rows_of(path: Path, columns: tuple[str, ...], reading: Reading) -> Iterator[tuple[int, Row | None]]:
    """The rows of a table with their numbers, without absent values; None for a row that was reported."""
    found, batches = _open(path)
    for name in columns:
        if name not in found:
            raise DataError(Problem(str(path), "", f"it has no column {name!r}", "is it the right dataset?"))
    first = 0
    for batch in _sound(path, batches):
        for row in range(batch.num_rows):
            try:  # one row at a time: a table of pictures is large, and one bad text spoils only its own row
                (record,) = batch.slice(row, 1).to_pylist()
            except Exception as error:
                reading.bad(path, f"row {first + row}", f"it cannot be read ({error!s:.80})", _REMEDY)
                yield first + row, None
                continue
            yield first + row, {name: value for name, value in record.items() if value is not None}
        first += batch.num_rows


def _sound(path: Path, batches: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """The batches; those of a memory-mapped file are checked, because its offsets may point anywhere in memory."""
    try:
        for batch in batches():
            if path.suffix == ".arrow":
                batch.validate(full=True)
            yield batch
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> DataError:
    lines = str(error).splitlines() or [type(error).__name__]
    return DataError(Problem(str(path), "", f"it is not a complete table ({lines[0]:.120})", _REMEDY))
