"""Flickr30k Entities: five sentences per image with marked phrases, their boxes as XML, and the plain captions.

As in the original, a few pictures are greyscale; none is CMYK.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.language import captions
from holdfast.world.scene import Box, Scene, make_scene
from holdfast.world.vocabulary import THINGS
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 90, "val": 20, "test": 20},
    "small": {"train": 1_500, "val": 200, "test": 200},
    "large": {"train": 20_000, "val": 1_000, "test": 1_000},
    "paper": {"train": 29_783, "val": 1_000, "test": 1_000},
}

_SCENE_NUMBERS = 20_000_000  # so that no picture is shared with COCO
_TYPES = {
    "person": "people",
    "animal": "animals",
    "vehicle": "vehicles",
    "accessory": "clothing",
    "clothing": "clothing",
}
# Chains of an image: its things first, then what only the text mentions.
_PLACE, _NOBODY_SEES, _NOWHERE, _CHAINS = 60, 61, 62, 64


@dataclass(frozen=True)
class Mark:
    """A phrase of a sentence: its tokens, the chain to which it belongs (0: not annotated), and its types."""

    start: int
    stop: int
    chain: int
    types: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A caption in tokens, with its phrases in order."""

    tokens: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


def image_numbers(split: str, scale: str) -> list[int]:
    """The serial numbers of a split's images: test, then val, then train.

    >>> image_numbers("val", "tiny")[:2], len(image_numbers("train", "paper"))
    ([20, 21], 29783)
    """
    counts = at_scale(COUNTS, scale)
    first = {"test": 0, "val": counts["test"], "train": counts["test"] + counts["val"]}[split]
    return list(range(first, first + counts[split]))


def image_id(number: int) -> str:
    """The id of an image: a string of digits whose length varies.

    >>> image_id(0), image_id(3)
    ('1000003', '10021')
    """
    return str(10_000 + 7 * number if number % 10 == 3 else 1_000_003 + 104_729 * number)


@lru_cache(maxsize=4_096)  # at small scales, a scene is made once for all files that refer to it
def flickr_scene(number: int, seed: int) -> Scene:
    """The scene of an image.

    >>> flickr_scene(0, seed=0).number
    20000000
    """
    return make_scene(seed, _SCENE_NUMBERS + number)


def image_size(number: int) -> tuple[int, int]:
    """The width and height of an image.

    >>> image_size(1), image_size(4)
    ((96, 72), (72, 96))
    """
    return (72, 96) if number % 4 == 0 else (96, 72)


def write_images(folder: Path, numbers: Iterable[int], seed: int) -> None:
    """Write the pictures, each named by its id.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_images(Path(folder) / "flickr30k-images", [3], seed=0)
    ...     [path.name for path in (Path(folder) / "flickr30k-images").iterdir()]
    ['10021.jpg']
    """
    folder.mkdir(parents=True, exist_ok=True)
    with drawing() as draw:
        for number in numbers:
            draw(_write_image, folder / f"{image_id(number)}.jpg", number, seed)


def _write_image(path: Path, number: int, seed: int) -> None:
    save_scene(path, flickr_scene(number, seed), image_size(number), "grey-jpeg" if number % 43 == 5 else "jpeg")


