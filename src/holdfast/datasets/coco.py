"""COCO: images with boxed and named things, and with captions, in the splits of 2014 and 2017.

The hub's columns (`detection-datasets/coco`, the split of 2017) can be read too. They say which categories an image
shows, but not the order of a box's numbers: boxes are left out rather than guessed. They have no captions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, get
from holdfast.datasets.formats.boxes import numbers
from holdfast.datasets.formats.fields import label
from holdfast.datasets.formats.hub import Hub, Row, picture, with_hub
from holdfast.datasets.formats.image_files import COCO_BESIDE, ImageFiles, coco_names, coco_roots
from holdfast.datasets.formats.json_stream import stream_arrays
from holdfast.types import Example

VERSION = 1
_COUNTS = {"train2014": 82_783, "val2014": 40_504, "train2017": 118_287, "val2017": 5_000}
_KINDS = ("instances", "captions")


@dataclass(slots=True)
class _Image:
    """The annotation files' information about one image."""

    file_name: str
    width: int
    height: int
    categories: set[int] = field(default_factory=set)
    instances: list[tuple[int, tuple[float, ...], int]] = field(default_factory=list)
    captions: list[tuple[int, str]] = field(default_factory=list)


_Images: TypeAlias = dict[int, _Image | None]
"""By id; None for an image that was reported, so that records that belong to it are not reported again."""


def _files(kind: str, split: str) -> list[str]:
    places = ("annotations/", "", "detections/annotations/")
    return [f"{place}{kind}_{split}.json" for place in places]


def _file(folder: Path, kind: str, split: str) -> Path | None:
    return next((folder / name for name in _files(kind, split) if (folder / name).is_file()), None)


def _lacks(folder: Path, split: str) -> list[str]:
    """The missing one of the two annotation files, if the other exists."""
    absent = [_files(kind, split)[0] for kind in _KINDS if _file(folder, kind, split) is None]
    return absent if len(absent) < len(_KINDS) else []


def _read(folder: Path, split: str, reading: Reading, *, pictures: bool = True) -> Iterator[Example]:
    """One example per image, with or without things in it; its target is the tuple of its categories' indices.

    An index counts the categories in the order of their ids, which have gaps. A box without size is reported and left
    out, but its category stays in the target: as in COCO's own tools, an annotation is a label whatever its box. If one
    of the two annotation files is missing, the images have no captions, or no boxes and target. Without `pictures`, the
    images' files need not exist.
    """
    instances, captions = (_file(folder, kind, split) for kind in _KINDS)
    images: _Images = {}
    categories: dict[int, str] = {}
    if instances is not None:
        categories = _read_instances(instances, images, reading)
    if captions is not None:
        _read_captions(captions, images, reading)
    if (file := instances or captions) is None:
        what = "no such file"
        raise DataError(
            Problem(str(folder / _files("instances", split)[0]), "", what, "unpack COCO's annotations there")
        )
    if not images:
        raise DataError(Problem(str(file), "", "it has no images", "download it again"))
    indices = {number: index for index, number in enumerate(sorted(categories))}
    files = ImageFiles(*coco_roots(folder))
    folders = (split, *(name for name in _COUNTS if name != split))
    for number, image in images.items():
        if image is None:
            continue
        shown: tuple[Path, ...] = ()
        if pictures:
            path = files.find([f"{split}/{image.file_name}"]) or files.find(coco_names(number, folders))
            if path is None:
                what = f"its file {image.file_name} is missing"
                reading.bad(file, f"image {number}", what, f"unpack {split}.zip in {folder}")
                continue
            shown = (path,)
        ids = tuple(category for category, _, _ in image.instances)
        extra = {
            "captions": tuple(text for _, text in image.captions),
            "caption_ids": tuple(caption for caption, _ in image.captions),
            "boxes": tuple(box for _, box, _ in image.instances),
            "labels": tuple(categories[category] for category in ids),
            "category_ids": ids,
            "iscrowd": tuple(crowd for _, _, crowd in image.instances),
            "width": image.width,
            "height": image.height,
        }
        target = None if instances is None else tuple(sorted(indices[category] for category in image.categories))
        yield Example(str(number), target, shown, "", (), extra)


