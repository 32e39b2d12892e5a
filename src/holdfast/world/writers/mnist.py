"""MNIST: digits in four IDX files, packed by gzip. The synthetic ones are printed, turned and moved a little."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
SIDE = 28
# Images of each digit.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 6, "test": 3},
    "small": {"train": 50, "test": 20},
    "large": {"train": 500, "test": 100},
    "paper": {"train": 6_000, "test": 1_000},
}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=90, pictures=90, pixels=784, values=0)
    """
    count = 10 * sum(at_scale(COUNTS, scale).values())
    return Amount(count, count, SIDE**2)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the images and labels of both splits."""
    folder.mkdir(parents=True, exist_ok=True)
    for stream, (split, count) in enumerate(at_scale(COUNTS, scale).items()):
        random = np.random.default_rng([seed, 47, stream])
        labels = random.permutation(np.repeat(np.arange(10, dtype=np.uint8), count))
        images = np.stack([_digit(random, int(label)) for label in labels])
        name = {"train": "train", "test": "t10k"}[split]
        for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
            head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
            packed = gzip.compress(head + values.tobytes(), mtime=0)
            (folder / f"{name}-{kind}-ubyte.gz").write_bytes(packed)


def _digit(random: np.random.Generator, digit: int) -> npt.NDArray[np.uint8]:
    picture = Image.new("L", (SIDE, SIDE))
    place = tuple(int(number) for number in random.integers(5, 11, 2))
    ImageDraw.Draw(picture).text((place[0], place[1] - 5), str(digit), fill=255, font=ImageFont.load_default(20))
    return np.asarray(picture.rotate(float(random.normal(0, 8)), Image.Resampling.BILINEAR))
