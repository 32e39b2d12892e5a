"""CGQA: pictures of two to four things on a grid, labelled by their combination, laid out as in the archive of CFST.

`CGQA/GQA_100` holds a folder of pictures and a JSON list for each part. The training combinations are the hundred of
the paper, in the order of its tasks; `sys` has other combinations of the same concepts, `pro` combines three or four
concepts, `sub` shows the combinations of `sys` with looks that are reserved for it, `non` repeats the training
combinations, and `noc` has concepts that were never seen. (The paper reserves one attribute of each concept, mostly a
colour. In the synthetic world that would make things easier to tell apart, so a look is a colour and a pattern.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.world.draw import save_image
from holdfast.world.scene import Thing
from holdfast.world.vocabulary import CGQA_NOUNS, COCO_NOUNS, COLOURS, THINGS
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.portraits import portrait, some_thing
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Combinations, and images of each in the continual parts and in each few-shot test; side of a picture.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"combinations": 10, "train": 16, "val": 4, "test": 6, "fewshot": 20, "side": 48},
    "small": {"combinations": 50, "train": 60, "val": 10, "test": 20, "fewshot": 20, "side": 96},
    "large": {"combinations": 100, "train": 300, "val": 50, "test": 100, "fewshot": 40, "side": 96},
    "paper": {"combinations": 100, "train": 1_000, "val": 50, "test": 100, "fewshot": 100, "side": 96},
}
_TRAINED = (
    "fence+flower door+grass leaves+shirt grass+table shoe+shorts hat+table leaves+wall chair+grass door+shoe "
    "fence+helmet chair+sign grass+shorts hat+plate pole+shirt grass+pants pants+shoe pole+wall bench+chair "
    "helmet+plate leaves+shoe bench+shorts flower+pole chair+helmet pants+shorts helmet+shorts helmet+shoe "
    "hat+jacket hat+shorts jacket+shoe fence+wall bench+helmet hat+shirt bench+sign plate+wall grass+plate "
    "helmet+pole door+leaves bench+pants grass+jacket jacket+pole car+jacket building+plate helmet+leaves "
    "pants+shirt car+leaves bench+leaves fence+pants bench+shirt fence+grass building+jacket fence+plate "
    "car+helmet car+shorts grass+leaves jacket+shirt chair+shirt plate+sign bench+jacket leaves+sign chair+shoe "
    "flower+shirt building+chair plate+shorts building+leaves chair+hat fence+pole grass+sign building+grass "
    "hat+shoe bench+wall car+flower bench+door bench+hat bench+building bench+table hat+sign shirt+wall "
    "door+fence door+plate pole+table flower+pants shoe+sign helmet+shirt leaves+plate hat+wall grass+shoe "
    "plate+shirt pants+wall fence+leaves chair+pole car+sign car+pants flower+helmet building+hat car+shirt "
    "helmet+sign flower+wall door+pole leaves+shorts fence+shorts"
)
TRAINED: list[tuple[str, ...]] = [tuple(pair.split("+")) for pair in _TRAINED.split()]
FEWSHOT = {"sys": "sys", "pro": "pro", "sub": "sub", "non": "non_novel", "noc": "non_comp"}
USUAL = 3
KEPT: tuple[str, ...] = ("spotted", "checked")
"""How many of a noun's colours the other parts show; only `sub` shows these patterns, in the remaining colours."""
_GRID = 2


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=1260, pictures=1260, pixels=2304, values=0)
    """
    counts = at_scale(COUNTS, scale)
    each = counts["train"] + counts["val"] + counts["test"] + len(FEWSHOT) * counts["fewshot"]
    return Amount(counts["combinations"] * each, counts["combinations"] * each, counts["side"] ** 2)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `CGQA/GQA_100` with `continual` and `fewshot`.

    >>> COUNTS["paper"]["train"], TRAINED[0]
    (1000, ('fence', 'flower'))
    """
    counts = at_scale(COUNTS, scale)
    root = folder / "CGQA" / "GQA_100"
    for part, count in (("train", counts["train"]), ("val", counts["val"]), ("test", counts["test"])):
        combs = TRAINED[: counts["combinations"]]
        _write_part(root, f"continual/{part}", f"{part}.json", combs, count, counts["side"], seed)
    for mode, name in FEWSHOT.items():
        combs = novel(mode, counts["combinations"], seed)
        _write_part(root, f"fewshot/{name}", f"{name}_fewshot.json", combs, counts["fewshot"], counts["side"], seed)


