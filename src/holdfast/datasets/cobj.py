"""COBJ, the published archive of the CFST benchmark: crops of Objects365 that show a combination of things.

The target is the rank of the combination: among those of `val` for train, val and test, and among those of its own
file for each few-shot test (`sys`, `pro`, `non`, `noc`). The paper gives round numbers of images ("around 1000" for
each combination), so there are no official counts to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.combinations import read_combinations
from holdfast.datasets.formats.fields import identifier
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_CONTINUAL = ("train", "val", "test")
_SPLITS = (*_CONTINUAL, "sys", "pro", "non", "noc")
_REMEDY = "unpack the COBJ archive again"


def _file(split: str) -> str:
    return f"O365_continual_{split}_crop.json" if split in _CONTINUAL else f"O365_{split}_fewshot_crop.json"


def _root(folder: Path) -> Path:
    return first_folder(folder, ["COBJ/annotations", "annotations", "COBJ"], map(_file, _SPLITS))


def _present(folder: Path) -> bool:
    return any((_root(folder) / _file(split)).is_file() for split in _SPLITS)


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [_file(split)], _REMEDY)
    source = first_file(root, [_file("val")], _REMEDY) if split in ("train", "test") else path
    pictures = ImageFiles(root, root.parent)
    part = "continual" if split in _CONTINUAL else "fewshot"

    def place(record: dict[str, Any]) -> tuple[str, str]:
        name = identifier(record, "imageId" if "imageId" in record else "image_id")
        return name, f"{part}/{split}/{name}.jpg"

    yield from read_combinations(path, source, "label", pictures, place, {"imageName": str}, reading, _REMEDY)


DATASET = Dataset(name="cobj", splits=_SPLITS, read=_read, present=_present, beside=("continual", "fewshot"), counts={})
