"""COCO-style files: arrays of images, categories and annotations that refer to each other by id."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import DataError, Problem, Reading, get
from holdfast.datasets.formats.boxes import numbers
from holdfast.datasets.formats.json_stream import stream_arrays

Record = dict[str, Any]


def collect(path: Path, reading: Reading, *names: str) -> dict[str, list[tuple[str, Record]]]:
    """The records of some arrays of a file, each with a description of its place; a non-object is a bad record.

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
            reading.bad(path, place, "it is not a JSON object")
    return found


def by_id(path: Path, reading: Reading, records: Iterable[tuple[str, Record]], text: str) -> dict[int, str]:
    """The string field `text` of each record, by its id; records without it, or with a repeated id, are bad records.

    >>> by_id(Path("a.json"), Reading(), [("images 1", {"id": 7, "file_name": "7.jpg"})], "file_name")
    {7: '7.jpg'}
    """
    found: dict[int, str] = {}
    for place, record in records:
        try:
            _add(found, record, text)
        except ValueError as error:
            reading.bad(path, place, str(error), "download the file again")
    return found


def _add(found: dict[int, str], record: Record, text: str) -> None:
    number, value = _number(record, "id", 8), get(record, text, str)
    if number in found:
        raise ValueError(f"its id {number} occurred before")
    found[number] = value


def _number(record: Record, name: str, size: int) -> int:
    """A whole number that fits into `size` bytes, as in a column of an array."""
    value = get(record, name, int)
    if not -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
        raise ValueError(f"its {name!r} is far too large")
    return value


@dataclass(frozen=True)
class Boxes:
    """An image of a detection set, and the things in it that have a box."""

    id: int
    file_name: str
    boxes: tuple[tuple[float, ...], ...]
    """Left, top, width and height of each thing."""
    categories: tuple[int, ...]
    """The category id of each thing."""
    fields: dict[str, tuple[Any, ...]]
    """The other requested fields of each thing."""
    classes: tuple[int, ...]
    """The classes that the image shows: ranks of category ids, including things whose box has no size."""


class _Annotations:
    """All annotations of a file, one column per field: as objects they would take a kilobyte each."""

    def __init__(self, flags: tuple[str, ...], fields: tuple[str, ...]) -> None:
        self.places, self.images, self.categories, self.boxes = array("q"), array("q"), array("i"), array("d")
        self.flags = {name: array("b") for name in flags}
        self.fields: dict[str, list[Any]] = {name: [] for name in fields}

    def add(self, place: int, record: Record) -> None:
        image, category = _number(record, "image_id", 8), _number(record, "category_id", 4)
        box = numbers(get(record, "bbox", list), 4)
        flags = [_number(record, name, 1) if name in record else 0 for name in self.flags]
        self.places.append(place)
        self.images.append(image)
        self.categories.append(category)
        self.boxes.extend(box)
        for column, flag in zip(self.flags.values(), flags, strict=True):
            column.append(flag)
        for name, values in self.fields.items():
            values.append(record.get(name))


def read_boxes(
    path: Path, reading: Reading, flags: tuple[str, ...] = (), fields: tuple[str, ...] = ()
) -> Iterator[Boxes]:
    """The images of a detection file, joined by id. A bad annotation is skipped and reported, and its image stays.

    A box without size is reported and left out, but its category still counts as shown: an annotation is a label
    whatever its box. `flags` are fields of small numbers, 0 if absent; `fields` may contain anything.

    >>> import json, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "val.json"
    >>> annotation = {"image_id": 7, "category_id": 3, "bbox": [1, 2, 30, 40]}
    >>> arrays = {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [annotation]}
    >>> _ = path.write_text(json.dumps({**arrays, "categories": [{"id": 3, "name": "Lamp"}]}))
    >>> [(found.classes, found.boxes) for found in read_boxes(path, Reading())]
    [((0,), ((1.0, 2.0, 30.0, 40.0),))]
    """
    images: dict[int, str] = {}
    categories: dict[int, str] = {}
    annotations = _Annotations(flags, fields)
    for name, place, record in stream_arrays(path, "images", "annotations", "categories"):
        try:
            if not isinstance(record, dict):
                raise ValueError("it is not a JSON object")
            if name == "annotations":
                annotations.add(place, record)
            elif name == "images":
                _add(images, record, "file_name")
            else:
                _add(categories, record, "name")
        except ValueError as error:
            reading.bad(path, f"{name} {place}", str(error), "download the file again")
    if not categories:
        raise DataError(Problem(str(path), "", "it has no categories", "download it again"))
    yield from _joined(path, reading, images, sorted(categories), annotations)


def _joined(
    path: Path, reading: Reading, images: dict[int, str], categories: list[int], annotations: _Annotations
) -> Iterator[Boxes]:
    owners, owned = _positions(np.fromiter(images, np.int64, len(images)), np.asarray(annotations.images))
    ranks, ranked = _positions(np.array(categories, np.int64), np.asarray(annotations.categories))
    boxes = np.asarray(annotations.boxes).reshape(-1, 4)
    sized: NDArray[np.bool_] = np.all(boxes[:, 2:] > 0, axis=1)
    for row in np.flatnonzero(~(owned & ranked & sized)).tolist():
        if not owned[row]:
            what = f"its image {annotations.images[row]} is not in the list of images"
        elif not ranked[row]:
            what = f"its category {annotations.categories[row]} is not in the list of categories"
        else:
            what = f"its box {boxes[row].tolist()} has no size"
        reading.bad(path, f"annotations {annotations.places[row]}", what)
    rows = np.flatnonzero(owned & ranked)
    rows = rows[np.argsort(owners[rows], kind="stable")]
    stop = 0
    for (number, name), count in zip(
        images.items(), np.bincount(owners[rows], minlength=len(images)).tolist(), strict=True
    ):
        stop += count
        mine = rows[stop - count : stop]
        things = mine[sized[mine]]
        yield Boxes(
            number,
            name,
            tuple(map(tuple, boxes[things].tolist())),
            tuple(annotations.categories[row] for row in things.tolist()),
            {
                name: tuple(column[row] for row in things.tolist())
                for name, column in (*annotations.flags.items(), *annotations.fields.items())
            },
            tuple(sorted(set(ranks[mine].tolist()))),
        )


def _positions(known: NDArray[np.int64], wanted: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The position of each wanted number among the known ones (0 if it is missing), and whether it is known."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    order = np.argsort(known)
    places = order[np.searchsorted(known, wanted, sorter=order).clip(max=len(known) - 1)]
    there = known[places] == wanted
    return np.where(there, places, 0), there
