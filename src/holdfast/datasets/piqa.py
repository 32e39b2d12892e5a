"""PIQA: a goal and two solutions; the labels are in a separate file, aligned by line.

The target is 0 or 1, the index of the right solution. The owner's names (`valid`, `tests`), the AI2 mirror's
(`dev`, with an `id` in each row) and the hub's columns can all be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get, read_json_lines
from holdfast.datasets.formats.fields import identifier, label
from holdfast.datasets.formats.files import first_folder, lines_of
from holdfast.datasets.formats.hub import Hub, Row, class_number, with_hub
from holdfast.types import Example

VERSION = 1
_NAMES = {"train": ("train",), "valid": ("valid", "dev"), "test": ("tests", "test")}


def _root(folder: Path) -> Path:
    inside = ["train.jsonl", "train-labels.lst", "valid-labels.lst", "dev-labels.lst", "tests.jsonl"]
    return first_folder(folder, ["physicaliqa-train-dev"], inside)


def _present(folder: Path) -> bool:
    return any((_root(folder) / f"{name}-labels.lst").is_file() for name in ("train", "valid", "dev"))


def _labels(path: Path, questions: Path, rows: list[str]) -> list[str]:
    labels = [line.strip() for line in lines_of(path)]
    if len(labels) != len(rows):
        what = f"its {len(labels)} labels do not match the {len(rows)} questions of {questions.name}"
        raise DataError(Problem(str(path), "", what, "download both again"))
    return labels


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root, names = _root(folder), _NAMES[split]
    path = first_file(root, [f"{name}.jsonl" for name in names], "download it from the owner's site")
    rows = lines_of(path)
    labels = None
    if split != "test":
        files = [f"{name}-labels.lst" for name in (path.stem, *names)]
        labels = _labels(first_file(root, files, "download the labels too"), path, rows)
    for number, row in enumerate(rows, 1):
        if not row.strip():  # it has a label, so it was a question
            reading.bad(path, f"line {number}", "it is empty", "download the file again")
    seen: set[str] = set()
    for number, record in read_json_lines(path, reading):
        try:
            goal = get(record, "goal", str)
            solutions = get(record, "sol1", str), get(record, "sol2", str)
            name = identifier(record, "id") if "id" in record else f"{split}-{number - 1}"
            if name in seen:
                raise ValueError(f"its id {name:.40} occurred before")
            target = None if labels is None else label(labels[number - 1], 2)
        except ValueError as error:
            reading.bad(path, f"line {number}", str(error), "download the file again")
            continue
        seen.add(name)
        yield Example(name, target, text=goal, choices=solutions)


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    target = class_number(row, "label", 2, split == "test")
    solutions = get(row, "sol1", str), get(row, "sol2", str)
    return Example(f"{split}-{number}", target, text=get(row, "goal", str), choices=solutions)


_OFFICIAL = Dataset(
    name="piqa",
    splits=("train", "valid", "test"),
    read=_read,
    present=_present,
    counts={"train": 16_113, "valid": 1_838, "test": 3_084},
)

DATASET = with_hub(_OFFICIAL, Hub(("goal", "sol1", "sol2"), _from_hub, {"valid": "validation"}))
