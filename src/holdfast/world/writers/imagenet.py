"""ImageNet-1k in each layout in which it is found: with the devkit, prepared in folders, and as packed by Kaggle.

Kept from the original: the order of the devkit's numbers differs from that of the sorted wnids, two classes share an
English name, extensions are upper-case, one file is a PNG named .JPEG, and some are greyscale and some CMYK.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import UserError
from holdfast.world.draw import save_image
from holdfast.world.vocabulary import THINGS
from holdfast.world.writers.portraits import portrait, some_thing, sorts
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Classes; images of train in total; images of a class in val; images of test; side of a picture.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"classes": 10, "train": 203, "val": 5, "test": 10, "side": 48},
    "small": {"classes": 50, "train": 3_011, "val": 10, "test": 100, "side": 64},
    "large": {"classes": 200, "train": 40_017, "val": 20, "test": 1_000, "side": 96},
    "paper": {"classes": 1_000, "train": 1_281_167, "val": 50, "test": 100_000, "side": 256},
}
LAYOUTS = ("devkit", "prepared", "kaggle")
_PNG_CLASS, _PNG_NUMBER = "n02105855", 2933
_CMYK_VAL = 19_877


@dataclass(frozen=True)
class _Class:
    """A class: its wnid, the devkit's number, its English names, and the noun, colour and pattern drawn for it."""

    wnid: str
    number: int
    words: str
    sort: tuple[str, str, str]


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=263, pictures=263, pixels=2016, values=0)
    """
    counts = at_scale(COUNTS, scale)
    pictures = counts["train"] + counts["classes"] * counts["val"] + counts["test"]
    return Amount(pictures, pictures, counts["side"] ** 2 * 7 // 8)  # cropped to a random height


def write(folder: Path, scale: str, seed: int, *, layout: str = "devkit") -> None:
    """Write `train`, `val` and `test` with the devkit's labels, or another layout of the same pictures.

    >>> LAYOUTS
    ('devkit', 'prepared', 'kaggle')
    """
    if layout not in LAYOUTS:
        raise UserError(f"ImageNet has no layout {layout!r}: there are {', '.join(LAYOUTS)}")
    counts = at_scale(COUNTS, scale)
    classes = _classes(counts["classes"], seed)
    home = folder / "ILSVRC" / "Data" / "CLS-LOC" if layout == "kaggle" else folder
    train = _write_train(home, classes, counts, seed)
    random = np.random.default_rng([seed, 10, 1])
    labels = random.permutation(np.arange(counts["classes"] * counts["val"]) % counts["classes"])
    for number, label in enumerate(labels, 1):
        inner = classes[label].wnid if layout == "prepared" else ""
        name = f"ILSVRC2012_val_{number:08d}.JPEG"
        cmyk = number == min(_CMYK_VAL, len(labels))
        _save(home / "val" / inner / name, classes[label], random, counts["side"], "cmyk-jpeg" if cmyk else "")
    for number in range(1, counts["test"] + 1):
        shown = classes[int(random.integers(len(classes)))]
        _save(home / "test" / f"ILSVRC2012_test_{number:08d}.JPEG", shown, random, counts["side"])
    if layout == "devkit":
        _write_devkit(folder / "ILSVRC2012_devkit_t12", classes, labels, train)
    elif layout == "kaggle":
        _write_kaggle(folder, classes, labels, train, counts)


def _classes(count: int, seed: int) -> list[_Class]:
    """The classes in the order of their wnids."""
    random = np.random.default_rng([seed, 10, 2])
    wnids = {_PNG_CLASS}
    while len(wnids) < count:
        wnids.add(f"n{int(random.integers(1_440_000, 13_133_613)):08d}")
    numbers = random.permutation(count) + 1
    if (np.diff(numbers) == 1).all():  # sorted by chance, which would hide a mistake
        numbers = numbers[::-1]
    found = []
    for index, (wnid, sort) in enumerate(zip(sorted(wnids), sorts(count, list(THINGS)), strict=True)):
        noun, colour, pattern = sort
        words = "crane" if index in (1, 4) else f"{colour} {noun}, {pattern} {colour} {noun}"
        found.append(_Class(wnid, int(numbers[index]), words, sort))
    return found


def _write_train(home: Path, classes: list[_Class], counts: dict[str, int], seed: int) -> dict[str, list[str]]:
    """Write the training images and return their names by wnid. The numbering of a class has gaps."""
    names: dict[str, list[str]] = {}
    for index, shown in enumerate(classes):
        random = np.random.default_rng([seed, 10, 3, index])
        count = counts["train"] // len(classes) + (index < counts["train"] % len(classes))
        numbers = [int(number) for number in np.cumsum(random.integers(1, 8, count))]
        if shown.wnid == _PNG_CLASS:
            numbers = [*(number for number in numbers if number != _PNG_NUMBER), _PNG_NUMBER][-count:]
        names[shown.wnid] = [f"{shown.wnid}_{number}" for number in numbers]
        for place, name in enumerate(names[shown.wnid]):
            kind = "cmyk-jpeg" if index % 40 == 5 and place == 1 else ""
            kind = "png" if name == f"{_PNG_CLASS}_{_PNG_NUMBER}" else kind
            _save(home / "train" / shown.wnid / f"{name}.JPEG", shown, random, counts["side"], kind)
    return names


def _save(path: Path, shown: _Class, random: np.random.Generator, side: int, kind: str = "") -> None:
    noun, colour, pattern = shown.sort
    picture = portrait(random, some_thing(random, noun, colour=colour, pattern=pattern), side)
    height = side - int(random.integers(0, side // 4))  # pictures come in all shapes
    kind = kind or ("grey-jpeg" if random.random() < 0.03 else "jpeg")
    save_image(path, np.ascontiguousarray(picture[:height]), kind)


def _write_devkit(folder: Path, classes: list[_Class], labels: np.ndarray, train: dict[str, list[str]]) -> None:
    """Write the labels of val by the devkit's numbers, and the table of synsets with inner nodes after the leaves."""
    from scipy.io import savemat

    (folder / "data").mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{classes[label].number}\n" for label in labels)
    (folder / "data" / "ILSVRC2012_validation_ground_truth.txt").write_bytes(lines.encode())
    fields = ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children", "wordnet_height")
    rows: list[tuple[Any, ...]] = [
        (float(one.number), one.wnid, one.words, f"a picture of a {one.sort[0]}", 0.0, np.zeros((0, 0)), 0.0)
        for one in sorted(classes, key=lambda one: one.number)
    ]
    inner = float(len(classes) + 1)
    rows.append((inner, "n00001740", "entity", "whatever there is", float(len(rows)), np.arange(1.0, inner), 1.0))
    table = np.empty((len(rows), 1), dtype=[(name, object) for name in (*fields, "num_train_images")])
    for index, row in enumerate(rows):
        table[index, 0] = (*row, float(len(train.get(row[1], ()))))
    path = folder / "data" / "meta.mat"
    savemat(str(path), {"synsets": table}, do_compression=True)
    # The first 116 bytes are a comment, which would normally include the time of writing.
    remark = b"MATLAB 5.0 MAT-file, written by Holdfast".ljust(116)
    path.write_bytes(remark + path.read_bytes()[116:])


