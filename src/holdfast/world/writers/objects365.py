"""Objects365 v2: boxes of 365 categories; images in patches.

The names are those of the release if the synthetic world can draw the thing; the remaining categories occur in no
picture. Kept from the original: consecutive ids from 1, misspelt names and some with a trailing space, a `file_name`
with more folders than the archives have, groups marked as crowds, one image that is listed but missing, and a few
greyscale pictures (none is CMYK). Two pictures in three show material for COBJ, with each thing large enough: a
combination that it trains or tests on, or things that it never trains on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.scene import make_scene
from holdfast.world.vocabulary import COLOURS, THINGS
from holdfast.world.writers.gqa import enlarged
from holdfast.world.writers.json_files import list_file
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
PLANTED = {"train": 1}
"""Bad records of a split, such as the official files have, which a reader reports."""
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 60, "val": 24},
    "small": {"train": 1_500, "val": 300},
    "large": {"train": 30_000, "val": 4_000},
    "paper": {"train": 1_742_292, "val": 80_000},
}
WIDTH, HEIGHT = 160, 120
_FIRST = {"train": 400_000, "val": 5_000_000}
# The first numbers of the release, then the other concepts of COBJ; each with its word in the synthetic world.
_WORDS = {
    **{"Person": "person", "Sneakers": "shoe", "Chair": "chair", "Other Shoes": "boot", "Hat": "hat"},
    **{"Car": "car", "Lamp": "lamp", "Glasses": "glasses", "Bottle": "bottle", "Desk": "desk"},
    **{"Street Lights": "street light", "Handbag/Satchel": "handbag", "Bracelet": "bracelet", "Boat": "rowboat"},
    **{"Bench": "bench", "Basketball": "basketball", "SUV": "jeep", "Guitar": "guitar"},
    **{"Microphone": "microphone", "Necklace": "necklace", "Sailboat": "boat", "Moniter/TV": "tv", "Bakset": "basket"},
    **{"Table Tennis ": "paddle", "Cigar/Cigarette ": "cigarette", "Formula 1 ": "racing car"},
}

# COBJ's training combinations, in the order of its tasks; then other and larger combinations of the same concepts.
_TRAINED = (
    "Bracelet+Person+Sneakers; Car+SUV+Street Lights; Bracelet+Glasses+Person; Bench+Person; Person+Sneakers; "
    "Car+Person; Boat+Sailboat; Lamp+Person; Glasses+Hat+Person; Chair+Person; Hat+Person+Sneakers; "
    "Microphone+Person; Basketball+Person+Sneakers; Boat+Person; Other Shoes+Person+Sneakers; "
    "Other Shoes+Person; Guitar+Microphone+Person; Bracelet+Necklace+Person; Glasses+Person; Necklace+Person; "
    "Car+Street Lights; Car+Person+Street Lights; Glasses+Person+Sneakers; Person+Street Lights; "
    "Hat+Other Shoes+Person; Chair+Desk; Hat+Person; Bracelet+Person; Handbag/Satchel+Person; "
    "Glasses+Necklace+Person"
)
_MADE = (
    "Bracelet+Hat+Person; Bench+Hat; Bench+Boat; Car+SUV; Chair+Lamp; Desk+Lamp; Guitar+Person; Car+Hat+Person; "
    "Microphone+Person+Sneakers; Handbag/Satchel+Hat+Person; Bench+Lamp; Boat+Hat; Glasses+Hat+Person+Sneakers; "
    "Bracelet+Glasses+Hat+Person; Car+Person+SUV+Street Lights; Bracelet+Necklace+Person+Sneakers; "
    "Bench+Handbag/Satchel+Hat+Person; Guitar+Hat+Microphone+Person"
)
TRAINED, _OTHERS = ([tuple(comb.split("+")) for comb in listed.split("; ")] for listed in (_TRAINED, _MADE))
_UNSEEN = ("banana", "apple", "pizza", "dog", "cat", "horse", "bicycle", "train", "laptop", "clock", "kite", "fish")


def categories() -> dict[str, str]:
    """The 365 names in the order of their ids, which start at 1, each with the noun drawn for it ("" for none).

    >>> names = list(categories())
    >>> len(names), names[:2], categories()["Sneakers"]
    (365, ['Person', 'Sneakers'], 'shoe')
    """
    used = set(_WORDS.values())
    named = dict(_WORDS) | {noun.title(): noun for noun in THINGS if noun not in used}
    unseen = (f"{colour.title()} {noun.title()}" for colour in COLOURS for noun in THINGS)
    while len(named) < 365:
        named.setdefault(next(unseen), "")
    return named


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=84, pictures=84, pixels=19200, values=0)
    """
    pictures = sum(at_scale(COUNTS, scale).values())
    return Amount(pictures, pictures, WIDTH * HEIGHT)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `zhiyuan_objv2_{train,val}.json`; `patchN` for train and `images/v1|v2/patchN` for val.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "images").iterdir())
    ['v1', 'v2']
    """
    names = categories()
    numbers = {noun: number for number, noun in enumerate(names.values(), 1) if noun}
    tail = {
        "categories": [{"name": name, "id": number} for number, name in enumerate(names, 1)],
        "licenses": [{"id": 5, "name": "made by Holdfast", "url": ""}],
    }
    with drawing() as draw:
        for split, count in at_scale(COUNTS, scale).items():
            images: list[dict[str, Any]] = []
            things: list[dict[str, Any]] = []
            for index in range(count):
                number = _FIRST[split] + index
                random = np.random.default_rng([seed, 18, number])
                scene = enlarged(make_scene(seed, number, nouns=_nouns(index, names, random)), WIDTH, HEIGHT)
                version, patch = ("v1", number % 16) if index % 2 == 0 else ("v2", 16 + number % 28)
                file = f"images/{version}/patch{patch}/objects365_{version}_{number:08d}.jpg"
                place = folder / file if split == "val" else folder / file.removeprefix(f"images/{version}/")
                if (split, index) != ("train", 5):  # listed, and missing, as three are in the release
                    draw(save_scene, place, scene, (WIDTH, HEIGHT), "grey-jpeg" if number % 53 == 7 else "jpeg")
                images.append(
                    {"height": HEIGHT, "id": number, "license": 5, "width": WIDTH, "file_name": file, "url": ""}
                )
                for thing in scene.things:
                    box = thing.box
                    corner = [round(box.left * WIDTH, 2), round(box.top * HEIGHT, 2)]
                    bbox = [*corner, round(box.width * WIDTH, 2), round(box.height * HEIGHT, 2)]
                    flags = {"iscrowd": int(random.random() < 0.03), "isfake": int(random.random() < 0.03)}
                    things.append(_annotation(len(things) + 1, flags, bbox, number, numbers[thing.noun]))
            with list_file(folder / f"zhiyuan_objv2_{split}.json", {"images": images}, "annotations", tail) as add:
                for annotation in things:
                    add(annotation)


def _nouns(index: int, names: dict[str, str], random: np.random.Generator) -> Sequence[str]:
    """The nouns of a picture: one picture in three is random, and two are made for COBJ."""
    drawn = [noun for noun in names.values() if noun]
    if index % 3 == 0:
        return [str(noun) for noun in random.choice(drawn, int(random.integers(2, 6)))]
    if index % 15 == 1:
        return [str(noun) for noun in random.choice(_UNSEEN, 2, replace=False)]
    combinations = [*TRAINED, *_OTHERS]
    return [names[name] for name in combinations[int(random.integers(len(combinations)))]]


def _annotation(number: int, flags: dict[str, int], bbox: list[float], image: int, category: int) -> dict[str, Any]:
    return {
        "id": number,
        **flags,
        "area": round(bbox[2] * bbox[3], 4),
        "isreflected": 0,
        "bbox": bbox,
        "image_id": image,
        "category_id": category,
    }
