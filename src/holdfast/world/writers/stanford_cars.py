"""Stanford Cars: numbered photographs of two splits, with boxes and classes in MATLAB files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from holdfast.world.writers.photographs import LabelledPicture, Photographs, save_mat

VERSION = 1
SHAPE = Photographs(8, 196, {"train": 42, "test": 41})
amount = SHAPE.amount


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `cars_train`, `cars_test` and their annotations."""
    home, kinds = folder / "stanford_cars", SHAPE.kinds(scale)
    split_of, side = defaultdict[str, list[LabelledPicture]](list), SHAPE.counts(scale)[2]
    for picture in SHAPE.pictures(scale):
        split_of[picture.split].append(picture)
    fields = [(name, object) for name in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    for split, pictures in split_of.items():
        order = np.random.default_rng([seed, 8, len(split)]).permutation(len(pictures))
        rows = np.empty((1, len(pictures)), fields)
        for number, place in enumerate(order):
            picture, name = pictures[place], f"{number + 1:05d}.jpg"
            rows[0, number] = (1, 1, side, side * 3 // 4, picture.label + 1, name)
            SHAPE.save(home / f"cars_{split}" / name, picture, kinds[picture.label], scale, seed)
        file = "devkit/cars_train_annos.mat" if split == "train" else "cars_test_annos_withlabels.mat"
        save_mat(home / file, {"annotations": rows})
    names = np.array([[kind.name for kind in kinds]], dtype=object)
    save_mat(home / "devkit" / "cars_meta.mat", {"class_names": names})
