"""VisCOLL's streams: masked phrases of captions in pickles of plain values.

Every word of the synthetic world is one word piece here, as with a vocabulary that has all of them. As in the original,
a mask of COCO-shift ends at its last piece and an offset of Flickr-shift after its last word, and Flickr-shift numbers
its tasks, whose names are in a separate file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.language import captions
from holdfast.world.scene import make_scene
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 90, "validation": 20, "test": 20, "novel": 10},
    "small": {"train": 1_500, "validation": 200, "test": 200, "novel": 60},
    "large": {"train": 20_000, "validation": 1_000, "test": 1_000, "novel": 300},
    "paper": {"train": 110_000, "validation": 4_071, "test": 4_194, "novel": 568},
}
"""Images of each split; a caption of each has about one phrase for each thing in it."""
_CAPTIONS = 5
_NAMES = {
    "train": "split_train_split_train_novel_comps_False",
    "validation": "split_train_split_val_novel_comps_False",
    "test": "split_val_split_val_novel_comps_False",
    "novel": "split_val_split_val_novel_comps_True",
}
_SCENE_NUMBERS = 40_000_000


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=2700, pictures=0, pixels=0, values=0)
    """
    counts = at_scale(COUNTS, scale)
    return Amount(2 * _CAPTIONS * (sum(counts.values()) + sum(counts.values()) - counts["novel"]))


def write(folder: Path, scale: str, seed: int, *, images: bool = True) -> None:
    """Write the phrases of all splits of both streams."""
    counts = at_scale(COUNTS, scale)
    coco, flickr = folder / "datasets" / "coco_buffer", folder / "datasets" / "flickr_buffer"
    for place in (coco, flickr):
        place.mkdir(parents=True, exist_ok=True)
    tasks: dict[str, int] = {}
    first = 0
    for split, count in counts.items():
        numbers = range(first, first + count)
        first += count
        phrases = list(_phrases(numbers, seed))
        if split == "train":
            np.random.default_rng([seed, 15]).shuffle(phrases)
        records = [
            {
                "annotation": {"image_id": image, "id": caption, "caption": f"{' '.join(words)} "},
                "task": task,
                "mask": (start, stop - 1),
            }
            for image, caption, words, task, start, stop in phrases
        ]
        _write(coco / f"task_buffer_real_{_NAMES[split]}_task_partition_any_objects.pkl", records)
        if split == "novel":
            continue
        numbered = [
            {
                "tokens": list(words),
                "task_id": tasks.setdefault(task, len(tasks)),
                "image_id": str(image),
                "instance_id": row,
                "phrase_offset": (start, stop),
            }
            for row, (image, _, words, task, start, stop) in enumerate(phrases)
        ]
        _write(flickr / f"flickr_task_buffer_{'val' if split == 'validation' else split}_0.pkl", numbered)
    _write(flickr / "flickr_tasks.pkl", {"stat_nouns": [(name, 1) for name in tasks], "tasks": list(tasks)})


def _phrases(numbers: range, seed: int) -> Iterator[tuple[int, int, tuple[str, ...], str, int, int]]:
    """Image, caption, words, task, start and stop of each phrase."""
    for number in numbers:
        scene = make_scene(seed, _SCENE_NUMBERS + number)
        for order, caption in enumerate(captions(scene, np.random.default_rng([seed, scene.number, 14]), _CAPTIONS)):
            words = tuple(word.lower() for word in caption.tokens)
            for phrase in caption.phrases:
                task = scene.things[phrase.thing].noun
                yield 1_000 + number, _CAPTIONS * number + order, words, task, phrase.start, phrase.stop


def _write(path: Path, value: Any) -> None:
    path.write_bytes(pickle.dumps(value, protocol=3))
