"""GQA: scene graphs (`train`, `val`), and the balanced questions (`train_questions`, ...).

All ids are strings. An Example of a scene graph is an image with its objects in `extra`, under the official names and
also as `boxes` (x, y, w, h) and `labels` (their names); it has no target. An Example of a question has the answer as a
word, or none in test and challenge. The files of all (unbalanced) questions are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get
from holdfast.datasets.formats.boxes import sized_box
from holdfast.datasets.formats.fields import optional, words
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.datasets.formats.json_members import stream_members
from holdfast.types import Example

VERSION = 1
_GRAPHS = ("train", "val")
_QUESTIONS = ("train", "val", "testdev", "test", "challenge")
_UNANSWERED = ("test", "challenge")
_EXTRA: dict[str, type] = {"isBalanced": bool, "fullAnswer": str, "types": dict, "groups": dict, "semantic": list}


def _graph_files(split: str) -> list[str]:
    return [f"{split}_sceneGraphs.json", f"sceneGraphs/{split}_sceneGraphs.json"]


def _question_files(split: str) -> list[str]:
    name = f"{split}_balanced_questions.json"
    return [name, f"questions1.2/{name}", f"questions/{name}"]


def _present(folder: Path) -> bool:
    names = [name for split in _GRAPHS for name in _graph_files(split)]
    names += [name for split in _QUESTIONS for name in _question_files(split)]
    return any((folder / name).is_file() for name in names)


def _records(path: Path, what: str, reading: Reading) -> Iterator[tuple[str, dict[str, Any]]]:
    seen: set[str] = set()
    for name, record in stream_members(path):
        if not isinstance(record, dict) or name in seen:
            why = "it occurred before" if name in seen else "it is not a JSON object"
            reading.bad(path, f"{what} {name:.60}", why, "download the file again")
        else:
            seen.add(name)
            yield name, record


def _object(record: Any, known: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    box = sized_box([get(record, side, object) for side in ("x", "y", "w", "h")])
    links: Any = record.get("relations", [])
    links = list(links.values()) if isinstance(links, dict) else links  # the owner's page shows both forms
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise ValueError("its 'relations' are not a list of objects")
    relations = tuple((get(link, "name", str), get(link, "object", str)) for link in links)
    for _, other in relations:
        if other not in known:
            raise ValueError(f"it has a relation to {other!r:.40}, which is not in the image")
    attributes = words(record, "attributes") if "attributes" in record else ()
    return {"name": get(record, "name", str), "box": box, "attributes": attributes, "relations": relations}


def _graphs(path: Path, pictures: ImageFiles, reading: Reading) -> Iterator[Example]:
    for number, record in _records(path, "image", reading):
        try:
            extra = optional(record, {"width": int, "height": int, "location": str, "weather": str})
            listed = get(record, "objects", dict)
            image = pictures.need(f"{number}.jpg")
        except ValueError as error:
            reading.bad(path, f"image {number:.60}", str(error), "unpack images.zip and sceneGraphs.zip again")
            continue
        objects = {}
        for name, value in listed.items():
            try:
                objects[name] = _object(value, listed)
            except ValueError as error:
                reading.bad(path, f"image {number:.60}, object {name:.60}", str(error))
        extra["objects"] = objects
        extra["boxes"] = tuple(thing["box"] for thing in objects.values())
        extra["labels"] = tuple(thing["name"] for thing in objects.values())
        yield Example(number, None, (image,), extra=extra)


def _questions(path: Path, split: str, pictures: ImageFiles, reading: Reading) -> Iterator[Example]:
    for number, record in _records(path, "question", reading):
        try:
            name = get(record, "imageId", str)
            image = pictures.need(f"{name}.jpg")
            answer = None if split in _UNANSWERED and "answer" not in record else get(record, "answer", str)
            extra = {"imageId": name, **optional(record, _EXTRA)}
            example = Example(number, answer, (image,), get(record, "question", str), extra=extra)
        except ValueError as error:
            reading.bad(path, f"question {number:.60}", str(error), "unpack images.zip and questions1.2.zip again")
            continue
        yield example


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    pictures = ImageFiles(folder / "images", folder / "images" / "images", folder / "allImages" / "images")
    if split in _GRAPHS:
        yield from _graphs(first_file(folder, _graph_files(split), "unpack sceneGraphs.zip there"), pictures, reading)
        return
    name = split.removesuffix("_questions")
    path = first_file(folder, _question_files(name), "unpack questions1.2.zip there")
    yield from _questions(path, name, pictures, reading)


DATASET = Dataset(
    name="gqa",
    splits=(*_GRAPHS, *(f"{split}_questions" for split in _QUESTIONS)),
    read=_read,
    present=_present,
    counts={
        "train": 74_942,
        "val": 10_696,
        "train_questions": 943_000,
        "val_questions": 132_062,
        "testdev_questions": 12_578,
        "test_questions": 95_336,
        "challenge_questions": 50_726,
    },
)
