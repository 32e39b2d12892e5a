"""ImageNet-1k (ILSVRC2012): one folder for each class in train; val in any of its three layouts.

The target is the rank of the WordNet id in sorted order, as in deep-learning frameworks, never the devkit's
`ILSVRC2012_ID`. Val may be flat with the devkit's ground truth, flat with Kaggle's `LOC_val_solution.csv`, or in
folders like train.
Some pictures are PNG or CMYK under the name `.JPEG`: decode by content. The hub's columns are read too.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, open_file
from holdfast.datasets.formats.files import first_folder, lines_of, names_in
from holdfast.datasets.formats.hub import Hub, Row, class_number, picture, picture_name, with_hub
from holdfast.files import refuse_outside
from holdfast.types import Example

VERSION = 1
_WNID = re.compile(r"n[0-9]{8}")
_PICTURE = re.compile(r"(.+)\.(?:jpe?g|png)", re.IGNORECASE)
_HUB_NAME = re.compile(r"(?P<id>(?:(?P<train>n[0-9]{8})|ILSVRC2012_(?:val|test))_[0-9]+)(?:_(?P<wnid>n[0-9]{8}))?")
_KAGGLE = "ILSVRC/Data/CLS-LOC"
_META_BYTES = 1 << 26


def _root(folder: Path) -> Path:
    return first_folder(folder, [_KAGGLE, "Data/CLS-LOC"], ["train", "val"])


def _holds(folder: Path, pattern: str) -> bool:
    refuse_outside(folder)
    try:
        with os.scandir(folder) as entries:
            return any(re.match(pattern, entry.name) for entry in islice(entries, 50))
    except OSError:
        return False


def _present(folder: Path) -> bool:
    root = _root(folder)
    if any((root / f"{split}.json").exists() for split in ("train", "val", "test")):
        return False  # PartImageNet has the same folders, with a file for each
    return any(_holds(root / split, r"n[0-9]{8}$|ILSVRC2012_val_") for split in ("train", "val"))


def _beside(folder: Path, names: list[str]) -> Path | None:
    places = ("", "ILSVRC/", "data/", "ILSVRC2012_devkit_t12/data/", "devkit/data/", "val/", f"{_KAGGLE}/")
    return next(
        (folder / (place + name) for place in places for name in names if (folder / (place + name)).is_file()), None
    )


def _synsets(path: Path) -> dict[int, str]:
    """The WordNet id of each `ILSVRC2012_ID` in the devkit's table; rows with children are not classes."""
    found: dict[int, str] = {}
    open_file(path).close()  # otherwise scipy's error for a file without read permission would look like damage
    try:
        if path.stat().st_size > _META_BYTES:
            raise ValueError("it is far too large")
        import numpy as np
        from scipy.io import loadmat

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows: Any = np.atleast_1d(loadmat(str(path), squeeze_me=True)["synsets"])
        for row in rows:
            if int(row["num_children"]) == 0:
                found[int(row["ILSVRC2012_ID"])] = str(row["WNID"])
    except Exception as error:  # a broken .mat file can fail in any way inside scipy
        what = f"it is not a table of synsets ({type(error).__name__}: {error!s:.80})"
        raise DataError(Problem(str(path), "", what, "unpack ILSVRC2012_devkit_t12.tar.gz again")) from None
    if not found or not all(_WNID.fullmatch(wnid) for wnid in found.values()):
        raise DataError(Problem(str(path), "", "it has no WordNet ids", "unpack ILSVRC2012_devkit_t12.tar.gz again"))
    return found


def _classes(folder: Path, root: Path) -> dict[str, int]:
    """The class of each WordNet id: its rank among all ids.

    A list of all classes takes precedence, so that a folder with only some of them gives the same numbers.
    """
    mapping, meta = _beside(folder, ["LOC_synset_mapping.txt"]), _beside(folder, ["meta.mat"])
    if mapping is not None:
        wnids = [line.split(" ")[0] for line in lines_of(mapping)]
        for number, wnid in enumerate(wnids, 1):
            if not _WNID.fullmatch(wnid):
                raise DataError(Problem(str(mapping), f"line {number}", "it does not begin with a WordNet id"))
    elif meta is not None:
        wnids = list(_synsets(meta).values())
    else:
        here = [root / split for split in ("train", "val") if (root / split).is_dir()]
        wnids = [name for split in here for name in names_in(split) if _WNID.fullmatch(name)]
    if not wnids:
        raise DataError(Problem(str(root), "", "there are no classes", "unpack the train images, one folder each"))
    return {wnid: rank for rank, wnid in enumerate(sorted(set(wnids)))}


