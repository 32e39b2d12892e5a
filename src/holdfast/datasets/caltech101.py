"""Caltech-101: a folder of photographs for each class. Without an official split, all are read as one.

`BACKGROUND_Google` is not a class and is left out. Class names are the folders' in the singular, as words.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading
from holdfast.datasets.formats.classes import folders_in, in_folders, readable
from holdfast.datasets.formats.files import first_folder, names_in
from holdfast.types import Example

VERSION = 1
_HOME, _NO_CLASS = "101_ObjectCategories", "BACKGROUND_Google"
_SINGULAR = {"airplanes": "airplane", "Faces": "face", "Faces_easy": "close-up of a face"}
_SINGULAR |= {"Leopards": "leopard", "Motorbikes": "motorbike"}


def _root(folder: Path) -> Path:
    return first_folder(folder, ["caltech-101", "caltech101"], [_HOME]) / _HOME


def _kinds(folder: Path) -> list[str]:
    return [name for name in folders_in(_root(folder)) if name != _NO_CLASS]


def _classes(folder: Path) -> list[str]:
    return [_SINGULAR.get(name) or readable(name) for name in _kinds(folder)]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    if (root / _NO_CLASS).is_dir():
        reading.aside["no class: background"] = len(names_in(root / _NO_CLASS))
    yield from in_folders(root, _kinds(folder), _classes(folder), reading)


DATASET = Dataset(
    name="caltech101",
    splits=("all",),
    read=_read,
    present=lambda folder: _root(folder).is_dir(),
    counts={"all": 8_677},
    classes=_classes,
)
