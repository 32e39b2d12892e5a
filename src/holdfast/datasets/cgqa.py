"""CGQA, the published archive of the CFST benchmark: pictures of two to four things of GQA on a grid.

The target is the rank of the combination: among those of `val` for train, val and test, and among those of its own
file for each few-shot test (`sys`, `pro`, `sub`, `non`, `noc`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import Dataset, Reading, first_file, get, read_json
from holdfast.datasets.formats.combinations import classes_of, combination
from holdfast.datasets.formats.fields import objects, optional
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

_FILES = {
    "train": "continual/train/train.json",
    "val": "continual/val/val.json",
    "test": "continual/test/test.json",
    "sys": "fewshot/sys/sys_fewshot.json",
    "pro": "fewshot/pro/pro_fewshot.json",
    "sub": "fewshot/sub/sub_fewshot.json",
    "non": "fewshot/non_novel/non_novel_fewshot.json",
    "noc": "fewshot/non_comp/non_comp_fewshot.json",
}
_REMEDY = "unpack the CGQA archive again"


def _root(folder: Path) -> Path:
    names = ["CGQA/GQA_100", "GQA_100", "CGQA/CGQA_100", "CGQA_100", "CGQA"]
    return first_folder(folder, names, _FILES.values())


def _present(folder: Path) -> bool:
    return any((_root(folder) / name).is_file() for name in _FILES.values())


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [_FILES[split]], _REMEDY)
    source = first_file(root, [_FILES["val"]], _REMEDY) if split in ("train", "test") else path
    classes = classes_of(source, "comb")
    pictures, seen = ImageFiles(root), set()
    for position, record in objects(path, read_json(path), reading, "image"):
        place = f"image at position {position}"
        try:
            name = get(record, "newImageName", str)
            if name.startswith("task"):  # the few-shot files have one folder more in front
                name = name.partition("/")[2]
            place = f"image {name:.60}"
            if name in seen:
                raise ValueError("it was there before")
            found = combination(record, "comb")
            if found not in classes:
                raise ValueError(f"its combination {', '.join(found):.60} is not one of {source.name}")
            image = pictures.find([f"{name}.jpg"])
            if image is None:
                raise ValueError(f"its image {name:.60}.jpg is missing")
            extra = {"comb": found, **optional(record, {"objects": list, "position": list})}
        except ValueError as error:
            reading.bad(path, place, str(error), _REMEDY)
            continue
        seen.add(name)
        yield Example(name, classes[found], (image,), extra=extra)


DATASET = Dataset(
    name="cgqa",
    splits=tuple(_FILES),
    read=_read,
    present=_present,
    counts={
        "train": 100_000,
        "val": 5_000,
        "test": 10_000,
        **dict.fromkeys(("sys", "pro", "sub", "non", "noc"), 10_000),
    },
)
