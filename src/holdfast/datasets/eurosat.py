"""EuroSAT (RGB): satellite pictures in a folder for each of ten kinds of land, without an official split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading
from holdfast.datasets.formats.classes import folders_in, in_folders
from holdfast.datasets.formats.files import first_folder
from holdfast.types import Example

VERSION = 1
_KINDS = ("AnnualCrop", "Forest", "Residential", "SeaLake")


def _root(folder: Path) -> Path:
    return first_folder(folder, ["2750", "EuroSAT_RGB", "EuroSAT/2750"], _KINDS)


def _classes(folder: Path) -> list[str]:
    return [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower() for name in folders_in(_root(folder))]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    yield from in_folders(root, folders_in(root), _classes(folder), reading)


DATASET = Dataset(
    name="eurosat",
    splits=("all",),
    read=_read,
    present=lambda folder: all((_root(folder) / kind).is_dir() for kind in _KINDS[:2]),
    counts={"all": 27_000},
    classes=_classes,
)
