"""COBJ: crops that show a combination of Objects365's things, laid out as in the archive of CFST.

The training combinations are the thirty of the paper, in the order of its tasks. `objects365.py` maps each name to a
noun of the synthetic world; as in that dataset, a few pictures are greyscale. It has no test of substitutivity, because
Objects365 has no attributes.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.processes import Crew
from holdfast.world.draw import drawing, save_scene
from holdfast.world.scene import make_scene
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.objects365 import TRAINED, categories
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Combinations, and images of each in the continual parts and in each few-shot test; side of a picture.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"combinations": 10, "train": 16, "val": 4, "test": 6, "fewshot": 20, "side": 48},
    "small": {"combinations": 30, "train": 60, "val": 10, "test": 20, "fewshot": 20, "side": 96},
    "large": {"combinations": 30, "train": 600, "val": 50, "test": 100, "fewshot": 60, "side": 96},
    "paper": {"combinations": 30, "train": 1_000, "val": 50, "test": 100, "fewshot": 100, "side": 128},
}
FEWSHOT = ("sys", "pro", "non", "noc")


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=1060, pictures=1060, pixels=2304, values=0)
    """
    counts = at_scale(COUNTS, scale)
    each = counts["train"] + counts["val"] + counts["test"] + len(FEWSHOT) * counts["fewshot"]
    return Amount(counts["combinations"] * each, counts["combinations"] * each, counts["side"] ** 2)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `COBJ/annotations` with pictures and one list for each part.

    >>> COUNTS["paper"]["train"], TRAINED[0]
    (1000, ('Bracelet', 'Person', 'Sneakers'))
    """
    counts = at_scale(COUNTS, scale)
    root = folder / "COBJ" / "annotations"
    drawn = categories()
    number = 40_000_000
    with drawing() as draw:
        for part in ("train", "val", "test", *FEWSHOT):
            if part in FEWSHOT:
                combs, count = novel(part, counts["combinations"], seed), counts["fewshot"]
                home, name = root / "fewshot" / part, f"O365_{part}_fewshot_crop.json"
            else:
                combs, count = TRAINED[: counts["combinations"]], counts[part]
                home, name = root / "continual" / part, f"O365_continual_{part}_crop.json"
            random = np.random.default_rng([seed, 23, 3, number])
            labels = random.permutation(np.repeat(np.arange(len(combs)), count))
            records = []
            for number, label in enumerate(labels, number + 1):  # noqa: B020 (numbering continues across parts)
                nouns = {name: drawn[name] for name in combs[label]}
                records.append(_record(draw, home, number, nouns, counts["side"], seed))
            write_json(root / name, records)


def novel(mode: str, count: int, seed: int) -> list[tuple[str, ...]]:
    """The combinations of a few-shot test.

    >>> set(novel("sys", 30, 0)) & set(TRAINED), {len(comb) for comb in novel("pro", 30, 0)} == {4, 5}
    (set(), True)
    """
    if mode == "non":
        return TRAINED[:count]
    known = sorted({name for comb in TRAINED[:count] for name in comb})
    if mode == "noc":
        seen = {name for comb in TRAINED for name in comb}
        pool = [name for name, noun in categories().items() if noun and name not in seen]
        options: list[tuple[str, ...]] = list(combinations(sorted(pool), 2))
    elif mode == "pro":
        options = [comb for size in (4, 5) for comb in combinations(known, size)]
    else:
        options = [comb for size in (2, 3) for comb in combinations(known, size) if comb not in TRAINED]
    random = np.random.default_rng([seed, 23, FEWSHOT.index(mode)])
    return [options[index] for index in random.permutation(len(options))[:count]]


def _record(draw: Crew, home: Path, number: int, nouns: dict[str, str], side: int, seed: int) -> dict[str, Any]:
    scene = make_scene(seed, number, nouns=list(nouns.values()))
    draw(save_scene, home / f"{number}.jpg", scene, (side, side), "grey-jpeg" if number % 53 == 7 else "jpeg")
    boxes = {thing.noun: thing.box for thing in scene.things}
    pixels = []
    for noun in nouns.values():
        box = boxes[noun]
        pixels.append([round(value * side, 2) for value in (box.left, box.top, box.width, box.height)])
    return {"imageId": str(number), "label": list(nouns), "boundingBox": pixels}
