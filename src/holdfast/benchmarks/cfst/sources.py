"""The things in the pictures of GQA, Objects365 and PartImageNet, under the names that CFST uses for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.benchmarks.cfst.compose import Box
from holdfast.datasets.base import DataError, Dataset, Reading
from holdfast.datasets.formats.json_stream import stream_arrays
from holdfast.datasets.gqa import DATASET as GQA
from holdfast.datasets.objects365 import DATASET as OBJECTS365
from holdfast.datasets.partimagenet import DATASET as PARTIMAGENET
from holdfast.errors import UserError
from holdfast.types import Example

# CPIN's concepts distinguish animals by family, whereas PartImageNet's names only distinguish how they move. A family
# is a range of WordNet's numbers, which ImageNet's classes have (hyenas come between dogs and foxes). In the published
# list of ImageNet's 1,000 classes, each range contains all members of its family and nothing else.
_FAMILIES = (
    ("Testudines", 1662784, 1674464),
    ("Lacertilia", 1674464, 1696633),
    ("Canidae", 2083346, 2117135),
    ("Canidae", 2118333, 2120997),
    ("Felidae", 2120997, 2131653),
    ("Ursidae", 2131653, 2134971),
    ("Bovidae", 2401031, 2428508),
    ("Mustelidae", 2441326, 2453108),
    ("Primates", 2469914, 2503127),
)
_FAMILIES_OF = {
    "Quadruped": ("Canidae", "Felidae", "Ursidae", "Bovidae", "Mustelidae"),
    "Biped": ("Primates",),
    "Reptile": ("Testudines", "Lacertilia"),
}


@dataclass(frozen=True, slots=True)
class SourceThing:
    """One thing, or part of one, in a source picture."""

    picture: str
    file: Path
    concept: str
    box: Box
    attributes: tuple[str, ...] = ()


def read_things(name: str, folder: Path, reading: Reading) -> Iterator[list[SourceThing]]:
    """The things in each picture from which a benchmark is built, in the order of the official files."""
    for example, found in _READERS[name](folder, reading):
        file = example.images[0]
        assert isinstance(file, Path)
        things: dict[tuple[str, Box], SourceThing] = {}
        for concept, (left, top, width, height), attributes in found:
            box = (max(round(left), 0), max(round(top), 0), round(width), round(height))
            # A thing may be listed twice in a picture: it is one instance, with the attributes of both entries.
            if (concept, box) in things:
                attributes = tuple(dict.fromkeys((*things[concept, box].attributes, *attributes)))
            things[concept, box] = SourceThing(file.stem, file, concept, box, attributes)
        yield list(things.values())


def part_name(name: str, wnid: str) -> str:
    """A part named by the family of its animal, if CPIN distinguishes it, from the ImageNet class of the picture.

    >>> part_name("Quadruped Head", "n02123045"), part_name("Car Tier", "n02814533")
    ('Felidae Head', 'Car Tier')
    """
    group, _, part = name.partition(" ")
    number = int(wnid[1:])
    for family, first, end in _FAMILIES:
        if first <= number < end and family in _FAMILIES_OF.get(group, ()):
            return f"{family} {part}"
    return name


def _of_gqa(folder: Path, reading: Reading) -> Iterator[tuple[Example, list[Any]]]:
    for _, example in _examples(GQA, folder, ("train", "val"), reading):
        objects = example.extra["objects"].values()
        yield example, [(thing["name"], thing["box"], thing["attributes"]) for thing in objects]


def _of_objects365(folder: Path, reading: Reading) -> Iterator[tuple[Example, list[Any]]]:
    names: dict[str, dict[int, str]] = {}
    for split, example in _examples(OBJECTS365, folder, ("train", "val"), reading):
        known = names.get(split) or names.setdefault(split, _names(folder, split))
        pairs = zip(example.extra["labels"], example.extra["boxes"], strict=True)
        yield example, [(known[label], box, ()) for label, box in pairs]


def _of_partimagenet(folder: Path, reading: Reading) -> Iterator[tuple[Example, list[Any]]]:
    names: dict[str, dict[int, str]] = {}
    for split, example in _examples(PARTIMAGENET, folder, PARTIMAGENET.splits, reading):
        known = names.get(split) or names.setdefault(split, _names(folder, split))
        pairs = zip(example.extra["labels"], example.extra["boxes"], strict=True)
        yield example, [(part_name(known[label], example.extra["wnid"]), box, ()) for label, box in pairs]


_READERS: dict[str, Callable[[Path, Reading], Iterator[tuple[Example, list[Any]]]]] = {
    "cgqa": _of_gqa,
    "cobj": _of_objects365,
    "cpin": _of_partimagenet,
}
SOURCES = {"cgqa": "gqa", "cobj": "objects365", "cpin": "partimagenet"}


def _examples(
    dataset: Dataset, folder: Path, splits: tuple[str, ...], reading: Reading
) -> Iterator[tuple[str, Example]]:
    """The examples of the splits that exist, each with its split's name."""
    if not dataset.holds(folder) and dataset.holds(folder / dataset.name):
        folder /= dataset.name
    if not dataset.holds(folder):
        raise UserError(f"{folder} contains no {dataset.name}: unpack its official files there")
    for split in splits:
        try:
            for example in dataset.examples(folder, split, reading):
                yield split, example
        except DataError as error:
            if not error.missing:
                raise


def _names(folder: Path, split: str) -> dict[int, str]:
    """The names of the categories by their ids, without the trailing spaces that some of them have."""
    for place in ("", "*/", "*/*/"):
        for path in sorted(folder.glob(f"{place}*{split}.json")):
            return {record["id"]: record["name"].strip() for _, _, record in stream_arrays(path, "categories")}
    raise AssertionError("the reader found the file")