def novel(mode: str, count: int, seed: int) -> list[tuple[str, ...]]:
    """The combinations of a few-shot test.

    >>> set(novel("sys", 100, 0)) & set(TRAINED), novel("non", 2, 0)
    (set(), [('fence', 'flower'), ('door', 'grass')])
    """
    if mode == "non":
        return TRAINED[:count]
    known = sorted({noun for comb in TRAINED[:count] for noun in comb})
    # `sub` tests the combinations of `sys`, so both draw the same ones.
    random = np.random.default_rng([seed, 22, {"noc": 0, "pro": 1}.get(mode, 2)])

    def some(options: Sequence[tuple[str, ...]], number: int) -> list[tuple[str, ...]]:
        return [options[index] for index in random.permutation(len(options))[:number]]

    if mode == "noc":
        return some(list(combinations([noun for noun in COCO_NOUNS if noun not in CGQA_NOUNS], 2)), count)
    if mode == "pro":  # as many of three as of four
        return [
            *some(list(combinations(known, 3)), count - count // 2),
            *some(list(combinations(known, 4)), count // 2),
        ]
    return some([pair for pair in combinations(known, 2) if pair not in TRAINED], count)


def _write_part(
    root: Path, part: str, file: str, combs: Sequence[tuple[str, ...]], count: int, side: int, seed: int
) -> None:
    number = ["train", "val", "test", *FEWSHOT.values()].index(part.split("/")[1])
    random = np.random.default_rng([seed, 22, 3, number])
    labels = random.permutation(np.repeat(np.arange(len(combs)), count))
    records = []
    for index, label in enumerate(labels):
        comb = combs[label]
        things = [_thing(random, noun, part) for noun in comb]
        positions = [1 + int(place) for place in random.permutation(_GRID**2)[: len(comb)]]
        name = f"{part}/{index}"
        save_image(root / f"{name}.jpg", _picture(random, things, positions, side))
        records.append(
            {
                "newImageName": name,
                "comb": list(comb),
                "objects": [_record(random, thing) for thing in things],
                "position": positions,
            }
        )
    write_json(root / part / file, records)


def _thing(random: np.random.Generator, noun: str, part: str) -> Thing:
    """A thing for this part: the looks of a noun in `sub` occur in no other part."""
    kind = THINGS[noun]
    colours, patterns = kind.colours[:USUAL], tuple(pattern for pattern in kind.patterns if pattern not in KEPT)
    if part.endswith("/sub"):
        colours, patterns = tuple(colour for colour in COLOURS if colour not in colours), KEPT
    colour, pattern = (each[int(random.integers(len(each)))] for each in (colours, patterns or ("plain",)))
    return some_thing(random, noun, colour=colour, pattern=pattern, size="large")


def _record(random: np.random.Generator, thing: Thing) -> dict[str, Any]:
    box = [int(number) for number in random.integers(30, 120, 4)]
    image = str(2_300_000 + int(random.integers(100_000)))
    return {
        "imageName": image,
        "objName": thing.noun,
        "attributes": [thing.colour, thing.pattern, thing.size],
        "boundingBox": box,
    }


def _picture(
    random: np.random.Generator, things: Sequence[Thing], positions: Sequence[int], side: int
) -> npt.NDArray[np.uint8]:
    """Each thing in its cell of the grid, on black; cells are counted from 1, row by row."""
    picture = np.zeros((side, side, 3), dtype=np.uint8)
    cell = side // _GRID
    for thing, position in zip(things, positions, strict=True):
        row, column = divmod(position - 1, _GRID)
        place = slice(row * cell, (row + 1) * cell), slice(column * cell, (column + 1) * cell)
        picture[place] = portrait(random, thing, cell)
    return picture
