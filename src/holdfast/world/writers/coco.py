"""COCO: instances and captions of the 2014 and 2017 releases, with the same pictures under both naming schemes.

The picture with id N is `make_scene(seed, N)` in every dataset that is built on COCO. As in the original, a few
pictures are greyscale; none is CMYK.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.language import Caption, captions
from holdfast.world.scene import Box, Scene, make_scene
from holdfast.world.vocabulary import COCO_NOUNS, THINGS
from holdfast.world.writers.json_files import list_file, write_json
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
PLANTED = {"val2014": 1}
"""Bad records of a split, such as the official files have, which a reader reports."""
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train2014": 160, "val2014": 80, "test2015": 20},
    "small": {"train2014": 2_000, "val2014": 600, "test2015": 200},
    "large": {"train2014": 30_000, "val2014": 6_000, "test2015": 2_000},
    "paper": {"train2014": 82_783, "val2014": 40_504, "test2015": 81_434},
}

# The gaps in the official numbers are kept, so that a reader that counts from 1 to 80 fails.
_MISSING_IDS = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
CATEGORIES: dict[str, int] = dict(
    zip(COCO_NOUNS, (number for number in range(1, 91) if number not in _MISSING_IDS), strict=True)
)
"""The official number of each of the 80 categories."""

# An eight-sided outline, in units of the box.
_OUTLINE = ((0.3, 0.0), (0.7, 0.0), (1.0, 0.3), (1.0, 0.7), (0.7, 1.0), (0.3, 1.0), (0.0, 0.7), (0.0, 0.3))
_LICENSES = [
    {
        "url": "http://creativecommons.org/licenses/by-nc-sa/2.0/",
        "id": 1,
        "name": "Attribution-NonCommercial-ShareAlike",
    },
    {"url": "http://creativecommons.org/licenses/by/2.0/", "id": 4, "name": "Attribution License"},
]


def image_ids(split: str, scale: str) -> list[int]:
    """The ids of a split's images. Splits interleave, larger scales extend smaller ones, and 2017 re-splits 2014.

    >>> image_ids("train2014", "tiny")[:4], image_ids("val2014", "tiny")[:2]
    ([9, 12, 24, 27], [15, 30])
    >>> len(image_ids("train2017", "paper")), len(image_ids("val2017", "paper"))
    (118287, 5000)
    """
    counts = at_scale(COUNTS, scale)
    match split:
        case "train2014":
            positions = [5 * (index // 2) + index % 2 for index in range(counts[split])]
        case "val2014":
            positions = [5 * index + 2 for index in range(counts[split])]
        case "test2015":
            positions = [5 * (index // 2) + 3 + index % 2 for index in range(counts[split])]
        case "val2017":
            return [n for i, n in enumerate(image_ids("val2014", scale)) if _is_val2017(i)][:5_000]
        case "train2017":
            held = set(image_ids("val2017", scale))
            both = image_ids("train2014", scale) + image_ids("val2014", scale)
            return sorted(number for number in both if number not in held)
        case _:
            raise AssertionError(f"COCO has no split {split}")
    return [9 + 3 * position for position in positions]


def _is_val2017(index: int) -> bool:
    """About one in eight of val2014; more among the first ones, so that small scales have enough to test on."""
    return index % 5 < 2 if index < 600 else index % 8 == 0


def file_name(split: str, image_id: int) -> str:
    """The official name of an image in a split's folder.

    >>> file_name("val2014", 15), file_name("val2017", 15)
    ('COCO_val2014_000000000015.jpg', '000000000015.jpg')
    """
    return f"{image_id:012d}.jpg" if split.endswith("2017") else f"COCO_{split}_{image_id:012d}.jpg"


def image_size(image_id: int) -> tuple[int, int]:
    """The width and height of a picture: one in five of each split is upright, whatever the spacing of the ids.

    >>> image_size(9), image_size(15)
    ((72, 96), (96, 72))
    """
    return (72, 96) if image_id // 15 % 5 == 0 else (96, 72)


@lru_cache(maxsize=4_096)  # at small scales, a scene is made once for all files that refer to it
def coco_scene(image_id: int, seed: int) -> Scene:
    """The scene of an image.

    >>> coco_scene(9, seed=0).number
    9
    """
    return make_scene(seed, image_id)


@lru_cache(maxsize=4_096)
def image_captions(image_id: int, seed: int) -> tuple[Caption, ...]:
    """The captions of an image: usually five, sometimes six or seven.

    >>> len(image_captions(9, seed=0)), len(image_captions(33, seed=0))
    (5, 6)
    """
    count = 5 + (image_id % 11 == 0) + (image_id % 53 == 0)
    return tuple(captions(coco_scene(image_id, seed), np.random.default_rng([seed, image_id, 13]), count))


def write_images(folder: Path, split: str, numbers: Iterable[int], seed: int) -> None:
    """Write the pictures of a split under their official names; a few are greyscale.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_images(Path(folder), "val2014", [15], seed=0)
    ...     [path.name for path in (Path(folder) / "val2014").iterdir()]
    ['COCO_val2014_000000000015.jpg']
    """
    (folder / split).mkdir(parents=True, exist_ok=True)
    with drawing() as draw:
        for number in numbers:
            draw(_write_image, folder / split / file_name(split, number), number, seed)


def _write_image(path: Path, number: int, seed: int) -> None:
    save_scene(path, coco_scene(number, seed), image_size(number), "grey-jpeg" if number % 47 == 0 else "jpeg")


def write_captions(folder: Path, split: str, scale: str, seed: int) -> None:
    """Write `annotations/captions_<split>.json`; some captions end in a space or newline, as some real ones do.

    >>> import json, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_captions(Path(folder), "val2017", "tiny", seed=0)
    ...     list(json.loads((Path(folder) / "annotations" / "captions_val2017.json").read_text()))
    ['info', 'licenses', 'images', 'annotations']
    """
    head = _info(split, scale)
    with list_file(folder / "annotations" / f"captions_{split}.json", head, "annotations") as add:
        for image_id in image_ids(split, scale):
            for index, caption in enumerate(image_captions(image_id, seed)):
                end = " " if index == 1 and image_id % 7 == 2 else "\n" if index == 2 and image_id % 17 == 5 else ""
                add({"image_id": image_id, "id": 10 * image_id + index, "caption": caption.text + end})


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=500, pictures=500, pixels=6912, values=0)
    """
    counts = at_scale(COUNTS, scale)
    both = counts["train2014"] + counts["val2014"]  # once for 2014, once for 2017
    return Amount(2 * both + counts["test2015"], 2 * both + counts["test2015"], 96 * 72)


