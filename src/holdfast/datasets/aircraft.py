"""FGVC-Aircraft: variants of aircraft, by the official lists of the 2013b release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.classes import listed
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1


def _root(folder: Path) -> Path:
    return first_folder(folder, ["fgvc-aircraft-2013b/data", "data"], ["variants.txt"])


def _classes(folder: Path) -> list[str]:
    return lines_of(first_file(_root(folder), ["variants.txt"], "unpack fgvc-aircraft-2013b.tar.gz there"))


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root, names = _root(folder), _classes(folder)
    path = first_file(root, [f"images_variant_{split}.txt"], "unpack fgvc-aircraft-2013b.tar.gz there")
    rows = ((row, *line.partition(" ")[::2]) for row, line in enumerate(lines_of(path), 1))
    numbers = {name: number for number, name in enumerate(names)}
    files = ((row, f"{image}.jpg", kind) for row, image, kind in rows)
    yield from listed(path, files, numbers, names, ImageFiles(root), ["images/"], reading)


DATASET = Dataset(
    name="aircraft",
    splits=("train", "val", "test"),
    read=_read,
    present=lambda folder: (_root(folder) / "images_variant_train.txt").is_file(),
    counts={"train": 3_334, "val": 3_333, "test": 3_333},
    classes=_classes,
)