def _write_kaggle(
    folder: Path, classes: list[_Class], labels: np.ndarray, train: dict[str, list[str]], counts: dict[str, int]
) -> None:
    lists = folder / "ILSVRC" / "ImageSets" / "CLS-LOC"
    lists.mkdir(parents=True, exist_ok=True)
    names = [f"{wnid}/{name}" for wnid in sorted(train) for name in train[wnid]]
    (lists / "train_cls.txt").write_bytes("".join(f"{name} {i}\n" for i, name in enumerate(names, 1)).encode())
    for split, count in (("val", len(labels)), ("test", counts["test"])):
        rows = "".join(f"ILSVRC2012_{split}_{number:08d} {number}\n" for number in range(1, count + 1))
        (lists / f"{split}.txt").write_bytes(rows.encode())
    mapping = "".join(f"{one.wnid} {one.words}\n" for one in classes)
    (folder / "LOC_synset_mapping.txt").write_bytes(mapping.encode())
    rows = "ImageId,PredictionString\n"
    for number, label in enumerate(labels, 1):
        box = f"{classes[label].wnid} 2 3 {counts['side'] // 2} {counts['side'] // 2}"
        groups = [box] * (2 if number % 3 == 0 else 1)
        rows += f"ILSVRC2012_val_{number:08d},{' '.join(groups)}\n"
    (folder / "LOC_val_solution.csv").write_bytes(rows.encode())
