"""CommonsenseQA, the random split: a question and five choices, A to E.

The target is the position of the right choice. Choices may be a list of objects (the owner's files) or two lists
(the hub's columns). The question-token split is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get, read_json_lines
from holdfast.datasets.formats.fields import identifier, words
from holdfast.datasets.formats.hub import Hub, Row, with_hub
from holdfast.types import Example

VERSION = 1
_FILES = {
    "train": "train_rand_split.jsonl",
    "dev": "dev_rand_split.jsonl",
    "test": "test_rand_split_no_answers.jsonl",
}


def _present(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _FILES.values())


def _parts(record: dict[str, Any]) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """The stem, the concept, the labels and the texts of the choices."""
    if isinstance(record.get("question"), str):
        columns = get(record, "choices", dict)
        stem, concept = get(record, "question", str), get(record, "question_concept", str)
        return stem, concept, words(columns, "label"), words(columns, "text")
    question = get(record, "question", dict)
    choices = get(question, "choices", list)
    if not all(isinstance(choice, dict) for choice in choices):
        raise ValueError("one of its choices is not a JSON object")
    labels = tuple(get(choice, "label", str) for choice in choices)
    texts = tuple(get(choice, "text", str) for choice in choices)
    concept = get(question, "question_concept", str) if "question_concept" in question else ""
    return get(question, "stem", str), concept, labels, texts


def _example(record: dict[str, Any], split: str) -> Example:
    stem, concept, labels, texts = _parts(record)
    if sorted(labels) != list("ABCDE") or len(texts) != 5:
        raise ValueError(f"its choices are {', '.join(labels)!r:.40}, not A to E")
    key = record.get("answerKey", "")
    if split == "test" and key == "":
        target = None
    elif key in labels:
        target = labels.index(key)
    else:
        raise ValueError(f"its answerKey is {key!r:.40}, not one of A to E")
    return Example(identifier(record, "id"), target, text=stem, choices=texts, extra={"question_concept": concept})


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = first_file(folder, [_FILES[split]], "download it from the owner's site")
    seen: set[str] = set()
    for number, record in read_json_lines(path, reading):
        try:
            example = _example(record, split)
            if example.id in seen:
                raise ValueError(f"its id {example.id:.40} occurred before")
        except ValueError as error:
            reading.bad(path, f"line {number}", str(error), "download the file again")
            continue
        seen.add(example.id)
        yield example


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    return _example(row, split)


_OFFICIAL = Dataset(
    name="commonsenseqa",
    splits=("train", "dev", "test"),
    read=_read,
    present=_present,
    counts={"train": 9_741, "dev": 1_221, "test": 1_140},
)

_COLUMNS = ("id", "question", "question_concept", "choices")
DATASET = with_hub(_OFFICIAL, Hub(_COLUMNS, _from_hub, {"dev": "validation"}))
