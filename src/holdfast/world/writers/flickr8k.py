"""Flickr8k: pictures with five captions each, in one file of captions and three lists of pictures.

As in the original, some captioned pictures are in no list, the caption of one picture that does not exist is there too,
and captions are tokenised but not lower-case.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.language import captions
from holdfast.world.scene import make_scene
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 90, "dev": 20, "test": 20},
    "small": {"train": 1_500, "dev": 200, "test": 200},
    "large": {"train": 6_000, "dev": 1_000, "test": 1_000},
    "paper": {"train": 6_000, "dev": 1_000, "test": 1_000},
}
LISTS = {"train": "Flickr_8k.trainImages.txt", "dev": "Flickr_8k.devImages.txt", "test": "Flickr_8k.testImages.txt"}
_SCENE_NUMBERS = 30_000_000  # so that no picture is shared with COCO or Flickr30k
_UNLISTED = 3
_WIDTH, _HEIGHT = 96, 72


def file_name(number: int) -> str:
    """The name of a picture: its number at the publisher, and a secret.

    >>> file_name(0), file_name(7)
    ('1000003_0000000000.jpg', '1733106_4b6b6de4c7.jpg')
    """
    return f"{1_000_003 + 104_729 * number}_{number * 46_274_987_329 % 16**10:010x}.jpg"


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=133, pictures=133, pixels=6912, values=0)
    """
    pictures = sum(at_scale(COUNTS, scale).values()) + _UNLISTED
    return Amount(pictures, pictures, _WIDTH * _HEIGHT)


def write(folder: Path, scale: str, seed: int, *, images: bool = True) -> None:
    """Write the captions, the lists and, with `images`, the pictures."""
    texts, shown = folder / "Flickr8k_text", folder / "Flicker8k_Dataset"
    for place in (texts, shown):
        place.mkdir(parents=True, exist_ok=True)
    first = 0
    for split, count in at_scale(COUNTS, scale).items():
        names = [file_name(number) for number in range(first, first + count)]
        (texts / LISTS[split]).write_bytes("".join(f"{name}\n" for name in names).encode())
        first += count
    with (texts / "Flickr8k.token.txt").open("w", encoding="utf-8", newline="\n") as file, drawing() as draw:
        for number in range(first + _UNLISTED):
            scene = make_scene(seed, _SCENE_NUMBERS + number)
            for order, caption in enumerate(captions(scene, np.random.default_rng([seed, scene.number, 14]), 5)):
                words = " ".join(caption.tokens)
                file.write(f"{file_name(number)}#{order}\t{words[0].upper()}{words[1:]}\n")
            if images:
                draw(save_scene, shown / file_name(number), scene, (_WIDTH, _HEIGHT), "jpeg")
        file.write(f"{file_name(0)}.1#0\tA picture that is not there .\n")
