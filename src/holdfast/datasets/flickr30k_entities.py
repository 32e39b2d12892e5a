"""Flickr30k Entities: five captions per image, with phrases linked to boxes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, read_text
from holdfast.datasets.formats.boxes import corner_box
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_CAPTIONS = 5
_NOT_ANNOTATED = "0"
_OPENING = re.compile(r"\[/EN#([0-9]+)((?:/[A-Za-z]+)+)", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_FOLDERS = ("flickr30k-images", "flickr30k_images", "images")


@dataclass
class _AnnotatedBoxes:
    """The content of an annotation file: boxes by chain, chains that are the whole scene, and chains without boxes."""

    width: int
    height: int
    boxes: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    scenes: set[str] = field(default_factory=set)
    unboxed: set[str] = field(default_factory=set)


def _read(folder: Path, split: str, reading: Reading, *, pictures: bool = True) -> Iterator[Example]:
    """One example per caption; its phrases, with start and stop in words and with their boxes, are in `extra`.

    A box is (left, top, right, bottom), its first and last pixels: one pixel wide if left equals right. It counts from
    zero, whereas the files count from one. Without `pictures`, the images need not exist.
    """
    root = _root(folder)
    listing = first_file(root, [f"{split}.txt"], "copy the split lists of Flickr30k Entities there")
    unrelated = _unrelated(root, reading)
    files = _image_files(folder)
    sheets = ImageFiles(root)
    lines = [line.strip() for line in read_text(listing).split("\n")]
    if not any(lines):
        raise DataError(Problem(str(listing), "", "it lists no images", "download it again"))
    for number, image_id in enumerate(lines, 1):
        if not image_id:
            continue
        if not (image_id.isascii() and image_id.isdigit()):
            reading.bad(listing, f"line {number}", f"{image_id!r:.40} is not the number of an image")
            continue
        try:
            places = [f"{name}/{image_id}.jpg" for name in _FOLDERS]
            shown = (_find(files, places, "ask for the images of Flickr30k"),) if pictures else ()
            sentences = _find(sheets, [f"Sentences/{image_id}.txt"], "unpack annotations.zip of Flickr30k Entities")
            annotation = _find(sheets, [f"Annotations/{image_id}.xml"], "unpack annotations.zip of Flickr30k Entities")
            captions = read_text(sentences).removesuffix("\n").split("\n")
            if len(captions) != _CAPTIONS:
                raise DataError(Problem(str(sentences), "", f"it has {len(captions)} lines, not {_CAPTIONS}"))
            root_element, image = _parse(annotation)
        except DataError as error:  # one image cannot be used, but the dataset can
            problem = error.problem
            reading.bad(problem.file, f"image {image_id}", problem.what, problem.remedy)
            continue
        _fill(root_element, image, annotation, reading)
        for index, caption in enumerate(captions):
            try:
                words, phrases = _phrases(caption)
            except ValueError as error:
                reading.bad(sentences, f"line {index + 1}", str(error))
                continue
            extra = {
                "image_id": image_id,
                "tokens": words,
                "phrases": tuple(_linked(phrase, image) for phrase in phrases),
                "width": image.width,
                "height": image.height,
                "related": (image_id, index + 1) not in unrelated,
            }
            yield Example(f"{image_id}.jpg#{index}", None, shown, " ".join(words), (), extra)


def _root(folder: Path) -> Path:
    """The folder that contains `Sentences`: archives are unpacked flat, or into a folder of their own."""
    places = (folder, folder / "annotations", folder / "Flickr30kEntities")
    return next((place for place in places if (place / "Sentences").is_dir()), folder)


def _image_files(folder: Path) -> ImageFiles:
    beside = folder.parent
    return ImageFiles(_root(folder), folder, folder / "flickr30k", beside, beside / "flickr30k", beside / "snli_ve")


def _find(files: ImageFiles, names: list[str], remedy: str) -> Path:
    if (found := files.find(names)) is None:
        raise DataError(Problem(names[0], "", "no such file", remedy))
    return found


def _phrases(caption: str) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The words of a caption without its markup, and its phrases in the order of the words."""
    words: list[str] = []
    phrases: list[dict[str, Any]] = []
    opened: dict[str, Any] | None = None
    for word in caption.split():
        if word.startswith("[/EN#"):
            if opened is not None:
                raise ValueError(f"the phrase at {word!r:.40} begins inside another phrase")
            if not (match := _OPENING.fullmatch(word)):
                raise ValueError(f"{word!r:.40} does not open a phrase")
            opened = {"start": len(words), "chain": match[1], "types": tuple(match[2][1:].split("/"))}
            continue
        closes = opened is not None and word.endswith("]")
        if closes:
            word = word[:-1]
        if word:
            words.append(word)
        if closes:
            assert opened is not None
            if opened["start"] == len(words):
                raise ValueError("it has a phrase without words")
            phrases.append(opened | {"stop": len(words), "phrase": " ".join(words[opened["start"] :])})
            opened = None
    if opened is not None:
        raise ValueError("its last phrase does not end")
    if not words:
        raise ValueError("it has no words")
    return tuple(words), phrases


