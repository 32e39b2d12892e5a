"""IMDb (Large Movie Review, aclImdb v1): one file for each review, in a folder for each class.

The target is 0 (negative) or 1 (positive). The text keeps its literal `<br />`. The hub's columns can be read too;
they have no ratings, and the id is the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, read_text
from holdfast.datasets.formats.fields import text
from holdfast.datasets.formats.files import first_folder, names_in
from holdfast.datasets.formats.hub import Hub, Row, class_number, with_hub
from holdfast.types import Example

VERSION = 1
_NAME = re.compile(r"([0-9]{1,9})_([0-9]{1,2})\.txt")
_FOLDERS: dict[str, tuple[tuple[str, int | None, range], ...]] = {
    "train": (("train/neg", 0, range(1, 5)), ("train/pos", 1, range(7, 11))),
    "test": (("test/neg", 0, range(1, 5)), ("test/pos", 1, range(7, 11))),
    "unsupervised": (("train/unsup", None, range(11)),),
}


def _root(folder: Path) -> Path:
    return first_folder(folder, ["aclImdb"], ["train/pos", "test/pos", "train/unsup"])


def _present(folder: Path) -> bool:
    return any((_root(folder) / name / "pos").is_dir() for name in ("train", "test"))


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    for place, target, ratings in _FOLDERS[split]:
        # Ids are numbers without leading zeros: sorting by number gives the same order on every file system.
        named = [(_NAME.fullmatch(name), name) for name in names_in(root / place)]
        if not named:
            raise DataError(Problem(str(root / place), "", "it has no reviews", "unpack the archive again"))
        for match, name in sorted(named, key=lambda item: (int(item[0][1]) if item[0] else -1, item[1])):
            path = root / place / name
            if match is None:
                reading.bad(path, "", "its name is not of the form ID_RATING.txt", "remove it")
                continue
            rating = int(match[2])
            if rating not in ratings:
                reading.bad(path, "", f"its rating {rating} does not belong in {place}", "unpack the archive again")
                continue
            try:
                review = read_text(path)
            except DataError as error:
                reading.bad(path, error.problem.record, error.problem.what, error.problem.remedy)
                continue
            if not review.strip():
                reading.bad(path, "", "it is empty", "unpack the archive again")
                continue
            yield Example(f"{place}/{path.stem}", target, text=review, extra={"rating": rating})


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    target = class_number(row, "label", 2, split == "unsupervised")
    return Example(f"{split}-{number}", target, text=text(row, "text"))


_OFFICIAL = Dataset(
    name="imdb",
    splits=("train", "test", "unsupervised"),
    read=_read,
    present=_present,
    counts={"train": 25_000, "test": 25_000, "unsupervised": 50_000},
)

DATASET = with_hub(_OFFICIAL, Hub(("text", "label"), _from_hub, {}, common=True))
