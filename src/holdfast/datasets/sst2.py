"""SST-2 as distributed by GLUE: tab-separated, quotes are data, phrases keep their trailing space.

The target is 0 (negative) or 1 (positive); the test labels are hidden. The hub's columns can be read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get, open_file
from holdfast.datasets.formats.fields import label, text
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.hub import Hub, Row, class_number, with_hub
from holdfast.types import Example

VERSION = 1


def _root(folder: Path) -> Path:
    return first_folder(folder, ["SST-2"], ["train.tsv", "dev.tsv", "test.tsv"])


def _present(folder: Path) -> bool:
    for name, header in (("train.tsv", "sentence\tlabel"), ("dev.tsv", "sentence\tlabel")):
        path = _root(folder) / name
        if path.is_file():
            with open_file(path) as file:  # other tasks of GLUE have files of the same names
                return file.readline(100).decode("utf-8-sig", "replace").rstrip("\r\n") == header
    return False


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = first_file(_root(folder), [f"{split}.tsv"], "unpack SST-2.zip there")
    lines = lines_of(path)
    header = "index\tsentence" if split == "test" else "sentence\tlabel"
    if not lines or lines[0] != header:
        raise DataError(Problem(str(path), "line 1", f"its header is not {header!r}", "download SST-2.zip again"))
    seen: set[str] = set()
    for row, line in enumerate(lines[1:]):
        try:
            cells = line.split("\t")
            if len(cells) != 2:
                raise ValueError(f"it has {len(cells)} columns, not 2")
            index, sentence = (cells[0], cells[1]) if split == "test" else (str(row), cells[0])
            if not sentence.strip():
                raise ValueError("its sentence is empty")
            if not index.isdigit() or index in seen:
                raise ValueError(f"its index {index!r:.40} is not a new number")
            target = None if split == "test" else label(cells[1], 2)
        except ValueError as error:
            reading.bad(path, f"line {row + 2}", str(error), "download SST-2.zip again")
            continue
        seen.add(index)
        yield Example(f"{split}-{index}", target, text=sentence)


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    sentence = text(row, "sentence")
    index = get(row, "idx", int) if "idx" in row else number
    return Example(f"{split}-{index}", class_number(row, "label", 2, split == "test"), text=sentence)


_OFFICIAL = Dataset(
    name="sst2",
    splits=("train", "dev", "test"),
    read=_read,
    present=_present,
    counts={"train": 67_349, "dev": 872, "test": 1_821},
)

DATASET = with_hub(_OFFICIAL, Hub(("sentence", "label"), _from_hub, {"dev": "validation"}, common=True))