def write(folder: Path, scale: str, seed: int, *, images: bool = True, flaws: bool = True) -> None:
    """Write all of COCO at a scale: annotations of both releases and, with `images`, the pictures.

    With `flaws`, one box of val2014 has no height, like a few of the official ones; a reader reports it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     len(list((Path(folder) / "annotations").iterdir()))
    9
    """
    for split in ("train2014", "val2014", "train2017", "val2017"):
        write_captions(folder, split, scale, seed)
        _write_instances(folder, split, scale, seed, flaws and split == "val2014")
    write_json(
        folder / "annotations" / "image_info_test2015.json", {**_info("test2015", scale), "categories": _categories()}
    )
    if images:
        for split in ("train2014", "val2014", "test2015"):
            write_images(folder, split, image_ids(split, scale), seed)
        earlier = {number: split for split in ("train2014", "val2014") for number in image_ids(split, scale)}
        for split in ("train2017", "val2017"):
            (folder / split).mkdir(exist_ok=True)
            for number in image_ids(split, scale):
                source = folder / earlier[number] / file_name(earlier[number], number)
                shutil.copyfile(source, folder / split / file_name(split, number))


def _info(split: str, scale: str) -> dict[str, Any]:
    year = int(split[-4:])
    return {
        "info": {
            "description": f"Holdfast world in the format of COCO {year}",
            "url": "http://cocodataset.org",
            "version": "1.0",
            "year": year,
            "contributor": "Holdfast",
            "date_created": "2017/09/01",
        },
        "licenses": _LICENSES,
        "images": [_image(split, number) for number in image_ids(split, scale)],
    }


