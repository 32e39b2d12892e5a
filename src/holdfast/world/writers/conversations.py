"""Tasks of instructions with pictures in LLaVA's JSON: the common part of the writers of such collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.instructions import Instruction, Random
from holdfast.world.scene import Scene, make_scene
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.scales import Amount, at_scale

COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 24, "test": 12},
    "small": {"train": 400, "test": 100},
    "large": {"train": 4_000, "test": 1_000},
    "paper": {"train": 40_000, "test": 3_000},
}
SIZE = (96, 72)


@dataclass(frozen=True)
class TaskLayout:
    """One task: its questions, the folder of its pictures for each split, and the key of a test record's answer."""

    ask: Callable[[Scene, Random], Instruction]
    pictures: Mapping[str, str]
    answer: str = "answer"
    captions: str = ""
    """The file of all captions of the test pictures, in COCO's format; empty if the task has none."""


def amount_of(tasks: int, pictured: int, scale: str) -> Amount:
    """The amount of data of several tasks, in pictures and records."""
    each = sum(at_scale(COUNTS, scale).values())
    return Amount(tasks * each, pictured * each, SIZE[0] * SIZE[1])


def write_tasks(
    folder: Path,
    root: Path,
    tasks: Mapping[str, TaskLayout],
    names: Mapping[str, str],
    scale: str,
    seed: int,
    first: int,
) -> None:
    """Write the instructions of all tasks below `folder`, with the files' names by split, and pictures below `root`.

    Scenes are numbered from `first`, so that no two collections share one.
    """
    counts = at_scale(COUNTS, scale)
    with drawing() as draw:
        for task, written in tasks.items():
            for split, file in names.items():
                records: list[dict[str, Any]] = []
                annotations: list[dict[str, Any]] = []
                for number in range(counts[split]):
                    scene = make_scene(seed, first)
                    asked = written.ask(scene, np.random.default_rng([seed, first, 37]))
                    picture = f"{written.pictures[split]}/{first:09d}.jpg"
                    if asked.pictured:
                        (root / picture).parent.mkdir(parents=True, exist_ok=True)
                        kind = "grey-jpeg" if number % 30 == 29 else "jpeg"
                        draw(save_scene, root / picture, scene, SIZE, kind)
                    records.append(_record(written, split, first, picture if asked.pictured else None, asked))
                    annotations += [
                        {"image_id": number + 1, "id": len(annotations), "caption": one} for one in asked.answers
                    ]
                    first += 1
                write_json(folder / task / file, records)
                if split == "test" and written.captions:
                    images = [{"id": number + 1} for number in range(len(records))]
                    write_json(folder / task / written.captions, {"images": images, "annotations": annotations})


def _record(written: TaskLayout, split: str, number: int, picture: str | None, asked: Instruction) -> dict[str, Any]:
    shown = {} if picture is None else {"image": f"./{picture}"}
    if split == "test":
        own = {} if written.captions else {written.answer: asked.answers[0]}
        return {"question_id": str(number), **shown, "text": asked.asked, **own}
    value = asked.asked if picture is None else f"<image>\n{asked.asked}"
    turns = [{"from": "human", "value": value}, {"from": "gpt", "value": asked.answers[0]}]
    return {"id": str(number), **shown, "conversations": turns}