def _linked(phrase: dict[str, Any], image: _AnnotatedBoxes) -> dict[str, Any]:
    chain = phrase["chain"]
    # Chain 0 means "nothing to see": each of its phrases is separate and has no box.
    boxes = () if chain == _NOT_ANNOTATED else tuple(image.boxes.get(chain, ()))
    return phrase | {"boxes": boxes, "scene": chain in image.scenes, "nobndbox": chain in image.unboxed}


def _parse(path: Path) -> tuple[ElementTree.Element, _AnnotatedBoxes]:
    text = read_text(path)
    try:
        if "<!" in text.replace("<!--", ""):
            raise ValueError("it declares a document type")  # no dataset needs one: entities can grow without end
        root = ElementTree.fromstring(text)
        width, height = int(_coordinate(root, "size/width")), int(_coordinate(root, "size/height"))
        if min(width, height) < 1:
            raise ValueError(f"its size {width} x {height} is not positive")
        return root, _AnnotatedBoxes(width, height)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        what = f"it is not an annotation ({error})"
        raise DataError(Problem(str(path), "", what, "unpack annotations.zip again")) from None


def _fill(root: ElementTree.Element, image: _AnnotatedBoxes, path: Path, reading: Reading) -> None:
    for number, item in enumerate(root.findall("object"), 1):
        try:
            chains = [(name.text or "").strip() for name in item.findall("name")]
            if not chains or not all(chains):
                raise ValueError("it has no name")
            box = item.find("bndbox")
            if box is None:
                image.scenes.update(chains if _flag(item, "scene") else ())
                image.unboxed.update(chains if _flag(item, "nobndbox") else ())
                continue
            pixels = [_coordinate(box, name) - 1 for name in ("xmin", "ymin", "xmax", "ymax")]
            corners = corner_box(pixels, inclusive=True)
        except ValueError as error:
            reading.bad(path, f"object {number}", str(error))
            continue
        for chain in chains:
            image.boxes.setdefault(chain, []).append(corners)


def _coordinate(element: ElementTree.Element, name: str) -> float:
    text = (element.findtext(name) or "").strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"its {name} is {text!r:.40}, not a number")
    return float(text)


def _flag(element: ElementTree.Element, name: str) -> bool:
    text = (element.findtext(name) or "0").strip()
    if text not in ("0", "1"):
        raise ValueError(f"its {name} is {text!r:.40}, not 0 or 1")
    return text == "1"


def _unrelated(root: Path, reading: Reading) -> set[tuple[str, int]]:
    """The captions (image, number from 1 to 5) that the owners found to be about something else."""
    path = root / "UNRELATED_CAPTIONS"
    found: set[tuple[str, int]] = set()
    if not path.is_file():
        return found
    for number, line in enumerate(read_text(path).split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[1] not in ("1", "2", "3", "4", "5"):
            reading.bad(path, f"line {number}", "it is not an image and the number of a caption")
            continue
        found.add((words[0], int(words[1])))
    return found


def _present(folder: Path) -> bool:
    root = _root(folder)
    return (root / "Sentences").is_dir() and (root / "Annotations").is_dir()


DATASET = Dataset(
    name="flickr30k_entities",
    splits=("train", "val", "test"),
    read=_read,
    present=_present,
    beside=("flickr30k", "flickr30k_images", "flickr30k-images", "images", "snli_ve"),
    counts={"train": 29_783 * _CAPTIONS, "val": 1_000 * _CAPTIONS, "test": 1_000 * _CAPTIONS},
    annotations=partial(_read, pictures=False),
    pictured=lambda folder: _image_files(folder).any_folder(_FOLDERS),
)
ANNOTATIONS = DATASET.without_pictures()
"""The contents of the annotation files, for uses without images: examples without them."""
