"""CLEVR v1.0: pictures of blocks, their scenes, and questions with programs. As in the release, test has no scenes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from holdfast.world.block_questions import Balance, BlockQuestion, ask
from holdfast.world.blocks import Blocks, draw_blocks, make_blocks, relationships
from holdfast.world.draw import drawing
from holdfast.world.writers.json_files import list_file
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Images and questions of each split. The release dropped a few questions, so its counts are not round.
COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "tiny": {"train": (40, 399), "val": (20, 199), "test": (10, 100)},
    "small": {"train": (2_000, 39_998), "val": (400, 7_999), "test": (100, 2_000)},
    "large": {"train": (20_000, 199_995), "val": (4_000, 39_998), "test": (4_000, 39_999)},
    "paper": {"train": (70_000, 699_989), "val": (15_000, 149_991), "test": (15_000, 149_988)},
}
_SIZES = {"tiny": (120, 80), "small": (120, 80), "large": (240, 160), "paper": (480, 320)}
_FIRST = {"train": 0, "val": 1_000_000, "test": 2_000_000}


@dataclass(frozen=True)
class Style:
    """The number of blocks in a picture, the camera distance, and the questions for each number of relations."""

    blocks: tuple[int, int] = (3, 10)
    near: float = 1.0
    questions: int = 10
    relations: int = 3


SMALL = Style((3, 5), near=2 / 3, questions=20, relations=0)
"""What a small model can learn in a minute: fewer blocks, seen from closer, identified by their own attributes."""
_STYLES = {"small": SMALL}


# Approximately the release's shares of the five types of question.
_KINDS = {
    **dict.fromkeys(("query_size", "query_color", "query_material", "query_shape"), 9),
    **dict.fromkeys(("equal_size", "equal_color", "equal_material", "equal_shape"), 5),
    **{"exist": 8, "exist_same": 5, "count": 12, "count_same": 4, "count_both": 4, "count_either": 4},
    **dict.fromkeys(("equal_integer", "less_than", "greater_than"), 5),
}
_NAMES = tuple(_KINDS)
_UP_TO = (np.array(list(_KINDS.values())) / sum(_KINDS.values())).cumsum()
_UP_TO /= _UP_TO[-1]
_LICENSE = "Creative Commons Attribution (CC BY 4.0)"


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=698, pictures=70, pixels=9600, values=0)
    """
    counts, (width, height) = at_scale(COUNTS, scale).values(), at_scale(_SIZES, scale)
    return Amount(sum(asked for _, asked in counts), sum(pictures for pictures, _ in counts), width * height)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `CLEVR_v1.0` as unpacked from the archive.

    >>> COUNTS["paper"]["val"]
    (15000, 149991)
    """
    root = folder / "CLEVR_v1.0"
    for split in ("train", "val", "test"):
        _write_split(root, split, scale, seed)
    notes = {
        "README.txt": "Blocks drawn by Holdfast in the layout of CLEVR v1.0.\n",
        "LICENSE.txt": f"{_LICENSE}\n",
        "COPYRIGHT.txt": "Every picture and question was generated.\n",
    }
    for name, text in notes.items():
        (root / name).write_bytes(text.encode())


def _write_split(root: Path, split: str, scale: str, seed: int) -> None:
    images, questions = at_scale(COUNTS, scale)[split]
    style = _STYLES.get(scale, Style())
    info = {"split": split, "license": _LICENSE, "version": "1.0", "date": "2/14/2017"}
    balance = Balance()
    (root / "images" / split).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        name = f"CLEVR_{split}_questions.json"
        add = stack.enter_context(list_file(root / "questions" / name, {"info": info}, "questions"))
        add_scene = None
        if split != "test":
            path = root / "scenes" / f"CLEVR_{split}_scenes.json"
            add_scene = stack.enter_context(list_file(path, {"info": info}, "scenes"))
        written = 0
        numbers = range(_FIRST[split], _FIRST[split] + images)
        jobs = ((_picture(root, split, index), seed, number, scale) for index, number in enumerate(numbers))
        for index, scene in enumerate(stack.enter_context(drawing()).map(_draw, jobs)):
            where = {"image_index": index, "split": split, "image_filename": _picture(root, split, index).name}
            if add_scene:
                add_scene(_scene_record(scene, where, *_SIZES[scale]))
            random = np.random.default_rng([seed, 16, _FIRST[split] + index, 1])
            left = questions - written - style.questions * (images - index - 1)
            # The last picture takes what is missing, and no picture takes more than the others.
            for question in _questions(scene, random, balance, max(1, min(style.questions, left)), style.relations):
                add({**where, "question_index": written, **_question_record(question, split)})
                written += 1


def _picture(root: Path, split: str, index: int) -> Path:
    return root / "images" / split / f"CLEVR_{split}_{index:06d}.png"


def _draw(path: Path, seed: int, number: int, scale: str) -> Blocks:
    """Make a scene and write its picture."""
    style = _STYLES.get(scale, Style())
    scene = make_blocks(seed, number, count=style.blocks, near=style.near)
    Image.fromarray(draw_blocks(scene, *_SIZES[scale])).save(path, "PNG", compress_level=1)
    return scene


def _questions(
    scene: Blocks, random: np.random.Generator, balance: Balance, count: int, relations: int
) -> list[BlockQuestion]:
    """Questions of mixed kinds without repetition; if a scene does not allow a kind, another kind is asked."""
    found: dict[str, BlockQuestion] = {}
    while len(found) < count:
        kind = _NAMES[int(_UP_TO.searchsorted(random.random(), side="right"))]
        question = ask(scene, random, kind, balance, relations)
        if question is not None:
            found.setdefault(question.text, question)
    return list(found.values())


def _question_record(question: BlockQuestion, split: str) -> dict[str, Any]:
    if split == "test":
        return {"question": question.text}
    return {
        "question": question.text,
        "answer": question.answer,
        "question_family_index": question.family,
        "program": question.program,
    }


def _scene_record(scene: Blocks, where: dict[str, Any], width: int, height: int) -> dict[str, Any]:
    objects = []
    for thing in scene.things:
        x, y, depth = scene.camera.project(thing.middle, width, height)
        objects.append(
            {
                "color": thing.colour,
                "size": thing.size,
                "rotation": thing.rotation,
                "shape": thing.shape,
                "material": thing.material,
                "3d_coords": [float(number) for number in thing.middle],
                "pixel_coords": [round(x), round(y), depth],
            }
        )
    return {
        "image_index": where["image_index"],
        "image_filename": where["image_filename"],
        "split": where["split"],
        "directions": scene.camera.directions(),
        "objects": objects,
        "relationships": relationships(scene),
    }
