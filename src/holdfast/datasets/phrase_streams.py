"""VisCOLL's released streams: the masked phrases of COCO-shift and Flickr-shift, in the order of their files.

An Example is a phrase: its text is the caption, and `extra` has the image's id, the task, and the first and the last
masked position, both included. For COCO-shift, positions count word pieces of BERT's vocabulary without special ones;
for Flickr-shift, they count the words in `extra["tokens"]`. Training phrases are in the order of the stream.

The files are pickles of plain values, read without executing anything. The folder is a copy of the authors' repository,
or its folder `datasets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get
from holdfast.datasets.formats.pickles import load_plain
from holdfast.types import Example

VERSION = 1
_COCO = "coco_buffer/task_buffer_real_split_{}_split_{}_novel_comps_{}_task_partition_any_objects.pkl"
_FILES = {
    "coco_train": _COCO.format("train", "train", False),
    "coco_validation": _COCO.format("train", "val", False),
    "coco_test": _COCO.format("val", "val", False),
    "coco_novel": _COCO.format("val", "val", True),
    **{f"flickr_{split}": f"flickr_buffer/flickr_task_buffer_{split[:5]}_0.pkl" for split in ("train", "test")},
    "flickr_validation": "flickr_buffer/flickr_task_buffer_val_0.pkl",
}
_TASKS = "flickr_buffer/flickr_tasks.pkl"
_PLACES = ("datasets/", "")
_REMEDY = "copy it from the repository INK-USC/VisCOLL again"
_MOST = 512
"""The maximum number of words or word pieces of a caption."""


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = _find(folder, _FILES[split])
    of_coco = split.startswith("coco_")
    tasks = [] if of_coco else _tasks(_find(folder, _TASKS))
    make: Callable[[Any, str], Example] = _coco if of_coco else lambda record, name: _flickr(record, name, tasks)
    records = load_plain(path, _REMEDY)
    if not isinstance(records, list):
        raise DataError(Problem(str(path), "", f"it holds a {type(records).__name__}, not a list", _REMEDY))
    for row, record in enumerate(records):
        try:
            if not isinstance(record, dict):
                raise ValueError("it is not a dictionary")
            example = make(record, f"{split}-{row}")
        except ValueError as error:
            reading.bad(path, f"phrase {row}", str(error), _REMEDY)
            continue
        yield example


def _coco(record: dict[str, Any], name: str) -> Example:
    annotation, task = get(record, "annotation", dict), get(record, "task", str)
    first, last = _pair(record, "mask")
    if not 0 <= first <= last < _MOST:
        raise ValueError(f"its mask ({first}, {last}) is not a first and a last word piece")
    text = get(annotation, "caption", str).strip()
    if not text:
        raise ValueError("its caption is empty")
    extra = {"image_id": str(get(annotation, "image_id", int)), "task": task, "first": first, "last": last}
    return Example(name, None, (), text, (), extra)


def _flickr(record: dict[str, Any], name: str, tasks: list[str]) -> Example:
    tokens, task = get(record, "tokens", list), get(record, "task_id", int)
    start, stop = _pair(record, "phrase_offset")
    if not tokens or not all(isinstance(word, str) and word and not word.isspace() for word in tokens):
        raise ValueError("its tokens are not words")
    if not 0 <= start < stop <= len(tokens) < _MOST:
        raise ValueError(f"its phrase_offset ({start}, {stop}) is not in its {len(tokens)} words")
    if not 0 <= task < len(tasks):
        raise ValueError(f"its task_id {task} is not one of {len(tasks)} tasks")
    extra = {"image_id": get(record, "image_id", str), "task": tasks[task], "first": start, "last": stop - 1}
    return Example(name, None, (), " ".join(tokens), (), extra | {"tokens": tuple(tokens)})


def _pair(record: dict[str, Any], name: str) -> tuple[int, int]:
    found = get(record, name, (tuple, list))
    if len(found) != 2 or not all(type(each) is int for each in found):
        raise ValueError(f"its {name} is not a pair of whole numbers")
    return found[0], found[1]


def _tasks(path: Path) -> list[str]:
    found = load_plain(path, _REMEDY)
    names = found.get("tasks") if isinstance(found, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DataError(Problem(str(path), "", "it has no list of tasks", _REMEDY))
    return names


def _find(folder: Path, name: str) -> Path:
    return first_file(folder, [place + name for place in _PLACES], "copy it from the repository INK-USC/VisCOLL")


def _present(folder: Path) -> bool:
    return any((folder / (place + name)).is_file() for place in _PLACES for name in _FILES.values())


DATASET = Dataset(
    name="phrase_streams",
    splits=tuple(_FILES),
    read=_read,
    present=_present,
    counts={
        "coco_train": 639_592,
        "coco_validation": 27_945,
        "coco_test": 28_743,
        "coco_novel": 4_427,
        "flickr_train": 456_299,
        "flickr_validation": 15_406,
        "flickr_test": 15_286,
    },
)
