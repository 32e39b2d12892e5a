"""Flickr8k: photographs with five captions each, in the official splits.

The archive of the texts is unpacked beside the photographs, or into a folder of its own. The photographs are in
`Flicker8k_Dataset` (the archive's own spelling).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, read_text
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_SPLITS = {"train": "Flickr_8k.trainImages.txt", "dev": "Flickr_8k.devImages.txt", "test": "Flickr_8k.testImages.txt"}
_CAPTIONS = "Flickr8k.token.txt"
_TEXTS = ("", "Flickr8k_text/", "Flicker8k_text/")
_PICTURES = ("Flicker8k_Dataset", "Flickr8k_Dataset", "Images", "images")
_UNPACK = "unpack Flickr8k_text.zip there"


def _read(folder: Path, split: str, reading: Reading, *, pictures: bool = True) -> Iterator[Example]:
    """One example per photograph; its captions are in `extra`, in the order of their numbers.

    Captions of photographs outside the splits are set aside. Without `pictures`, the photographs need not exist.
    """
    listing = first_file(folder, [place + _SPLITS[split] for place in _TEXTS], _UNPACK)
    file = first_file(folder, [place + _CAPTIONS for place in _TEXTS], _UNPACK)
    captions = _captions(file, reading)
    files, seen = ImageFiles(folder), False
    for number, line in enumerate(read_text(listing).split("\n"), 1):
        if not (name := line.strip()):
            continue
        seen = True
        if "/" in name or not name.endswith(".jpg"):
            reading.bad(listing, f"line {number}", f"{name!r:.60} is not the name of a photograph")
            continue
        own = captions.get(name, {})
        if not own:
            reading.bad(file, f"photograph {name:.60}", "it has no captions", "download Flickr8k_text.zip again")
            continue
        shown: tuple[Path, ...] = ()
        if pictures:
            if (path := files.find(f"{place}/{name}" for place in _PICTURES)) is None:
                what = f"its file {name:.60} is missing"
                reading.bad(listing, f"line {number}", what, f"unpack Flickr8k_Dataset.zip in {folder}")
                continue
            shown = (path,)
        texts = tuple(own[order] for order in sorted(own))
        yield Example(name.removesuffix(".jpg"), None, shown, "", (), {"captions": texts})
    if not seen:
        raise DataError(Problem(str(listing), "", "it lists no photographs", "download it again"))


def _captions(file: Path, reading: Reading) -> dict[str, dict[int, str]]:
    """The captions of each photograph by their numbers."""
    found: dict[str, dict[int, str]] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            name, tab, text = line.rstrip("\r").partition("\t")
            image, hash_, order = name.rpartition("#")
            if not (tab and hash_ and image and order.isascii() and order.isdigit() and len(order) < 3):
                raise ValueError("it is not a photograph, # and a number, then a tab and a caption")
            if int(order) in found.setdefault(image, {}):
                raise ValueError(f"{name:.60} occurred before")
            if not text.strip():
                raise ValueError("its caption is empty")
        except ValueError as error:
            reading.bad(file, f"line {number}", str(error), "download Flickr8k_text.zip again")
            continue
        found[image][int(order)] = text.strip()
    return found


def _present(folder: Path) -> bool:
    return any((folder / (place + _SPLITS["train"])).is_file() for place in _TEXTS)


DATASET = Dataset(
    name="flickr8k",
    splits=tuple(_SPLITS),
    read=_read,
    present=_present,
    counts={"train": 6_000, "dev": 1_000, "test": 1_000},
    annotations=partial(_read, pictures=False),
    pictured=lambda folder: ImageFiles(folder).any_folder(_PICTURES),
)
ANNOTATIONS = DATASET.without_pictures()
"""The contents of the text files, for uses without photographs: examples without them."""
