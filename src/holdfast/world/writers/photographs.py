"""Labelled photographs: the common part of the writers of such datasets, with classes, amounts and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.world.draw import save_image
from holdfast.world.vocabulary import THINGS
from holdfast.world.writers.portraits import portrait, some_thing, sorts
from holdfast.world.writers.scales import Amount, at_scale

# The largest number of classes; images of a class in the first split and in each other one; side of a picture.
COUNTS: dict[str, tuple[int, int, int, int]] = {
    "tiny": (6, 6, 3, 48),
    "small": (20, 20, 8, 64),
    "large": (200, 60, 20, 96),
    "paper": (1000, 0, 0, 256),
}


@dataclass(frozen=True)
class LabelledThing:
    """A class: its name in words, and what is drawn for it."""

    name: str
    noun: str
    colour: str
    pattern: str


@dataclass(frozen=True)
class LabelledPicture:
    """A picture to be written: its split, its class, and its number within the class, from 1 on over all splits."""

    split: str
    label: int
    number: int


@dataclass(frozen=True)
class Photographs:
    """The shape of a dataset: the number of classes, and of a class's images in each split as officially published."""

    stream: int
    """A number for each dataset, so that no two datasets draw the same pictures."""
    classes: int
    splits: Mapping[str, int]

    def counts(self, scale: str) -> tuple[int, dict[str, int], int]:
        """Classes, images of a class in each split, and the side of a picture."""
        most, first, other, side = at_scale(COUNTS, scale)
        usual = [first, *[other] * len(self.splits)]
        each = {split: min(count, own) for (split, own), count in zip(self.splits.items(), usual, strict=False)}
        return min(most, self.classes), dict(self.splits) if scale == "paper" else each, side

    def amount(self, scale: str) -> Amount:
        """The amount of data at a scale.

        >>> Photographs(0, 10, {"train": 50, "test": 5}).amount("tiny")
        Amount(records=54, pictures=54, pixels=2304, values=0)
        """
        classes, each, side = self.counts(scale)
        count = classes * sum(each.values())
        return Amount(count, count, side**2)

    def kinds(self, scale: str) -> list[LabelledThing]:
        """The classes, each with a name of its own; datasets begin with other nouns."""
        nouns = list(THINGS)
        start = 7 * self.stream % len(nouns)
        found = sorts(self.counts(scale)[0], nouns[start:] + nouns[:start])
        return [LabelledThing(" ".join([*([] if p == "plain" else [p]), c, n]), n, c, p) for n, c, p in found]

    def pictures(self, scale: str) -> Iterator[LabelledPicture]:
        """All pictures, class by class."""
        classes, each, _ = self.counts(scale)
        for label in range(classes):
            number = 0
            for split, count in each.items():
                for _ in range(count):
                    number += 1
                    yield LabelledPicture(split, label, number)

    def save(self, path: Path, picture: LabelledPicture, kind: LabelledThing, scale: str, seed: int) -> None:
        """Draw a picture of its class, in any shape, and write it; some are greyscale."""
        random = np.random.default_rng([seed, 40 + self.stream, picture.label, picture.number])
        side = self.counts(scale)[2]
        drawn = portrait(random, some_thing(random, kind.noun, colour=kind.colour, pattern=kind.pattern), side)
        height = side - int(random.integers(0, side // 4))
        grey = random.random() < 0.02
        save_image(path, np.ascontiguousarray(drawn[:height]), "grey-jpeg" if grey else "jpeg")


def write_lines(path: Path, lines: list[str]) -> None:
    """Write a text file of these lines, creating its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def shuffled(lines: list[str], *seed: int) -> list[str]:
    """Lines in random order."""
    return [lines[place] for place in np.random.default_rng(list(seed)).permutation(len(lines))]


def save_mat(path: Path, variables: Mapping[str, object]) -> None:
    """Write a MATLAB file without the time of writing."""
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(str(path), dict(variables), do_compression=True)
    remark = b"MATLAB 5.0 MAT-file, written by Holdfast".ljust(116)
    path.write_bytes(remark + path.read_bytes()[116:])