def _in_folders(root: Path, split: str, classes: dict[str, int], reading: Reading) -> Iterator[Example]:
    for wnid in names_in(root / split):
        place = root / split / wnid
        if wnid not in classes:
            for path in (place / name for name in names_in(place)) if place.is_dir() else (place,):
                reading.bad(path, "", f"{wnid:.60} is not one of the classes", "move it or unpack the images again")
            continue
        if not (names := names_in(place)):
            reading.bad(place, "", "it has no pictures", "unpack its images again, or remove it")
        for name in names:
            match = _PICTURE.fullmatch(name)
            if match is None:
                reading.bad(place / name, "", "its name is not that of a picture", "remove it")
            elif _WNID.match(name) and not name.startswith(wnid):
                reading.bad(place / name, "", f"it is in the folder of {wnid}", f"move it to {name[:9]}")
            else:
                yield Example(match[1], classes[wnid], (place / name,), extra={"wnid": wnid})


def _solutions(path: Path, reading: Reading) -> dict[str, str]:
    """Kaggle's labels: the first word of each prediction is the WordNet id; boxes follow."""
    found: dict[str, str] = {}
    lines = lines_of(path)
    if not lines or lines[0] != "ImageId,PredictionString":
        raise DataError(
            Problem(str(path), "line 1", "its header is not 'ImageId,PredictionString'", "download it again")
        )
    for number, line in enumerate(lines[1:], 2):
        name, _, prediction = line.partition(",")
        wnid = prediction.split(" ")[0]
        if not _WNID.fullmatch(wnid) or not name or name in found:
            reading.bad(path, f"line {number}", "it is not a new image with a WordNet id", "download the file again")
        else:
            found[name] = wnid
    return found


def _ground_truth(path: Path, folder: Path, reading: Reading) -> dict[str, str]:
    """The devkit's labels: line n holds the `ILSVRC2012_ID` of image n."""
    meta = _beside(folder, ["meta.mat"])
    if meta is None:
        raise DataError(Problem(str(path.parent / "meta.mat"), "", "no such file", "unpack the devkit there"))
    synsets, found = _synsets(meta), {}
    for number, line in enumerate(lines_of(path), 1):
        text = line.strip()
        wnid = synsets.get(int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else None
        if wnid is None:
            reading.bad(
                path, f"line {number}", f"{text!r:.40} is not the ILSVRC2012_ID of a class", "unpack the devkit again"
            )
        else:
            found[f"ILSVRC2012_val_{number:08d}"] = wnid
    return found


def _flat(folder: Path, root: Path, classes: dict[str, int], reading: Reading) -> Iterator[Example]:
    solution = _beside(folder, ["LOC_val_solution.csv"])
    truth = _beside(folder, ["ILSVRC2012_validation_ground_truth.txt"])
    if solution is not None:
        path, labels = solution, _solutions(solution, reading)
    elif truth is not None:
        path, labels = truth, _ground_truth(truth, folder, reading)
    else:
        remedy = "unpack the devkit or Kaggle's files beside it, or sort the images into folders"
        raise DataError(Problem(str(root / "val"), "", "its images have no labels", remedy))
    pictures = {}
    for name in names_in(root / "val"):
        match = _PICTURE.fullmatch(name)
        if match is not None:
            pictures[match[1]] = name
            if match[1] not in labels:
                reading.bad(root / "val" / name, "", f"it has no label in {path.name}", "unpack the labels again")
        elif root / "val" / name != path:
            reading.bad(root / "val" / name, "", "its name is not that of a picture", "remove it")
    for name, wnid in labels.items():
        if name not in pictures:
            reading.bad(path, name, "its image is missing", f"unpack ILSVRC2012_img_val.tar in {root / 'val'}")
        elif wnid not in classes:
            reading.bad(path, name, f"its class {wnid} is not one of the {len(classes)} classes")
        else:
            yield Example(name, classes[wnid], (root / "val" / pictures[name],), extra={"wnid": wnid})


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    if split == "test":
        for name in names_in(root / "test"):
            match = _PICTURE.fullmatch(name)
            if match is None:
                reading.bad(root / "test" / name, "", "its name is not that of a picture", "remove it")
            else:
                yield Example(match[1], None, (root / "test" / name,))
        return
    classes = _classes(folder, root)
    if split == "val" and not _holds(root / "val", r"n[0-9]{8}$"):
        yield from _flat(folder, root, classes, reading)
    else:
        yield from _in_folders(root, split, classes, reading)


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    target = class_number(row, "label", 1000, split == "test")
    image = picture(row, "image", folder)
    # The hub's files are named after the official ones, with the WordNet id at the end.
    match = _HUB_NAME.fullmatch(picture_name(row, "image"))
    wnid = (match["train"] or match["wnid"]) if match else None
    extra = {"wnid": wnid} if wnid and target is not None else {}
    return Example(match["id"] if match else f"{split}-{number}", target, (image,), extra=extra)


_OFFICIAL = Dataset(
    name="imagenet",
    splits=("train", "val", "test"),
    read=_read,
    present=_present,
    counts={"train": 1_281_167, "val": 50_000, "test": 100_000},
)

DATASET = with_hub(_OFFICIAL, Hub(("image", "label"), _from_hub, {"val": "validation"}, common=True))
