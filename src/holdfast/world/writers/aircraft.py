"""FGVC-Aircraft: numbered photographs, with a list of variants and one of each split."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from holdfast.world.writers.photographs import Photographs, shuffled, write_lines

VERSION = 1
SHAPE = Photographs(1, 100, {"train": 34, "val": 33, "test": 33})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `data/images` and the lists of variants."""
    home, kinds = folder / "fgvc-aircraft-2013b" / "data", SHAPE.kinds(scale)
    names, lists = sorted(kind.name for kind in kinds), defaultdict[str, list[str]](list)
    write_lines(home / "variants.txt", names)
    for place, picture in enumerate(SHAPE.pictures(scale)):
        number = f"{34_309 + 7 * place:07d}"
        lists[picture.split].append(f"{number} {kinds[picture.label].name}")
        SHAPE.save(home / "images" / f"{number}.jpg", picture, kinds[picture.label], scale, seed)
    for split, lines in lists.items():
        write_lines(home / f"images_variant_{split}.txt", shuffled(lines, seed, 1))
