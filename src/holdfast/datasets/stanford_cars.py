"""Stanford Cars: photographs of 196 models, with classes in MATLAB files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file
from holdfast.datasets.formats.classes import AGAIN, listed, read_mat
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_ANNOTATIONS = {
    "train": ["devkit/cars_train_annos.mat", "cars_train_annos.mat"],
    "test": ["cars_test_annos_withlabels.mat", "devkit/cars_test_annos_withlabels.mat"],
}
_META = ["devkit/cars_meta.mat", "cars_meta.mat"]


def _root(folder: Path) -> Path:
    return first_folder(folder, ["stanford_cars", "stanford-cars"], [*_META, "devkit"])


def _classes(folder: Path) -> list[str]:
    found = read_mat(first_file(_root(folder), _META, "unpack car_devkit.tgz there"), "class_names")
    return [str(name) for name in found]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root, names = _root(folder), _classes(folder)
    path = first_file(root, _ANNOTATIONS[split], "unpack the annotations of the split there")
    numbers = {str(number + 1): number for number in range(len(names))}
    found = read_mat(path, "annotations")
    try:
        rows = [(row, str(each["fname"]), str(int(each["class"]))) for row, each in enumerate(found, 1)]
    except (IndexError, KeyError, TypeError, ValueError):
        raise DataError(Problem(str(path), "", "its annotations have no fname and class", AGAIN)) from None
    yield from listed(path, rows, numbers, names, ImageFiles(root), [f"cars_{split}/"], reading)


DATASET = Dataset(
    name="stanford_cars",
    splits=("train", "test"),
    read=_read,
    present=lambda folder: any((_root(folder) / name).is_file() for name in _META),
    counts={"train": 8_144, "test": 8_041},
    classes=_classes,
)