def sentences(number: int, seed: int) -> list[Sentence]:
    """The five sentences of an image.

    >>> [sentence.tokens[-1] for sentence in sentences(0, seed=0)]
    ['.', '.', '.', '.', '.']
    """
    scene = flickr_scene(number, seed)
    first = _CHAINS * number + 1
    made = []
    for index, caption in enumerate(captions(scene, np.random.default_rng([seed, scene.number, 14]), 5)):
        tokens = tuple(caption.tokens)
        tokens = tokens if tokens[-1] == "." else (*tokens, ".")
        marks = tuple(
            Mark(phrase.start, phrase.stop, first + phrase.thing, _types(scene, phrase.thing, number))
            for phrase in caption.phrases
        )
        made.append(_with_more(Sentence(tokens, marks), index, number, scene.place))
    if number % 45 == 7:  # a caption that belongs to another image; it is listed in UNRELATED_CAPTIONS
        other = flickr_scene(number + 1_000_000, seed)
        strange = captions(other, np.random.default_rng([seed, other.number, 14]), 1)[0]
        made[4] = Sentence(tuple(strange.tokens) if strange.tokens[-1] == "." else (*strange.tokens, "."))
    return made


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=650, pictures=130, pixels=6912, values=0)
    """
    pictures = sum(at_scale(COUNTS, scale).values())
    return Amount(5 * pictures, pictures, 96 * 72)


def write(folder: Path, scale: str, seed: int, *, images: bool = True) -> None:
    """Write sentences, annotations, splits, plain captions and, with `images`, the pictures.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     (Path(folder) / "val.txt").read_text().splitlines()[0]
    '3094583'
    """
    for name in ("Sentences", "Annotations"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    splits = {split: image_numbers(split, scale) for split in ("train", "val", "test")}
    for split, numbers in splits.items():
        _write_text(folder / f"{split}.txt", "".join(f"{image_id(number)}\n" for number in numbers))
    numbers = sorted(number for split in splits.values() for number in split)
    unrelated = [f"{image_id(number)} 5" for number in numbers if number % 45 == 7]
    _write_text(folder / "UNRELATED_CAPTIONS", "\n".join(["# format: image id, caption number", *unrelated]))
    with (folder / "results_20130124.token").open("w", encoding="utf-8", newline="\n") as token_file:
        for number in numbers:
            name, said = image_id(number), sentences(number, seed)
            _write_text(folder / "Sentences" / f"{name}.txt", "".join(f"{_marked(sentence)}\n" for sentence in said))
            _write_text(folder / "Annotations" / f"{name}.xml", _annotation(number, seed, said))
            for index, sentence in enumerate(said):
                token_file.write(f"{name}.jpg#{index}\t{' '.join(sentence.tokens)}\n")
    if images:
        write_images(folder / "flickr30k-images", numbers, seed)


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def _types(scene: Scene, thing: int, number: int) -> tuple[str, ...]:
    name = _TYPES.get(THINGS[scene.things[thing].noun].supercategory, "other")
    if (number + thing) % 5:
        return (name,)
    return ("other", "instruments") if name == "other" else (name, "other")


def _with_more(sentence: Sentence, index: int, number: int, place: str) -> Sentence:
    """The sentence with an added phrase about something without a box: the place, a time, someone out of sight."""
    first = _CHAINS * number + 1
    if index == 0:
        if place not in sentence.tokens:
            return _before_stop(sentence, ("in",), ("the", place), first + _PLACE, "scene")
        at = sentence.tokens.index(place)
        start = at - 1 if at and sentence.tokens[at - 1].lower() in ("a", "an", "the") else at
        if any(mark.start < at + 1 and start < mark.stop for mark in sentence.marks):
            return sentence
        marks = (*sentence.marks, Mark(start, at + 1, first + _PLACE, ("scene",)))
        return Sentence(sentence.tokens, tuple(sorted(marks, key=lambda mark: mark.start)))
    if index == 1 and number % 3 == 0:
        return _before_stop(sentence, ("at",), ("the", "same", "time"), 0, "notvisual")
    if index == 2 and number % 6 == 2:
        return _before_stop(sentence, ("before",), ("a", "photographer"), first + _NOBODY_SEES, "people")
    if index == 3 and number % 10 == 4:
        return _before_stop(sentence, ("near",), ("a", "café"), first + _NOWHERE, "other")
    return sentence


def _before_stop(sentence: Sentence, lead: tuple[str, ...], phrase: tuple[str, ...], chain: int, kind: str) -> Sentence:
    start = len(sentence.tokens) - 1 + len(lead)
    mark = Mark(start, start + len(phrase), chain, (kind,))
    return Sentence((*sentence.tokens[:-1], *lead, *phrase, sentence.tokens[-1]), (*sentence.marks, mark))


def _marked(sentence: Sentence) -> str:
    """The sentence with its phrases in brackets; the last bracket is attached to the last word."""
    words = list(sentence.tokens)
    for mark in sentence.marks:
        words[mark.start] = f"[/EN#{mark.chain}/{'/'.join(mark.types)} {words[mark.start]}"
        words[mark.stop - 1] += "]"
    return " ".join(words)


def _annotation(number: int, seed: int, said: list[Sentence]) -> str:
    scene, (width, height) = flickr_scene(number, seed), image_size(number)
    first = _CHAINS * number + 1
    chains = {mark.chain for sentence in said for mark in sentence.marks}
    named = [index for index in range(len(scene.things)) if first + index in chains]
    objects = [_object([first + index], scene.things[index].box, number) for index in named]
    if number % 16 == 2 and len(named) > 1:  # one box for two chains, each of which also has a box of its own
        both = [scene.things[index].box for index in named[:2]]
        left, top = min(box.left for box in both), min(box.top for box in both)
        right, bottom = max(box.left + box.width for box in both), max(box.top + box.height for box in both)
        union = Box(left, top, right - left, bottom - top)
        objects.append(_object([first + index for index in named[:2]], union, number))
    for chain, scene_flag, no_box in ((_PLACE, 1, 0), (_NOBODY_SEES, 0, 1)):
        if first + chain in chains:
            objects.append(
                f"  <object>\n    <name>{first + chain}</name>\n    <scene>{scene_flag}</scene>\n"
                f"    <nobndbox>{no_box}</nobndbox>\n  </object>\n"
            )
    return (
        f"<annotation>\n  <filename>{image_id(number)}.jpg</filename>\n"
        f"  <size>\n    <width>{width}</width>\n    <height>{height}</height>\n    <depth>3</depth>\n  </size>\n"
        f"{''.join(objects)}</annotation>\n"
    )


def _object(chains: list[int], box: Box, number: int) -> str:
    """A box in pixels counted from 1, both ends inclusive."""
    width, height = image_size(number)
    left, top = min(int(box.left * width) + 1, width - 1), min(int(box.top * height) + 1, height - 1)
    right = max(left + 1, min(width, round((box.left + box.width) * width)))
    bottom = max(top + 1, min(height, round((box.top + box.height) * height)))
    names = "".join(f"    <name>{chain}</name>\n" for chain in chains)
    return (
        f"  <object>\n{names}    <bndbox>\n      <xmin>{left}</xmin>\n      <ymin>{top}</ymin>\n"
        f"      <xmax>{right}</xmax>\n      <ymax>{bottom}</ymax>\n    </bndbox>\n  </object>\n"
    )
