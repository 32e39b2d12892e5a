"""PartImageNet, the original release: parts of things as polygons, in splits whose classes are disjoint.

A class is a thing in one colour and pattern. Kept from the original: part ids from 0, `file_name` without its folder, a
polygon of only four numbers, a part in two annotations, and pictures like those of ImageNet: in each split one is a PNG
named .JPEG and one is CMYK, and some are greyscale.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.scene import Box, Scene, make_scene, parts_of
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.portraits import sorts
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Classes and images of each split.
COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "tiny": {"train": (10, 80), "val": (4, 24), "test": (6, 36)},
    "small": {"train": (40, 1_500), "val": (10, 250), "test": (16, 400)},
    "large": {"train": (109, 16_540), "val": (19, 2_957), "test": (30, 4_598)},
    "paper": {"train": (109, 16_540), "val": (19, 2_957), "test": (30, 4_598)},
}
PARTS = {
    "Quadruped": ("Head", "Body", "Foot", "Tail"),
    "Biped": ("Head", "Body", "Hand", "Foot", "Tail"),
    "Fish": ("Head", "Body", "Fin", "Tail"),
    "Bird": ("Head", "Body", "Wing", "Foot", "Tail"),
    "Snake": ("Head", "Body"),
    "Reptile": ("Head", "Body", "Foot", "Tail"),
    "Car": ("Body", "Tier", "Side Mirror"),
    "Bicycle": ("Body", "Head", "Seat", "Tier"),
    "Boat": ("Body", "Sail"),
    "Aeroplane": ("Head", "Body", "Engine", "Wing", "Tail"),
    "Bottle": ("Mouth", "Body"),
}
CATEGORIES = [f"{group} {part}" for group, parts in PARTS.items() for part in parts]
_GROUPS = {
    **{"dog": "Quadruped", "bird": "Bird", "fish": "Fish", "snake": "Snake", "lizard": "Reptile", "monkey": "Biped"},
    **{"car": "Car", "bicycle": "Bicycle", "boat": "Boat", "airplane": "Aeroplane", "bottle": "Bottle"},
    **dict.fromkeys(("cat", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"), "Quadruped"),
    **{"shark": "Fish", "turtle": "Reptile", "bus": "Car", "truck": "Car", "jeep": "Car", "motorcycle": "Bicycle"},
}
# The synthetic world's words for the same parts; "Tier" is the release's spelling of tyre.
_WORDS = {"leg": "Foot", "arm": "Hand", "wheel": "Tier", "mirror": "Side Mirror", "neck": "Body", "trunk": "Head"}
_SIZE = 96


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=140, pictures=140, pixels=9216, values=0)
    """
    pictures = sum(count for _, count in at_scale(COUNTS, scale).values())
    return Amount(pictures, pictures, _SIZE**2)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `{train,val,test}.json` and the images of their classes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['test', 'test.json', 'train', 'train.json', 'val', 'val.json']
    """
    listed = [{"id": n, "name": name, "supercategory": name.split()[0]} for n, name in enumerate(CATEGORIES)]
    looks = sorts(sum(classes for classes, _ in at_scale(COUNTS, scale).values()), list(_GROUPS))
    first = 0
    with drawing() as draw:
        for split, (classes, count) in at_scale(COUNTS, scale).items():
            images: list[dict[str, Any]] = []
            annotations: list[dict[str, Any]] = []
            for index in range(count):
                label = first + index % classes
                (noun, colour, pattern), wnid = looks[label], f"n{1_500_000 + 37 * label:08d}"
                name = f"{wnid}_{10_000 + 7 * index}.JPEG"
                scene = make_scene(seed, 30_000_000 + 100_000 * label + index, nouns=[noun])
                scene = replace(scene, things=(replace(scene.things[0], colour=colour, pattern=pattern),))
                kind = {3: "png", 9: "cmyk-jpeg"}.get(index, "grey-jpeg" if index % 41 == 5 else "jpeg")
                draw(save_scene, folder / split / wnid / name, scene, (_SIZE, _SIZE), kind)
                images.append({"file_name": name, "height": _SIZE, "width": _SIZE, "id": index})
                annotations += _annotations(scene, _GROUPS[noun], index, len(annotations))
            _spoil(annotations)
            write_json(folder / f"{split}.json", {"images": images, "annotations": annotations, "categories": listed})
            first += classes


def _annotations(scene: Scene, group: str, image: int, first: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts_of(scene.things[0]):
        name = f"{group} {_WORDS.get(part.name, part.name.capitalize())}"
        if name not in CATEGORIES:
            continue
        left, top, width, height = _pixels(part.box)
        corners = [left, top, left + width, top, left + width, top + height, left, top + height]
        found.append(
            {
                "segmentation": [corners],
                "area": round(width * height, 4),
                "iscrowd": 0,
                "image_id": image,
                "bbox": [left, top, width, height],
                "category_id": CATEGORIES.index(name),
                "id": first + len(found),
            }
        )
    return found


def _pixels(box: Box) -> list[float]:
    return [round(float(np.float64(value) * _SIZE), 2) for value in (box.left, box.top, box.width, box.height)]


def _spoil(annotations: list[dict[str, Any]]) -> None:
    """Introduce one polygon of four numbers, and one part that an occluder splits into two annotations."""
    annotations[1]["segmentation"] = [annotations[1]["segmentation"][0][:4]]
    whole = annotations[2]
    left, top, width, height = whole["bbox"]
    half = round(width / 2, 2)
    for record, start in ((whole, left), (dict(whole), round(left + half, 2))):
        record["bbox"] = [start, top, half, height]
        record["segmentation"] = [[start, top, start + half, top, start + half, top + height, start, top + height]]
        record["area"] = round(half * height, 4)
        if record is not whole:
            annotations.append(record | {"id": len(annotations)})