def _read_instances(file: Path, images: _Images, reading: Reading) -> dict[int, str]:
    """Fill in the images and the things in them; return the categories' names by id."""
    categories: dict[int, str] = {}
    found: list[tuple[int, int, int, tuple[float, ...], int]] = []
    for array, count, record in stream_arrays(file, "images", "annotations", "categories"):
        try:
            number = get(_object(record), "id", int)
            if array == "images":
                _add_image(images, number, record)
            elif array == "categories":
                if number in categories:
                    raise ValueError("its id occurred before")
                categories[number] = get(record, "name", str)
            else:
                crowd = get(record, "iscrowd", int) if "iscrowd" in record else 0
                image_id, category_id = get(record, "image_id", int), get(record, "category_id", int)
                found.append((number, image_id, category_id, numbers(get(record, "bbox", list), 4), crowd))
        except ValueError as error:
            _bad(reading, file, array, count, record, str(error))
    for number, image_id, category_id, box, crowd in found:
        if image_id not in images:
            reading.bad(file, f"annotation {number}", f"unknown image {image_id}")
        elif category_id not in categories:
            reading.bad(file, f"annotation {number}", f"unknown category {category_id}")
        elif (image := images[image_id]) is not None:
            image.categories.add(category_id)
            if min(box[2:]) > 0:
                image.instances.append((category_id, box, crowd))
            else:
                reading.bad(file, f"annotation {number}", f"its box {list(box)} has no size")
    return categories


def _read_captions(file: Path, images: _Images, reading: Reading) -> None:
    """Fill in the captions, and also the images if no other file named them."""
    found: list[tuple[int, int, str]] = []
    listed: _Images = {}
    for array, count, record in stream_arrays(file, "images", "annotations"):
        try:
            number = get(_object(record), "id", int)
            if array == "images":
                _add_image(listed, number, record)
                continue
            text = get(record, "caption", str).strip()  # some end in spaces or a new line
            if not text:
                raise ValueError("its caption is empty")
            found.append((number, get(record, "image_id", int), text))
        except ValueError as error:
            _bad(reading, file, array, count, record, str(error))
    if not images:
        images.update(listed)
    for number in listed:
        if number not in images:
            reading.bad(file, f"image {number}", "the file of instances has no such image")
            images[number] = None
    for number, image_id, text in found:
        if image_id not in images:
            reading.bad(file, f"annotation {number}", f"unknown image {image_id}")
        elif (image := images[image_id]) is not None:
            image.captions.append((number, text))


def _add_image(images: _Images, number: int, record: dict[str, Any]) -> None:
    if number in images:
        raise ValueError("its id occurred before")
    images[number] = None
    width, height = get(record, "width", int), get(record, "height", int)
    if min(width, height) < 1:
        raise ValueError(f"its size {width} x {height} is not positive")
    file_name = get(record, "file_name", str)
    if "/" in file_name:
        raise ValueError(f"its file_name {file_name!r:.60} is not a plain name")
    images[number] = _Image(file_name, width, height)


def _bad(reading: Reading, file: Path, array: str, count: int, record: Any, what: str) -> None:
    kind = {"images": "image", "annotations": "annotation", "categories": "category"}[array]
    number = record.get("id") if isinstance(record, dict) else None
    reading.bad(file, f"{kind} {number}" if type(number) is int else f"{array}, number {count}", what)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.40} is not a JSON object")
    return value


def _present(folder: Path) -> bool:
    return any(_file(folder, kind, split) is not None for split in _COUNTS for kind in _KINDS)


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    image_id, width, height = get(row, "image_id", int), get(row, "width", int), get(row, "height", int)
    if min(width, height) < 1:
        raise ValueError(f"its size {width} x {height} is not positive")
    things: Any = row.get("objects")
    if isinstance(things, list):  # one record per thing, as stored by newer versions of `datasets`
        categories = [get(_object(thing), "category", int) for thing in things]
    else:
        categories = get(_object(things), "category", list)
    target = tuple(sorted({label(category, 80) for category in categories}))
    extra = {"captions": (), "caption_ids": (), "width": width, "height": height}
    return Example(str(image_id), target, (picture(row, "image", folder),), "", (), extra)


_OFFICIAL = Dataset(
    name="coco",
    splits=tuple(_COUNTS),
    read=_read,
    present=_present,
    beside=COCO_BESIDE,
    counts=_COUNTS,
    lacks=_lacks,
    annotations=partial(_read, pictures=False),
    pictured=lambda folder: not _present(folder) or ImageFiles(*coco_roots(folder)).any_folder(_COUNTS),
)
_COLUMNS = ("image_id", "image", "width", "height", "objects")
DATASET = with_hub(_OFFICIAL, Hub(_COLUMNS, _from_hub, {"train2017": "train", "val2017": "val"}, common=True))
ANNOTATIONS = _OFFICIAL.without_pictures()
"""The contents of the annotation files, for uses without images: examples without them."""
