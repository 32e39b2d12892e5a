"""NLVR2: is a sentence true of two images?

Two copies on the hub can be read too: train and dev of `pingzhili/nlvr2`, and the balanced and unbalanced parts of dev
and test1 of `lmms-lab/NLVR2`, which has different column names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get, read_json_lines
from holdfast.datasets.formats.fields import named_label, text
from holdfast.datasets.formats.hub import Hub, Row, picture, with_hub
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.files import FileError, open_regular
from holdfast.types import Example

VERSION = 1
_FILES = {
    "train": "train.json",
    "dev": "dev.json",
    "test1": "test1.json",
    "test2": "test2.json",
    "balanced_dev": "balanced/balanced_dev.json",
    "balanced_test1": "balanced/balanced_test1.json",
    "unbalanced_dev": "unbalanced/unbalanced_dev.json",
    "unbalanced_test1": "unbalanced/unbalanced_test1.json",
}
_LABELS = {"False": 0, "True": 1}
_IDENTIFIER = re.compile(r"(?P<pair>(?P<split>[a-z]+[0-9]?)-[0-9]+-[0-9]+)-[0-9]+", re.ASCII)
_DIRECTORY = re.compile(r"[0-9]{1,4}", re.ASCII)
_EXTRA = ("synset", "query", "writer", "validation", "extra_validations")


def _annotation_files(split: str) -> list[str]:
    name = _FILES[split]
    return [f"data/{name}", name, name.rpartition("/")[2]]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    file = first_file(folder, _annotation_files(split), "copy the data folder of NLVR2 there")
    files = ImageFiles(folder / "images", folder)
    remedy = f"unpack the images in {folder / 'images'}"
    for line, record in read_json_lines(file, reading):
        place = f"line {line}"
        try:
            identifier = get(record, "identifier", str)
            if not (match := _IDENTIFIER.fullmatch(identifier)):
                raise ValueError(f"its identifier {identifier!r:.60} is not of the form split-set-pair-sentence")
            place = identifier
            target, sentence = named_label(record, "label", _LABELS), text(record, "sentence")
            directory = _directory(record)
            folders = _image_folders(match["split"], directory)
            images = tuple(files.need(f"{match['pair']}-img{side}.png", folders, remedy) for side in (0, 1))
        except ValueError as error:
            reading.bad(file, place, str(error))
            continue
        extra = {name: record[name] for name in _EXTRA if name in record}
        if directory is not None:
            extra["directory"] = directory
        yield Example(identifier, target, images, sentence, (), extra)


def _directory(record: dict[str, Any]) -> str | None:
    """The folder of a training image, given in the files as a number or as text."""
    if record.get("directory") is None:
        return None
    value = str(get(record, "directory", (int, str)))
    if not _DIRECTORY.fullmatch(value):
        raise ValueError(f"its directory {value!r:.40} is not a number")
    return value


def _image_folders(split: str, directory: str | None) -> list[str]:
    inner = [f"{split}/", f"{split}_img/", *(["test_img/"] if split == "test1" else [])]
    if split != "train":
        return inner
    # Many people unpack the hundred folders of the training images into one.
    numbers = [directory] if directory is not None else [str(number) for number in range(100)]
    return [f"{name}{number}/" for name in inner for number in numbers] + inner


def _present(folder: Path) -> bool:
    # Other datasets have a train.json and a dev.json too.
    names = ["data/test1.json", "data/test2.json", "test1.json", "test2.json"]
    if any((folder / name).is_file() for name in names) or (folder / "images" / "train" / "0").is_dir():
        return True
    return any(_is_nlvr2(folder / f"{place}{split}.json") for place in ("data/", "") for split in ("train", "dev"))


def _is_nlvr2(path: Path) -> bool:
    """Whether a file begins with a record of NLVR2: a download may have only some of the splits."""
    try:
        with open_regular(path) as file:
            line = file.readline(20_000)
    except (OSError, FileError):
        return False
    return b'"identifier"' in line and b'"sentence"' in line and b'"left_url"' in line


def _hub(sentence: str, label: str, left: str, right: str, splits: dict[str, str]) -> Hub:
    """A copy on the hub with these column names."""

    def example(row: Row, split: str, number: int, folder: Path) -> Example:
        target = named_label(row, label, _LABELS)
        images = picture(row, left, folder), picture(row, right, folder)
        extra = {name: row[name] for name in _EXTRA if name in row}
        return Example(_hub_id(row, split, number), target, images, text(row, sentence), (), extra)

    return Hub((sentence, label, left, right), example, splits)


def _hub_id(row: Row, split: str, number: int) -> str:
    names = (row.get("identifier"), row.get("question_id"))
    return next((name for name in names if isinstance(name, str) and _IDENTIFIER.fullmatch(name)), f"{split}-{number}")


_OFFICIAL = Dataset(
    name="nlvr2",
    splits=tuple(_FILES),
    read=_read,
    present=_present,
    counts={
        "train": 86_373,
        "dev": 6_982,
        "test1": 6_967,
        "test2": 6_970,
        "balanced_dev": 2_300,
        "balanced_test1": 2_316,
        "unbalanced_dev": 3_562,
        "unbalanced_test1": 3_536,
    },
)

_WHOLE = _hub("sentence", "label", "image0", "image1", {"dev": "validation"})
_PARTS = {"balanced_test1": "balanced_test_public", "unbalanced_test1": "unbalanced_test_public"}
DATASET = with_hub(with_hub(_OFFICIAL, _WHOLE), _hub("question", "answer", "left_image", "right_image", _PARTS))
