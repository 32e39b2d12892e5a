"""CGQA, the published archive of the CFST benchmark: pictures of two to four things of GQA on a grid.

The target is the rank of the combination: among those of `val` for train, val and test, and among those of its own
file for each few-shot test (`sys`, `pro`, `sub`, `non`, `noc`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get
from holdfast.datasets.formats.combinations import read_combinations
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
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


def _place(record: dict[str, Any]) -> tuple[str, str]:
    name = get(record, "newImageName", str)
    if name.startswith("task"):  # the few-shot files have an additional leading folder
        name = name.partition("/")[2]
    return name, f"{name}.jpg"


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [_FILES[split]], _REMEDY)
    source = first_file(root, [_FILES["val"]], _REMEDY) if split in ("train", "test") else path
    more = {"objects": list, "position": list}
    yield from read_combinations(path, source, "comb", ImageFiles(root), _place, more, reading, _REMEDY)


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
