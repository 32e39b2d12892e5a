"""SNLI-VE: does a sentence follow from an image, contradict it, or neither? With the images of Flickr30k."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import Dataset, Reading, first_file, get, read_json_lines
from holdfast.datasets.formats.fields import named_label, text
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_LABELS = {"entailment": 0, "contradiction": 1, "neutral": 2}  # in CLiMB's order: the dataset itself fixes none
_NO_LABEL = "-"
_IMAGE_KEYS = ("Flickr30K_ID", "Flickr30kID", "Flikr30kID")  # the owner's own files use three spellings
_FOLDERS = ("flickr30k_images", "flickr30k-images", "images", "flickr30k_images/flickr30k_images")
_EXTRA = ("gold_label", "sentence1", "annotator_labels", "captionID")


def _files(split: str) -> list[str]:
    name = f"snli_ve_{split}.jsonl"
    return [name, f"data/{name}"]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    """One example per hypothesis; rows without a gold label (annotators disagreed) do not belong to the task."""
    file = first_file(folder, _files(split), "put the SNLI-VE files there")
    remedy = f"unpack the images of Flickr30k in {folder / _FOLDERS[0]}"
    beside = folder.parent
    files = ImageFiles(folder, folder / "flickr30k", beside, beside / "flickr30k", beside / "flickr30k_entities")
    for line, record in read_json_lines(file, reading):
        place = f"line {line}"
        try:
            place = get(record, "pairID", str)
            if record.get("gold_label") == _NO_LABEL:
                reading.aside["without a gold label"] += 1
                continue
            target, hypothesis = named_label(record, "gold_label", _LABELS), text(record, "sentence2")
            image_id = _image_id(record)
            image = files.need(f"{image_id}.jpg", [f"{name}/" for name in _FOLDERS], remedy)
        except ValueError as error:
            reading.bad(file, place, str(error))
            continue
        extra = {name: record[name] for name in _EXTRA if name in record}
        yield Example(place, target, (image,), hypothesis, (), {"Flickr30K_ID": image_id} | extra)


def _image_id(record: dict[str, Any]) -> str:
    key = next((name for name in _IMAGE_KEYS if name in record), _IMAGE_KEYS[0])
    image_id = get(record, key, str).removesuffix(".jpg")
    if "/" in image_id or not image_id:
        raise ValueError(f"its {key} {image_id!r:.40} does not name an image")
    return image_id


def _present(folder: Path) -> bool:
    return any((folder / name).is_file() for split in ("train", "dev", "test") for name in _files(split))


DATASET = Dataset(
    name="snli_ve",
    splits=("train", "dev", "test"),
    read=_read,
    present=_present,
    beside=("flickr30k", "flickr30k_images", "flickr30k-images", "images", "flickr30k_entities"),
    counts={"train": 529_527, "dev": 17_858, "test": 17_901},
)
