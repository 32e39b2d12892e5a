"""Oxford-IIIT Pets: photographs of 37 breeds, by the official lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file
from holdfast.datasets.formats.classes import AGAIN, listed, readable
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1


def _root(folder: Path) -> Path:
    return first_folder(folder, ["oxford-iiit-pet", "oxford-pets"], ["annotations"])


def _lines(folder: Path, split: str) -> tuple[Path, list[tuple[int, str, str]]]:
    """The rows of a list: the number, the name of the picture, and the number of its class, from 1 on."""
    path = first_file(_root(folder), [f"annotations/{split}.txt"], "unpack annotations.tar.gz there")
    rows = [(row, line.split()) for row, line in enumerate(lines_of(path), 1) if not line.startswith("#")]
    return path, [(row, f"{words[0]}.jpg", words[1] if len(words) > 1 else "") for row, words in rows if words]


def _classes(folder: Path) -> list[str]:
    """The breed of each number: a picture has its breed's name and a number."""
    path, rows = _lines(folder, "trainval")
    found = {kind: readable(name.rpartition("_")[0]) for _, name, kind in rows}
    try:
        numbers = sorted(int(kind) for kind in found)
    except ValueError:
        numbers = []
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise DataError(Problem(str(path), "", "its classes are not numbered from 1 on", AGAIN))
    return [found[str(number)] for number in numbers]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path, rows = _lines(folder, split)
    names = _classes(folder)
    numbers = {str(number + 1): number for number in range(len(names))}
    yield from listed(path, rows, numbers, names, ImageFiles(_root(folder)), ["images/"], reading)


DATASET = Dataset(
    name="oxford_pets",
    splits=("trainval", "test"),
    read=_read,
    present=lambda folder: (_root(folder) / "annotations" / "trainval.txt").is_file(),
    counts={"trainval": 3_680, "test": 3_669},
    classes=_classes,
)
