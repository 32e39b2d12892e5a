"""Describable Textures: photographs of 47 kinds of texture, by the first of the ten official partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.classes import folders_in, listed, readable
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1


def _root(folder: Path) -> Path:
    return first_folder(folder, ["dtd"], ["labels"])


def _classes(folder: Path) -> list[str]:
    return [readable(name) for name in folders_in(_root(folder) / "images")]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [f"labels/{split}1.txt"], "unpack dtd-r1.0.1.tar.gz there")
    numbers = {name: number for number, name in enumerate(folders_in(root / "images"))}
    rows = ((row, line, line.rpartition("/")[0]) for row, line in enumerate(lines_of(path), 1))
    yield from listed(path, rows, numbers, _classes(folder), ImageFiles(root), ["images/"], reading)


DATASET = Dataset(
    name="dtd",
    splits=("train", "val", "test"),
    read=_read,
    present=lambda folder: (_root(folder) / "labels" / "train1.txt").is_file(),
    counts={"train": 1_880, "val": 1_880, "test": 1_880},
    classes=_classes,
)