def _image(split: str, number: int) -> dict[str, Any]:
    width, height = image_size(number)
    name = file_name(split, number)
    return {
        "license": 1 if number % 2 else 4,
        "file_name": name,
        "coco_url": f"http://images.cocodataset.org/{split}/{name}",
        "height": height,
        "width": width,
        "date_captured": f"2013-11-{number % 28 + 1:02d} {number % 24:02d}:{number % 60:02d}:11",
        "flickr_url": f"http://farm{number % 9 + 1}.staticflickr.com/{number}_z.jpg",
        "id": number,
    }


def _categories() -> list[dict[str, Any]]:
    return [
        {"supercategory": THINGS[name].supercategory, "id": number, "name": name} for name, number in CATEGORIES.items()
    ]


def _write_instances(folder: Path, split: str, scale: str, seed: int, flaws: bool) -> None:
    path = folder / "annotations" / f"instances_{split}.json"
    numbers = image_ids(split, scale)
    with list_file(path, _info(split, scale), "annotations", {"categories": _categories()}) as add:
        for number in numbers:
            for annotation in _instances(number, seed):
                add(annotation)
        if flaws:
            add(_flat_instance(numbers[0]))


def _instances(number: int, seed: int) -> list[dict[str, Any]]:
    """Annotations of the things that have a category; one image in 37 was not annotated at all."""
    if number % 37 == 0:
        return []
    width, height = image_size(number)
    records: list[dict[str, Any]] = []
    for index, thing in enumerate(coco_scene(number, seed).things):
        if thing.noun not in CATEGORIES:
            continue
        if not records and number % 8 == 1:
            records.append(_crowd(number, thing.box, CATEGORIES[thing.noun]))
            continue
        left, top = round(thing.box.left * width, 2), round(thing.box.top * height, 2)
        wide, high = round(thing.box.width * width, 2), round(thing.box.height * height, 2)
        points = [(round(left + wide * x, 2), round(top + high * y, 2)) for x, y in _OUTLINE]
        records.append(
            {
                "segmentation": [[value for point in points for value in point]],
                "area": round(_area(points), 4),
                "iscrowd": 0,
                "image_id": number,
                "bbox": [left, top, wide, high],
                "category_id": CATEGORIES[thing.noun],
                "id": 100 * number + index,
            }
        )
    return records


def _area(points: list[tuple[float, float]]) -> float:
    following = points[1:] + points[:1]
    return abs(sum(x * v - u * y for (x, y), (u, v) in zip(points, following, strict=True))) / 2


def _crowd(number: int, box: Box, category: int) -> dict[str, Any]:
    """A crowd: whole pixels, run lengths down the columns, which begin with background; a twelve-digit id."""
    width, height = image_size(number)
    left, top = min(int(box.left * width), width - 1), min(int(box.top * height), height - 1)
    wide, high = max(1, min(int(box.width * width), width - left)), max(1, min(int(box.height * height), height - top))
    mask = np.zeros((height, width), bool)
    mask[top : top + high, left : left + wide] = True
    column_major = mask.T.ravel()
    edges = np.flatnonzero(np.diff(column_major)) + 1
    counts = np.diff(np.concatenate(([0], edges, [column_major.size]))).tolist()
    return {
        "segmentation": {"counts": [0, *counts] if column_major[0] else counts, "size": [height, width]},
        "area": wide * high,
        "iscrowd": 1,
        "image_id": number,
        "bbox": [left, top, wide, high],
        "category_id": category,
        "id": 900_100_000_000 + number,
    }


def _flat_instance(number: int) -> dict[str, Any]:
    return {
        "segmentation": [[10.0, 20.0, 30.0, 20.0, 20.0, 20.0]],
        "area": 0.0,
        "iscrowd": 0,
        "image_id": number,
        "bbox": [10.0, 20.0, 20.0, 0.0],
        "category_id": 1,
        "id": 100 * number + 99,
    }
