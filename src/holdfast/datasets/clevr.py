"""CLEVR v1.0: questions with programs. CoGenT's conditions have the same format.

The target is the answer as a word, one of 28; test questions have none. `extra["program"]` holds the nodes with
`function`, `inputs` and `value_inputs`. The variants written by the public generator (`type` instead of `function`,
answers as numbers and booleans) can be read as well. Scenes are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get
from holdfast.datasets.formats.fields import identifier, words
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.datasets.formats.json_stream import stream_arrays
from holdfast.types import Example

VERSION = 1
_SPLITS = ("train", "val", "test")
_COLOURS = ("blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow")
_OTHERS = ("yes", "no", "cube", "cylinder", "sphere", "large", "small", "metal", "rubber")
_ANSWERS = frozenset((*_COLOURS, *_OTHERS, *map(str, range(11))))


def _root(folder: Path) -> Path:
    return first_folder(folder, ["CLEVR_v1.0"], [f"questions/CLEVR_{split}_questions.json" for split in _SPLITS])


def _present(folder: Path) -> bool:
    return any((_root(folder) / f"questions/CLEVR_{split}_questions.json").is_file() for split in _SPLITS)


def _node(node: Any, position: int) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ValueError(f"node {position} of its program is not a JSON object")
    inputs = get(node, "inputs", list)
    if not all(isinstance(i, int) and not isinstance(i, bool) and 0 <= i < position for i in inputs):
        raise ValueError(f"node {position} of its program takes {inputs!r:.40}, which are not earlier nodes")
    function = get(node, "function" if "function" in node else "type", str)
    values = words(node, "value_inputs") if "value_inputs" in node else ()
    return {"function": function, "inputs": tuple(inputs), "value_inputs": values}


def _program(record: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    nodes = tuple(_node(node, position) for position, node in enumerate(get(record, "program", list)))
    if not nodes:
        raise ValueError("its program is empty")
    return nodes


def _answer(record: dict[str, Any]) -> str:
    value: Any = get(record, "answer", object)
    answer = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
    answer = str(answer) if isinstance(answer, int) else answer
    if not isinstance(answer, str) or answer not in _ANSWERS:
        raise ValueError(f"its answer {value!r:.40} is not one of CLEVR's")
    return answer


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [f"questions/CLEVR_{split}_questions.json"], "unpack CLEVR_v1.0.zip there")
    pictures = ImageFiles(root)
    seen: set[str] = set()
    for _, number, record in stream_arrays(path, "questions"):
        place = f"questions {number}"
        try:
            if not isinstance(record, dict):
                raise ValueError("it is not a JSON object")
            name = identifier(record, "question_index")
            if name in seen:
                raise ValueError(f"its question_index {name:.40} occurred before")
            place = f"question {name:.40}"
            file = get(record, "image_filename", str)
            image = pictures.need(file, [f"images/{split}/"])
            extra: dict[str, Any] = {"image_index": get(record, "image_index", int)}
            if split != "test":
                extra["program"] = _program(record)
            if "question_family_index" in record:
                extra["question_family_index"] = get(record, "question_family_index", int)
            answer = None if split == "test" else _answer(record)
            example = Example(name, answer, (image,), get(record, "question", str), extra=extra)
        except ValueError as error:
            reading.bad(path, place, str(error), "unpack CLEVR_v1.0.zip again")
            continue
        seen.add(name)
        yield example


DATASET = Dataset(
    name="clevr",
    splits=_SPLITS,
    read=_read,
    present=_present,
    counts={"train": 699_989, "val": 149_991, "test": 149_988},
)
