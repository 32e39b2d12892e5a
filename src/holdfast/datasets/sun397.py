"""SUN397: photographs of scenes, by the first of the ten official partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.classes import listed, readable
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_LISTS = {"train": "Training_01.txt", "test": "Testing_01.txt"}
_NAMES = "ClassName.txt"


def _list(folder: Path, name: str) -> Path:
    root = first_folder(folder, ["Partitions", "SUN397"], [name])
    return first_file(root, [name], "unpack Partitions.zip there")


def _kinds(folder: Path) -> list[str]:
    return [line.strip() for line in lines_of(_list(folder, _NAMES))]


def _words(kind: str) -> str:
    """`/a/apartment_building/outdoor` as `outdoor apartment building`."""
    return readable(" ".join(reversed(kind.strip("/").split("/")[1:])))


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path, kinds = _list(folder, _LISTS[split]), _kinds(folder)
    rows = (
        (row, line.strip().lstrip("/"), line.strip().rpartition("/")[0]) for row, line in enumerate(lines_of(path), 1)
    )
    numbers = {kind: number for number, kind in enumerate(kinds)}
    names = [_words(kind) for kind in kinds]
    yield from listed(path, rows, numbers, names, ImageFiles(folder), ["SUN397/", ""], reading)


DATASET = Dataset(
    name="sun397",
    splits=("train", "test"),
    read=_read,
    present=lambda folder: any((folder / place / _LISTS["train"]).is_file() for place in ("", "Partitions", "SUN397")),
    counts={"train": 19_850, "test": 19_850},
    classes=lambda folder: [_words(kind) for kind in _kinds(folder)],
)
