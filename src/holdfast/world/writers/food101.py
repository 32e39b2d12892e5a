"""Food-101: a folder for each class, and lists of classes and of both splits."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from holdfast.world.writers.photographs import Photographs, write_lines

VERSION = 1
SHAPE = Photographs(6, 101, {"train": 750, "test": 250})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `images` and `meta`."""
    home, kinds, lists = folder / "food-101", SHAPE.kinds(scale), defaultdict[str, list[str]](list)
    for place, picture in enumerate(SHAPE.pictures(scale)):
        name = f"{kinds[picture.label].name.replace(' ', '_')}/{1_000_003 + 11 * place}"
        lists[picture.split].append(name)
        SHAPE.save(home / "images" / f"{name}.jpg", picture, kinds[picture.label], scale, seed)
    names = sorted(kind.name for kind in kinds)
    write_lines(home / "meta" / "classes.txt", [name.replace(" ", "_") for name in names])
    write_lines(home / "meta" / "labels.txt", [name.capitalize() for name in names])
    for split, lines in lists.items():
        write_lines(home / "meta" / f"{split}.txt", sorted(lines))
