"""Describable Textures: a folder for each class, and lists of ten partitions, of which only the first is written."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from holdfast.world.writers.photographs import Photographs, write_lines

VERSION = 1
SHAPE = Photographs(3, 47, {"train": 40, "val": 40, "test": 40})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `images` and `labels`."""
    home, kinds, lists = folder / "dtd", SHAPE.kinds(scale), defaultdict[str, list[str]](list)
    for picture in SHAPE.pictures(scale):
        kind = kinds[picture.label].name.replace(" ", "_")
        name = f"{kind}/{kind}_{picture.number:04d}.jpg"
        lists[picture.split].append(name)
        SHAPE.save(home / "images" / name, picture, kinds[picture.label], scale, seed)
    for split, lines in lists.items():
        write_lines(home / "labels" / f"{split}1.txt", sorted(lines))
