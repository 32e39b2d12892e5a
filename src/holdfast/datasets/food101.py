"""Food-101: photographs of dishes, by the official lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.classes import listed, readable
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1


def _root(folder: Path) -> Path:
    return first_folder(folder, ["food-101", "food101"], ["meta"])


def _kinds(folder: Path) -> list[str]:
    return lines_of(first_file(_root(folder), ["meta/classes.txt"], "unpack food-101.tar.gz there"))


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root, kinds = _root(folder), _kinds(folder)
    path = first_file(root, [f"meta/{split}.txt"], "unpack food-101.tar.gz there")
    rows = ((row, f"{line}.jpg", line.rpartition("/")[0]) for row, line in enumerate(lines_of(path), 1))
    numbers = {kind: number for number, kind in enumerate(kinds)}
    names = [readable(kind) for kind in kinds]
    yield from listed(path, rows, numbers, names, ImageFiles(root), ["images/"], reading)


DATASET = Dataset(
    name="food101",
    splits=("train", "test"),
    read=_read,
    present=lambda folder: (_root(folder) / "meta" / "classes.txt").is_file(),
    counts={"train": 75_750, "test": 25_250},
    classes=lambda folder: [readable(kind) for kind in _kinds(folder)],
)
