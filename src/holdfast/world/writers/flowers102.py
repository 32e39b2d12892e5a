"""Oxford Flowers-102: numbered photographs, with classes and splits in MATLAB files; things stand in for flowers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from holdfast.world.writers.photographs import Photographs, save_mat

VERSION = 1
SHAPE = Photographs(5, 102, {"train": 10, "val": 10, "test": 60})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `jpg`, `imagelabels.mat` and `setid.mat`."""
    kinds, pictures = SHAPE.kinds(scale), list(SHAPE.pictures(scale))
    order = np.random.default_rng([seed, 5]).permutation(len(pictures))
    labels, splits = np.zeros((1, len(pictures)), np.uint8), defaultdict[str, list[int]](list)
    for number, place in enumerate(order, 1):
        picture = pictures[place]
        labels[0, number - 1] = picture.label + 1
        splits[picture.split].append(number)
        SHAPE.save(folder / "jpg" / f"image_{number:05d}.jpg", picture, kinds[picture.label], scale, seed)
    save_mat(folder / "imagelabels.mat", {"labels": labels})
    names = {"train": "trnid", "val": "valid", "test": "tstid"}
    save_mat(folder / "setid.mat", {names[split]: np.array([found], np.uint16) for split, found in splits.items()})
