"""Oxford-IIIT Pets: photographs that are named after their breed, with lists of both splits and of all."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from holdfast.world.writers.photographs import Photographs, write_lines

VERSION = 1
SHAPE = Photographs(7, 37, {"trainval": 100, "test": 99})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `images` and `annotations`."""
    kinds, lists = SHAPE.kinds(scale), defaultdict[str, list[str]](list)
    for picture in SHAPE.pictures(scale):
        name = f"{kinds[picture.label].name.replace(' ', '_')}_{picture.number}"
        lists[picture.split].append(f"{name} {picture.label + 1} {picture.label % 2 + 1} {picture.label // 2 + 1}")
        SHAPE.save(folder / "images" / f"{name}.jpg", picture, kinds[picture.label], scale, seed)
    for split, lines in lists.items():
        write_lines(folder / "annotations" / f"{split}.txt", lines)
    header = ["#Image CLASS-ID SPECIES BREED ID", "#ID: 1:37 Class ids", "#SPECIES: 1:Cat 2:Dog"]
    write_lines(
        folder / "annotations" / "list.txt", [*header, *sorted(line for lines in lists.values() for line in lines)]
    )
