"""VCR: questions about film stills, with four answers and four reasons, in which people and things are tagged.

The hub's tables of images (`Rowan/vcr`, its folder `image_examples`) can be read too; a row has all questions on one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get, read_json, read_json_lines
from holdfast.datasets.formats.boxes import corner_box
from holdfast.datasets.formats.hub import Hub, Row, picture, with_hub
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.files import FileError, open_regular
from holdfast.types import Example

VERSION = 1
_Tokens: TypeAlias = tuple[str | tuple[int, ...], ...]
_Metadata: TypeAlias = tuple[tuple[tuple[float, ...], ...], int, int]
_CHOICES = 4
_EXTRA = ("img_id", "movie", "match_fold", "match_index", "answer_likelihood", "question_number")


def _files(split: str) -> list[str]:
    return [f"{split}.jsonl", f"vcr1annots/{split}.jsonl", f"annotation/{split}.jsonl"]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    """One example per question: to choose an answer, and (in `extra`) to choose the reason, given the right answer.

    A tag becomes `[person2]` in the texts; the same tokens with tags as tuples of object indices are in `extra` under
    the official names. Each of `boxes` is (left, top, right, bottom, detector's score), one for each of `objects`.
    """
    file = first_file(folder, _files(split), "unpack vcr1annots.zip there")
    files = ImageFiles(folder / "vcr1images", folder, folder / "images")
    read_metadata = lru_cache(maxsize=16)(_metadata)  # the questions about an image are adjacent
    for line, record in read_json_lines(file, reading):
        place = f"line {line}"
        try:
            place = get(record, "annot_id", str)
            example = _example(record, place, split, files, read_metadata)
        except DataError as error:  # the metadata of one image, not the whole dataset
            reading.bad(error.problem.file, place, error.problem.what, error.problem.remedy)
        except ValueError as error:
            reading.bad(file, place, str(error))
        else:
            yield example


def _example(
    record: dict[str, Any], annot_id: str, split: str, files: ImageFiles, read_metadata: Callable[[Path], _Metadata]
) -> Example:
    image, metadata = _file(record, "img_fn", files), _file(record, "metadata_fn", files)
    example = _question(record, annot_id, split, image, read_metadata(metadata))
    return replace(example, extra={**example.extra, "metadata_fn": metadata})


def _question(
    record: dict[str, Any], annot_id: str, split: str, image: Path | NDArray[np.uint8], metadata: _Metadata
) -> Example:
    objects = tuple(get({"object": name}, "object", str) for name in get(record, "objects", list))
    question = _tokens(get(record, "question", list), len(objects))
    answers = _choices(record, "answer_choices", len(objects))
    rationales = _choices(record, "rationale_choices", len(objects)) if _has(record, "rationale_choices", split) else ()
    answer_label = _label(record, "answer_label") if _has(record, "answer_label", split) else None
    rationale_label = _label(record, "rationale_label") if _has(record, "rationale_label", split) else None
    boxes, width, height = metadata
    if len(boxes) != len(objects):
        raise ValueError(f"it has {len(objects)} objects, but its image has {len(boxes)} boxes")
    extra = {name: record[name] for name in _EXTRA if name in record} | {
        "objects": objects,
        "boxes": boxes,
        "width": width,
        "height": height,
        "question": question,
        "answer_choices": answers,
        "answer_label": answer_label,
        "rationale_choices": rationales,
        "rationale_label": rationale_label,
        "rationales": tuple(_text(rationale, objects) for rationale in rationales),
    }
    choices = tuple(_text(answer, objects) for answer in answers)
    return Example(annot_id, answer_label, (image,), _text(question, objects), choices, extra)


def _has(record: dict[str, Any], name: str, split: str) -> bool:
    """Whether to read a field that may be missing from the test split."""
    return split != "test" or record.get(name) is not None


def _tokens(value: list[Any], objects: int) -> _Tokens:
    if not value:
        raise ValueError("one of its texts is empty")
    found: list[str | tuple[int, ...]] = []
    for token in value:
        if isinstance(token, str):
            found.append(token)
        elif isinstance(token, list) and token and all(type(index) is int for index in token):
            if not all(0 <= index < objects for index in token):
                raise ValueError(f"its tag {token!r:.40} is not among its {objects} objects")
            found.append(tuple(token))
        else:
            raise ValueError(f"its token {token!r:.40} is neither a word nor a tag")
    return tuple(found)


def _choices(record: dict[str, Any], name: str, objects: int) -> tuple[_Tokens, ...]:
    choices = get(record, name, list)
    if len(choices) != _CHOICES:
        raise ValueError(f"it has {len(choices)} {name}, not {_CHOICES}")
    return tuple(_tokens(get({name: choice}, name, list), objects) for choice in choices)


def _label(record: dict[str, Any], name: str) -> int:
    if not 0 <= (label := get(record, name, int)) < _CHOICES:
        raise ValueError(f"its {name} {label} is not among 0 to {_CHOICES - 1}")
    return label


def _text(tokens: _Tokens, objects: tuple[str, ...]) -> str:
    """Tokens as text: a tag becomes the object's name with its number, counted from one."""
    names = [f"[{name}{number}]" for number, name in enumerate(objects, 1)]
    return " ".join(
        token if isinstance(token, str) else " and ".join(names[index] for index in token) for token in tokens
    )


def _file(record: dict[str, Any], key: str, files: ImageFiles) -> Path:
    name = get(record, key, str)
    if (found := files.find([name])) is None:
        raise ValueError(f"its file {name!r:.120} is missing: unpack vcr1images.zip beside the annotations")
    return found


def _metadata(path: Path) -> _Metadata:
    record = read_json(path)
    try:
        if not isinstance(record, dict):
            raise ValueError("it is not a JSON object")
        return _boxes(record)
    except ValueError as error:
        raise DataError(Problem(str(path), "", str(error), "unpack vcr1images.zip again")) from None


def _boxes(record: dict[str, Any], scored: bool = True) -> _Metadata:
    """The boxes of an image's objects, its width and its height; polygons may be empty and are not read."""
    width, height = get(record, "width", int), get(record, "height", int)
    if min(width, height) < 1:
        raise ValueError(f"its size {width} x {height} is not positive")
    return tuple(corner_box(box, 5 if scored else 4) for box in get(record, "boxes", list)), width, height


def _present(folder: Path) -> bool:
    if (folder / "vcr1annots").is_dir() or (folder / "vcr1images").is_dir():
        return True
    # Several datasets have a train.jsonl: the first record shows which one it is.
    return any(_is_vcr(folder / name) for split in ("train", "val", "test") for name in _files(split))


def _is_vcr(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            line = file.readline(20_000)
    except (OSError, FileError):
        return False
    return b'"answer_choices"' in line and b'"metadata_fn"' in line


def _hub_parts(row: Row) -> list[Row]:
    """A row for each question about an image, from a row of the hub, which is one image."""
    notes = row.get("annotations")
    return [row | {"annotation": note} for note in notes] if isinstance(notes, list) and notes else [row]


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    record = {name: value for name, value in get(row, "annotation", dict).items() if value is not None}
    record = {"objects": row.get("objects")} | record
    record["question"] = _official(get(record, "question_tokens", list))
    for name in ("answer", "rationale"):
        if split == "test" and record.get(f"{name}_label") == -1:
            del record[f"{name}_label"]
        if (choices := record.get(f"{name}_choice_tokens")) is not None:
            record[f"{name}_choices"] = [_official(tokens) for tokens in _list(choices)]
    # Only four numbers of a box are read: whether the detector's score follows is not known.
    scored = any(isinstance(box, list) and len(box) == 5 for box in get(row, "boxes", list))
    return _question(record, get(record, "annot_id", str), split, picture(row, "image", folder), _boxes(row, scored))


def _official(tokens: Any) -> list[Any]:
    """The hub's tokens, each stored with its kind, in the official form: words, and lists of object indices."""
    fields = {"text": "text", "objects": "object_indices"}
    found = []
    for token in _list(tokens):
        kind = token.get("kind") if isinstance(token, dict) else None
        if not isinstance(kind, str) or kind not in fields:
            raise ValueError(f"its token {token!r:.60} is neither text nor objects")
        found.append(token.get(fields[kind]))
    return found


def _list(value: Any) -> list[Any]:
    return get({"tokens": value}, "tokens", list)


_OFFICIAL = Dataset(
    name="vcr",
    splits=("train", "val", "test"),
    read=_read,
    present=_present,
    counts={"train": 212_923, "val": 26_534, "test": 25_263},
)

_COLUMNS = ("image", "objects", "boxes", "width", "height", "annotations")
DATASET = with_hub(_OFFICIAL, Hub(_COLUMNS, _from_hub, {"val": "validation"}, parts=_hub_parts))
