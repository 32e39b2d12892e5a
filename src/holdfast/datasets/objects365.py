"""Objects365 (v2, and v1 by its own names): boxes of 365 categories.

The target is the tuple of the classes that an image shows, each the rank of its category id (official ids are 1 to
365, so it is the id less one). Match categories by id, never by name: names have misspellings and trailing spaces, and
v1 orders them differently. The annotations of a file, some 25 million, are stored as columns of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.arrays import read_boxes
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_FLAGS = ("iscrowd", "isfake", "isreflected")


def _files(split: str) -> list[str]:
    names = [f"zhiyuan_objv2_{split}.json", f"objects365_{split}.json"]
    return [folder + name for folder in ("", "annotations/", f"{split}/") for name in names]


def _present(folder: Path) -> bool:
    return any((folder / name).is_file() for split in ("train", "val") for name in _files(split))


def _names(name: str, split: str) -> list[str]:
    """Where a picture may be: as listed, or by the last two parts of its path, as the archives unpack."""
    short = "/".join(name.split("/")[-2:])
    last = name.rpartition("/")[2]
    places = ("", "images/", f"{split}/", f"images/{split}/")
    return [name, *(place + short for place in places), *(place + last for place in places)]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = first_file(folder, _files(split), "unpack the annotations there")
    pictures = ImageFiles(folder)
    for found in read_boxes(path, reading, flags=_FLAGS):
        image = pictures.find(_names(found.file_name, split))
        if image is None:
            remedy = "unpack its patch; three are missing from the official v2 archives, which --skip-bad 3 allows"
            reading.bad(path, f"image {found.id}", f"its image {found.file_name:.100} is missing", remedy)
            continue
        extra = {"boxes": found.boxes, "labels": found.categories, **found.fields}
        yield Example(str(found.id), found.classes, (image,), extra=extra)


DATASET = Dataset(
    name="objects365",
    splits=("train", "val"),
    read=_read,
    present=_present,
    counts={"train": 1_742_289, "val": 80_000},
)
