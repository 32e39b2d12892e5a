"""PartImageNet, the original release (OOD, COCO-style): parts of things, in splits with disjoint ImageNet classes.

The target is the tuple of the parts that an image shows (ranks of the category ids, which are officially 0 to 39). The
ImageNet class is in `extra["wnid"]`. Polygons are returned unchanged, even with fewer than three points. The `Seg`
release of PNG masks is not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file
from holdfast.datasets.formats.arrays import read_boxes
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.files import refuse_outside
from holdfast.types import Example

VERSION = 1
_SPLITS = ("train", "val", "test")
_NAME = re.compile(r"(n[0-9]{8})_[0-9]+\.\w+")


def _root(folder: Path) -> Path:
    inside = [name for split in _SPLITS for name in (f"{split}.json", f"annotations/{split}.json")]
    return first_folder(folder, ["PartImageNet_OOD", "PartImageNet"], inside)


def _present(folder: Path) -> bool:
    root = _root(folder)
    for split in _SPLITS:
        listed = (root / f"{split}.json").is_file() or (root / "annotations" / f"{split}.json").is_file()
        for pictures in (root / split, root / "images" / split):
            if listed and pictures.is_dir():
                refuse_outside(pictures)
                with os.scandir(pictures) as entries:
                    if any(re.match(r"n[0-9]{8}", entry.name) for entry in islice(entries, 50)):
                        return True
    return False


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [f"{split}.json", f"annotations/{split}.json"], "unpack PartImageNet_OOD.zip there")
    pictures = ImageFiles(root)
    for found in read_boxes(path, reading, fields=("segmentation",)):
        number, name = found.id, found.file_name.rpartition("/")[2]
        match = _NAME.fullmatch(name)
        if match is None:
            reading.bad(path, f"image {number}", f"its name {name!r:.60} is not an ImageNet name")
            continue
        places = (f"{split}/{match[1]}/", f"images/{split}/{match[1]}/", f"{split}/", f"images/{split}/", "images/")
        image = pictures.find(place + name for place in places)
        if image is None:
            reading.bad(path, f"image {number}", f"its image {name} is missing", f"unpack it in {root / split}")
            continue
        extra = {"wnid": match[1], "boxes": found.boxes, "labels": found.categories, **found.fields}
        yield Example(str(number), found.classes, (image,), extra=extra)


DATASET = Dataset(
    name="partimagenet",
    splits=_SPLITS,
    read=_read,
    present=_present,
    counts={"train": 16_540, "val": 2_957, "test": 4_598},
)
