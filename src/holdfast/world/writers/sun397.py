"""SUN397: a folder for each class below its first letter, and the lists of the first partition."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from holdfast.world.writers.photographs import LabelledThing, Photographs, write_lines

VERSION = 1
SHAPE = Photographs(9, 397, {"train": 50, "test": 50})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `SUN397`, `ClassName.txt` and the lists of the first partition."""
    kinds, lists = SHAPE.kinds(scale), defaultdict[str, list[str]](list)
    paths = [f"/{kind.noun[0]}/{kind.noun.replace(' ', '_')}/{_rest(kind)}" for kind in kinds]
    for place, picture in enumerate(SHAPE.pictures(scale)):
        name = f"{paths[picture.label]}/sun_{place * 7919 + 12345:016x}.jpg"
        lists[picture.split].append(name)
        SHAPE.save(folder / "SUN397" / name.lstrip("/"), picture, kinds[picture.label], scale, seed)
    write_lines(folder / "Partitions" / "ClassName.txt", sorted(paths))
    for split, lines in lists.items():
        write_lines(folder / "Partitions" / f"{split.replace('t', 'T', 1)}ing_01.txt", sorted(lines))


def _rest(kind: LabelledThing) -> str:
    """The second level of a class: its colour and pattern."""
    return "_".join([*([] if kind.pattern == "plain" else [kind.pattern]), kind.colour])
