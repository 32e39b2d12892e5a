"""EuroSAT: a folder of small pictures for each of the ten official kinds of land.

The synthetic world has no satellite: a thing stands in for each kind.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.world.writers.photographs import Photographs

VERSION = 1
KINDS: tuple[str, ...] = ("AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial", "Pasture")
KINDS += ("PermanentCrop", "Residential", "River", "SeaLake")
SHAPE = Photographs(4, len(KINDS), {"all": 2_700})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `2750`."""
    kinds = SHAPE.kinds(scale)
    for picture in SHAPE.pictures(scale):
        name = KINDS[picture.label]
        SHAPE.save(folder / "2750" / name / f"{name}_{picture.number}.jpg", picture, kinds[picture.label], scale, seed)
