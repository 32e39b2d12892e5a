"""HellaSwag: a context and four endings.

The target is the index of the right ending. The label may be a number (the owner's files) or a string (the hub's
columns). The id is the row, as in the owner's submissions: `ind` has gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get, read_json_lines
from holdfast.datasets.formats.fields import label, optional, words
from holdfast.datasets.formats.hub import Hub, Row, with_hub
from holdfast.types import Example

VERSION = 1
_FILES = {
    "train": ("hellaswag_train.jsonl",),
    "val": ("hellaswag_val.jsonl", "hellaswag_validation.jsonl"),
    "test": ("hellaswag_test.jsonl",),
}
_EXTRA: dict[str, type] = {"ind": int, **dict.fromkeys(("activity_label", "ctx_a", "ctx_b", "source_id"), str)}
_EXTRA["split_type"] = str


def _present(folder: Path) -> bool:
    return any((folder / name).is_file() for names in _FILES.values() for name in names)


def _context(record: dict[str, Any]) -> str:
    if "ctx" in record:
        return get(record, "ctx", str)
    second = get(record, "ctx_b", str) if "ctx_b" in record else ""
    return f"{get(record, 'ctx_a', str)} {second}".strip()


def _target(record: dict[str, Any], split: str) -> int | None:
    if split == "test" and record.get("label", "") in ("", None):
        return None
    return label(get(record, "label", object), 4)


def _example(record: Row, split: str, number: int, folder: Path) -> Example:
    endings = words(record, "endings")
    if len(endings) != 4:
        raise ValueError(f"it has {len(endings)} endings, not 4")
    target, text = _target(record, split), _context(record)
    return Example(f"{split}-{number}", target, text=text, choices=endings, extra=optional(record, _EXTRA))


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = first_file(folder, _FILES[split], "download it from the owner's repository")
    for number, record in read_json_lines(path, reading):
        try:
            example = _example(record, split, number - 1, folder)
        except ValueError as error:
            reading.bad(path, f"line {number}", str(error), "download the file again")
            continue
        yield example


_OFFICIAL = Dataset(
    name="hellaswag",
    splits=("train", "val", "test"),
    read=_read,
    present=_present,
    counts={"train": 39_905, "val": 10_042, "test": 10_003},
)

DATASET = with_hub(_OFFICIAL, Hub(("ctx", "endings", "label"), _example, {"val": "validation"}))
