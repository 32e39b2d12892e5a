"""Caltech-101: a folder of photographs for each class, and one of backgrounds that is not a class."""

from __future__ import annotations

from pathlib import Path

from holdfast.world.writers.photographs import LabelledPicture, Photographs

VERSION = 1
SHAPE = Photographs(2, 101, {"all": 86})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `101_ObjectCategories`."""
    home, kinds = folder / "101_ObjectCategories", SHAPE.kinds(scale)
    for picture in SHAPE.pictures(scale):
        kind = kinds[picture.label]
        path = home / kind.name.replace(" ", "_") / f"image_{picture.number:04d}.jpg"
        SHAPE.save(path, picture, kind, scale, seed)
    for number in (1, 2):
        backdrop = LabelledPicture("all", len(kinds), number)
        SHAPE.save(home / "BACKGROUND_Google" / f"image_{number:04d}.jpg", backdrop, kinds[0], scale, seed)
