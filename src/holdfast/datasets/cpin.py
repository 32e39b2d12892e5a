"""CPIN, the archive of the CFST benchmark that its authors' code reads: parts of PartImageNet's things on a grid.

One file, `continual.json`, has the records of train, val and test, which the folder in `newFileName` tells apart; each
few-shot test (`sys`, `pro`, `non`, `noc`) has a file of its own. The target is the rank of the combination: among those
of `continual.json`, or of the test's own file. No archive has been published, so there are no official counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get
from holdfast.datasets.formats.combinations import read_combinations
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_CONTINUAL, _FEWSHOT = ("train", "val", "test"), ("sys", "pro", "non", "noc")
_FILES = dict.fromkeys(_CONTINUAL, "continual.json") | {mode: f"{mode}_fewshot.json" for mode in _FEWSHOT}
_REMEDY = "unpack the CPIN archive again"


def _root(folder: Path) -> Path:
    return first_folder(folder, ["PIN/PIN", "PIN"], _FILES.values())


def _present(folder: Path) -> bool:
    return any((_root(folder) / name).is_file() for name in _FILES.values())


def _place(record: dict[str, Any]) -> tuple[str, str]:
    name = get(record, "newFileName", str)
    return name.removesuffix(".jpg"), name


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [_FILES[split]], _REMEDY)
    more = {"objects": list, "position": list}

    def own(record: dict[str, Any]) -> bool:
        """Whether a record is of this split; one that does not say so counts, so that it is reported."""
        name = record.get("newFileName")
        parts = PurePosixPath(name).parts if isinstance(name, str) else ()
        return split not in _CONTINUAL or len(parts) < 2 or parts[1] not in _CONTINUAL or parts[1] == split

    yield from read_combinations(path, path, "label", ImageFiles(root), _place, more, reading, _REMEDY, own)


DATASET = Dataset(name="cpin", splits=(*_CONTINUAL, *_FEWSHOT), read=_read, present=_present, counts={})
