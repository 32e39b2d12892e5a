"""COCO-style files: arrays of images, categories and annotations that refer to each other by id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, Reading, get
from holdfast.datasets.formats.boxes import sized_box
from holdfast.datasets.formats.json_stream import stream_arrays

Record = dict[str, Any]


def collect(path: Path, reading: Reading, *names: str) -> dict[str, list[tuple[str, Record]]]:
    """The records of some arrays of a file, each with the words that name it; what is no object is a bad record.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "val.json"
    >>> _ = path.write_text('{"images": [{"id": 7}]}')
    >>> collect(path, Reading(), "images")
    {'images': [('images 1', {'id': 7})]}
    """
    found: dict[str, list[tuple[str, Record]]] = {name: [] for name in names}
    for name, number, record in stream_arrays(path, *names):
        place = f"{name} {number}"
        if isinstance(record, dict):
            found[name].append((place, record))
        else:
            reading.bad(path, place, "it is no JSON object")
    return found


def by_id(
    path: Path, reading: Reading, records: Iterable[tuple[str, Record]], text: str, key: str = "id"
) -> dict[int, Record]:
    """Records by their number, each with a string field `text`; those without, and second ones, are bad records.

    >>> by_id(Path("a.json"), Reading(), [("images 1", {"id": 7, "file_name": "7.jpg"})], "file_name")
    {7: {'id': 7, 'file_name': '7.jpg'}}
    """
    found: dict[int, Record] = {}
    for place, record in records:
        try:
            number = get(record, key, int)
            get(record, text, str)
            if number in found:
                raise ValueError(f"its {key} {number} was there before")
        except ValueError as error:
            reading.bad(path, place, str(error), "download the file again")
            continue
        found[number] = record
    return found


@dataclass(frozen=True)
class Boxes:
    """An image of a detection set with its annotations, whose boxes and categories are checked."""

    image: Record
    annotations: tuple[Record, ...]
    classes: tuple[int, ...]
    """The rank of each annotation's category among the sorted category ids."""


def read_boxes(path: Path, reading: Reading) -> Iterator[Boxes]:
    """The images of a detection file, joined by id. A bad annotation is dropped and told, and its image stays.

    >>> import json, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "val.json"
    >>> annotation = {"image_id": 7, "category_id": 3, "bbox": [1, 2, 30, 40]}
    >>> arrays = {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [annotation]}
    >>> _ = path.write_text(json.dumps({**arrays, "categories": [{"id": 3, "name": "Lamp"}]}))
    >>> [found.classes for found in read_boxes(path, Reading())]
    [(0,)]
    """
    arrays = collect(path, reading, "images", "annotations", "categories")
    categories = by_id(path, reading, arrays["categories"], "name")
    if not categories:
        raise DataError(Problem(str(path), "", "it has no categories", "download it again"))
    images = by_id(path, reading, arrays["images"], "file_name")
    rank = {number: position for position, number in enumerate(sorted(categories))}
    joined: dict[int, list[Record]] = {}
    for place, record in arrays["annotations"]:
        try:
            image, category = get(record, "image_id", int), get(record, "category_id", int)
            if image not in images:
                raise ValueError(f"its image {image} is not in the list of images")
            if category not in rank:
                raise ValueError(f"its category {category} is not in the list of categories")
            sized_box(get(record, "bbox", list))
        except ValueError as error:
            reading.bad(path, f"{place} (id {record.get('id')!r:.40})", str(error))
            continue
        joined.setdefault(image, []).append(record)
    for number, record in images.items():
        annotations = tuple(joined.pop(number, ()))
        yield Boxes(record, annotations, tuple(rank[annotation["category_id"]] for annotation in annotations))
