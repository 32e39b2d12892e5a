"""COBJ, the published archive of the CFST benchmark: crops of Objects365 that show a combination of things.

The target is the rank of the combination: among those of `val` for train, val and test, and among those of its own
file for each few-shot test (`sys`, `pro`, `non`, `noc`). The paper gives round numbers of images ("around 1000" for
each combination), so there are no official counts to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file, read_json
from holdfast.datasets.formats.combinations import classes_of, combination
from holdfast.datasets.formats.fields import identifier, objects, optional
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

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
    classes = classes_of(source, "label")
    pictures, seen = ImageFiles(root, root.parent), set()
    place_of_images = f"continual/{split}" if split in _CONTINUAL else f"fewshot/{split}"
    for position, record in objects(path, read_json(path), reading, "image"):
        place = f"image at position {position}"
        try:
            name = identifier(record, "imageId" if "imageId" in record else "image_id")
            place = f"image {name:.60}"
            if name in seen:
                raise ValueError("it was there before")
            found = combination(record, "label")
            if found not in classes:
                raise ValueError(f"its combination {', '.join(found):.60} is not one of {source.name}")
            image = pictures.find([f"{place_of_images}/{name}.jpg"])
            if image is None:
                raise ValueError(f"its image {place_of_images}/{name:.60}.jpg is missing")
            extra = {"label": found, **optional(record, {"imageName": str})}
        except ValueError as error:
            reading.bad(path, place, str(error), _REMEDY)
            continue
        seen.add(name)
        yield Example(name, classes[found], (image,), extra=extra)


DATASET = Dataset(name="cobj", splits=_SPLITS, read=_read, present=_present, counts={})
