"""VQA v2: open questions about COCO images, each answered by ten people.

The hub's columns can be read too, if they include pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from sys import intern
from typing import Any

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get
from holdfast.datasets.formats.fields import text
from holdfast.datasets.formats.hub import Hub, Row, picture, with_hub
from holdfast.datasets.formats.image_files import COCO_BESIDE, ImageFiles, coco_names, coco_roots
from holdfast.datasets.formats.json_stream import stream_arrays
from holdfast.types import Example

VERSION = 1
_SUBTYPES = {"train": "train2014", "val": "val2014", "test": "test2015", "test-dev": "test-dev2015"}
_FOLDERS = {
    "train": ("train2014", "train2017", "val2017"),
    "val": ("val2014", "train2017", "val2017"),
    "test": ("test2015", "test2017", "unlabeled2017"),
    "test-dev": ("test2015", "test2017", "unlabeled2017"),
}
_ANSWER_TYPES = frozenset({"yes/no", "number", "other"})
_ANNOTATORS = 10


def _question_files(split: str) -> list[str]:
    name = f"v2_OpenEnded_mscoco_{_SUBTYPES[split]}_questions.json"
    archive = f"v2_Questions_{split.split('-')[0].capitalize()}_mscoco"
    return [name, f"questions/{name}", f"{archive}/{name}", f"annotations/{name}"]


def _annotation_files(split: str) -> list[str]:
    name = f"v2_mscoco_{_SUBTYPES[split]}_annotations.json"
    return [name, f"annotations/{name}", f"v2_Annotations_{split.capitalize()}_mscoco/{name}"]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    file = first_file(folder, _question_files(split), "unpack the questions archive of VQA v2 there")
    labelled = split in ("train", "val")
    annotations: dict[int, dict[str, Any] | None] = {}
    if labelled:
        source = first_file(folder, _annotation_files(split), "unpack the annotations archive of VQA v2 there")
        annotations = _read_annotations(source, reading)
    files = ImageFiles(*coco_roots(folder))
    images: dict[int, Path | None] = {}  # one Path shared by all questions about an image
    count = 0
    seen: set[int] = set()
    for _, count, record in stream_arrays(file, "questions"):
        number: int | None = None
        try:
            number = get(_object(record), "question_id", int)
            question = get(record, "question", str)
            image_id = get(record, "image_id", int)
            if number in seen:
                raise ValueError("its question_id occurred before")
            seen.add(number)
            extra = annotations.pop(number, {}) if labelled else {"image_id": image_id}
            if extra is None:
                continue  # its annotation was reported
            if not question.strip():
                raise ValueError("its question is empty")
            if not extra:
                raise ValueError("it has no annotation")
            if extra["image_id"] != image_id:
                raise ValueError(f"it is about image {image_id}, but its annotation about {extra['image_id']}")
        except ValueError as error:
            if number is not None:
                annotations.pop(number, None)
            reading.bad(file, f"question {count if number is None else number}", str(error))
            continue
        if image_id not in images:
            images[image_id] = files.find(coco_names(image_id, _FOLDERS[split]))
        if (image := images[image_id]) is None:
            where = _FOLDERS[split][0]
            what = f"its image {image_id} is missing"
            reading.bad(file, f"question {number}", what, f"unpack {where}.zip of COCO in {folder}")
            continue
        yield Example(str(number), extra.get("multiple_choice_answer"), (image,), question, (), extra)
    if not count:
        raise DataError(Problem(str(file), "", "it has no questions", "download it again"))
    for number, left in annotations.items():
        if left is not None:
            reading.bad(source, f"annotation of question {number}", f"no such question in {file.name}")


def _read_annotations(file: Path, reading: Reading) -> dict[int, dict[str, Any] | None]:
    """The content of `Example.extra`, by question; None if an annotation was bad."""
    found: dict[int, dict[str, Any] | None] = {}
    for _, count, record in stream_arrays(file, "annotations"):
        number: int | None = None
        try:
            number = get(_object(record), "question_id", int)
            if number in found:
                raise ValueError("an earlier annotation has the same question")
            found[number] = _annotation(record)
        except ValueError as error:
            if number is not None:
                found.setdefault(number, None)
            reading.bad(
                file, f"annotation {count}" if number is None else f"annotation of question {number}", str(error)
            )
    return found


def _annotation(record: dict[str, Any]) -> dict[str, Any]:
    people = get(record, "answers", list)
    try:
        # The same few words recur in millions of answers: interned, they take the memory of one.
        answers = tuple([intern(person["answer"]) for person in people])
    except (KeyError, TypeError):
        answers = tuple(get(_object(person), "answer", str) for person in people)  # raises if something is wrong
    if len(answers) != _ANNOTATORS:
        raise ValueError(f"it has {len(answers)} answers, not {_ANNOTATORS}")
    if (answer_type := get(record, "answer_type", str)) not in _ANSWER_TYPES:
        raise ValueError(f"its answer_type {answer_type!r:.40} is not one of {', '.join(sorted(_ANSWER_TYPES))}")
    return {
        "image_id": get(record, "image_id", int),
        "multiple_choice_answer": intern(get(record, "multiple_choice_answer", str)),
        "answers": answers,
        "question_type": intern(get(record, "question_type", str)),
        "answer_type": intern(answer_type),
    }


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.40} is not a JSON object")
    return value


def _present(folder: Path) -> bool:
    return any((folder / name).is_file() for split in _SUBTYPES for name in _question_files(split))


def _from_hub(row: Row, split: str, position: int, folder: Path) -> Example:
    image_id, question = get(row, "image_id", int), text(row, "question")
    people = row.get("answers")
    if isinstance(people, dict):  # a list for each field, as older versions of `datasets` store a list of records
        row = row | {"answers": [{"answer": answer} for answer in get(people, "answer", list)]}
    extra = _annotation(row) if split in ("train", "val") else {"image_id": image_id}
    image = picture(row, "image", folder)
    number = str(get(row, "question_id", int))
    return Example(number, extra.get("multiple_choice_answer"), (image,), question, (), extra)


_OFFICIAL = Dataset(
    name="vqav2",
    splits=tuple(_SUBTYPES),
    read=_read,
    present=_present,
    beside=COCO_BESIDE,
    counts={"train": 443_757, "val": 214_354, "test": 447_793, "test-dev": 107_394},
)

_HUB_SPLITS = {"val": "validation", "test-dev": "testdev"}
DATASET = with_hub(_OFFICIAL, Hub(("question", "question_id", "image_id", "image"), _from_hub, _HUB_SPLITS))
