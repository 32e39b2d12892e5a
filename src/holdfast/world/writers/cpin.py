"""CPIN: five or more parts of things on a grid, labelled by their combination, laid out as CFST's authors read it.

`PIN/PIN` holds `continual.json`, a JSON list for each few-shot test, and the pictures of all of them. The concepts are
the 37 of the authors' code, and the parts of four further things for `noc`. A part is drawn as the thing that it
belongs to, in a colour of its own. The combinations are random: the authors' own archive was never published.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.world.draw import save_image
from holdfast.world.vocabulary import COLOURS
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.portraits import portrait, some_thing
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Combinations, and images of each in the continual parts and in each few-shot test; side of a picture.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"combinations": 6, "train": 8, "val": 2, "test": 3, "fewshot": 20, "side": 48},
    "small": {"combinations": 20, "train": 60, "val": 10, "test": 20, "fewshot": 20, "side": 96},
    "large": {"combinations": 100, "train": 300, "val": 50, "test": 100, "fewshot": 40, "side": 96},
    "paper": {"combinations": 100, "train": 1_000, "val": 50, "test": 100, "fewshot": 100, "side": 96},
}
FEWSHOT = ("sys", "pro", "non", "noc")
PARTS = {
    "Bird": ("bird", "Head Body Wing Foot"),
    "Bovidae": ("cow", "Head Body Foot"),
    "Canidae": ("dog", "Head Body Foot"),
    "Car": ("car", "Body Tier Side_Mirror"),
    "Felidae": ("cat", "Head Body Foot"),
    "Fish": ("fish", "Head Body Fin"),
    "Lacertilia": ("lizard", "Head Body Foot"),
    "Mustelidae": ("sheep", "Head Body Foot"),
    "Primates": ("monkey", "Head Body Hand Foot"),
    "Snake": ("snake", "Head Body"),
    "Testudines": ("turtle", "Head Body Foot"),
    "Ursidae": ("bear", "Head Body Foot"),
}
UNSEEN = {
    "Aeroplane": ("airplane", "Head Body Engine Wing Tail"),
    "Bicycle": ("bicycle", "Body Head Seat Tier"),
    "Boat": ("boat", "Body Sail"),
    "Bottle": ("bottle", "Mouth Body"),
}
_GRID, _SIZE, _LARGER = 3, 5, 7
"""Cells in a row; concepts in a combination, and in one of `pro`."""


def concepts(things: dict[str, tuple[str, str]]) -> list[str]:
    """The concepts of some things.

    >>> len(concepts(PARTS)), concepts(PARTS)[0], concepts(UNSEEN)[-1]
    (37, 'Bird Head', 'Bottle Body')
    """
    return [f"{name} {part.replace('_', ' ')}" for name, (_, parts) in things.items() for part in parts.split()]


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=558, pictures=558, pixels=2304, values=0)
    """
    counts = at_scale(COUNTS, scale)
    each = counts["train"] + counts["val"] + counts["test"] + len(FEWSHOT) * counts["fewshot"]
    return Amount(counts["combinations"] * each, counts["combinations"] * each, counts["side"] ** 2)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `PIN/PIN` with `continual.json` and a list for each few-shot test.

    >>> COUNTS["paper"]["train"]
    1000
    """
    counts = at_scale(COUNTS, scale)
    root = folder / "PIN" / "PIN"
    records: list[dict[str, Any]] = []
    for part in ("train", "val", "test"):
        combs = combinations("non", counts["combinations"], seed)
        records += _write_part(root, f"continual/{part}", combs, counts[part], counts["side"], seed)
    write_json(root / "continual.json", records)
    for mode in FEWSHOT:
        combs = combinations(mode, counts["combinations"], seed)
        own = _write_part(root, f"fewshot/{mode}", combs, counts["fewshot"], counts["side"], seed)
        write_json(root / f"{mode}_fewshot.json", own)


def combinations(mode: str, count: int, seed: int) -> list[tuple[str, ...]]:
    """The combinations of a few-shot test; those of `non` are the training combinations.

    >>> trained, sys = combinations("non", 6, 0), combinations("sys", 6, 0)
    >>> len(set(trained) | set(sys)), {len(comb) for comb in combinations("pro", 6, 0)}
    (12, {7})
    """
    random = np.random.default_rng([seed, 24, {"noc": 0, "pro": 1}.get(mode, 2)])
    pool, size = (concepts(UNSEEN) if mode == "noc" else concepts(PARTS)), _LARGER if mode == "pro" else _SIZE
    found: dict[tuple[str, ...], None] = {}
    while len(found) < (2 * count if mode == "sys" else count):
        found[tuple(pool[index] for index in random.permutation(len(pool))[:size])] = None
    return list(found)[-count:]


def _write_part(
    root: Path, part: str, combs: Sequence[tuple[str, ...]], count: int, side: int, seed: int
) -> list[dict[str, Any]]:
    number = ["train", "val", "test", *FEWSHOT].index(part.split("/")[1])
    random = np.random.default_rng([seed, 24, 3, number])
    records = []
    for index, label in enumerate(random.permutation(np.repeat(np.arange(len(combs)), count))):
        comb = combs[label]
        positions = [int(place) for place in random.permutation(_GRID**2)[: len(comb)]]
        name = f"{part}/{index}.jpg"
        save_image(root / name, _picture(random, comb, positions, side))
        objects = [{"objName": concept, "imageName": f"n0{random.integers(10**7)}"} for concept in comb]
        records.append({"newFileName": name, "label": list(comb), "objects": objects, "position": positions})
    return records


def _picture(
    random: np.random.Generator, comb: Sequence[str], positions: Sequence[int], side: int
) -> npt.NDArray[np.uint8]:
    """Each part in its cell of the grid, on black; cells are counted from 0, row by row."""
    picture = np.zeros((side, side, 3), dtype=np.uint8)
    cell, colours = side // _GRID, list(COLOURS)
    for concept, position in zip(comb, positions, strict=True):
        name, _, part = concept.partition(" ")
        noun, parts = (PARTS | UNSEEN)[name]
        colour = colours[parts.split().index(part.replace(" ", "_"))]
        row, column = divmod(position, _GRID)
        place = slice(row * cell, (row + 1) * cell), slice(column * cell, (column + 1) * cell)
        picture[place] = portrait(random, some_thing(random, noun, colour=colour, size="large"), cell)
    return picture
