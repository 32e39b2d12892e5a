"""Tasks with only text or only pictures, in the form that a model of both expects (CLiMB, section 4.3, supplement B.2).

A text comes with a placeholder image: the mean of COCO's training images, so that the input is not unfamiliar to the
model. It has a third of the usual side, and the positions that this frees are given to the text: the model's positions
of text are repeated as often as the text needs. A picture comes with the text "This is an image."
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from holdfast.benchmarks.source import Source, open_source, place_of, within
from holdfast.checksums import is_intact, seal
from holdfast.data import images
from holdfast.data.table import Shared, Table
from holdfast.data.text import VACUOUS_TEXT, Tokenizer
from holdfast.errors import UserError
from holdfast.types import Array, Example

VERSION = 1
Vacuous: TypeAlias = Literal["mean", "zero", "none"]

PLACES = 40
"""The number of word pieces that ViLT was made for."""
STEP = 32
"""The side of the placeholder image is a multiple of this many pixels: ViLT's patch."""
OBJECTS = 80
"""The categories of COCO."""
ENOUGH = "small"
"""The largest scale at which synthetic COCO pictures are drawn just to compute their mean."""
FLAT = 100
"""The number of COCO's boxes that may have no size, like a few of the official ones: only the labels are needed."""


@dataclass(frozen=True)
class Unimodal:
    """A task with one modality: the source of its examples, and the question.

    `splits` are the official ones for training and test; if a dataset has had several releases, the first existing one
    is read. `outputs` is the number of classes, or of choices; 0: as many classes as the training data has.
    """

    dataset: str
    splits: tuple[tuple[str, str], ...]
    kind: Literal["classify", "choose", "label"]
    outputs: int = 0
    pieces: int = 0
    """The maximum length of a text in word pieces; 0: there is no text."""

    @property
    def modality(self) -> str:
        """The only modality: language or vision.

        >>> LANGUAGE["piqa"].modality, VISION["coco"].modality
        ('language', 'vision')
        """
        return "language" if self.pieces else "vision"


LANGUAGE = {
    "imdb": Unimodal("imdb", (("train", "test"),), "classify", 2, 160),
    "sst-2": Unimodal("sst2", (("train", "dev"),), "classify", 2, 40),
    "hellaswag": Unimodal("hellaswag", (("train", "val"),), "choose", 4, 120),
    "commonsenseqa": Unimodal("commonsenseqa", (("train", "dev"),), "choose", 5, 80),
    "piqa": Unimodal("piqa", (("train", "valid"),), "choose", 2, 80),
}
VISION = {
    "imagenet": Unimodal("imagenet", (("train", "val"),), "classify"),
    "inaturalist2019": Unimodal("inaturalist2019", (("train", "val"),), "classify"),
    "places365": Unimodal("places365", (("train", "val"),), "classify"),
    "coco": Unimodal("coco", (("train2014", "val2014"), ("train2017", "val2017")), "label", OBJECTS),
}
"""The tasks under the names of the paper's tables, with the number of word pieces in its code."""


def open_unimodal(task: Unimodal, *, data: str, scale: str, skip_bad: int) -> tuple[Source, tuple[str, str]]:
    """The files of a task, and the names of the splits for training and test."""
    more = FLAT if task.kind == "label" else 0
    data = within(task.dataset, data) or data
    source = open_source(task.dataset, data=data, scale=scale, skip_bad=skip_bad + more)
    return source, task.splits[0] if task.kind != "label" else _release(source)


def indicators(examples: Sequence[Example]) -> Array:
    """Which of COCO's categories each picture shows.

    >>> indicators([Example("a", (0, 2))])[0, :4].tolist()
    [1, 0, 1, 0]
    """
    table = np.zeros((len(examples), OBJECTS), np.uint8)
    for row, example in enumerate(examples):
        assert isinstance(example.target, tuple), "COCO is read with its labels"
        table[row, list(example.target)] = 1
    return table


def shrunk(side: int) -> int:
    """A third of a side, in whole steps: 144 patches of ViLT become 16.

    >>> shrunk(384), shrunk(64)
    (128, 32)
    """
    return -(-side // (3 * STEP)) * STEP


def vacuous_image(kind: Vacuous, side: int, shown: int, *, data: str, scale: str) -> Tensor:
    """The image beside a text, (3, shown, shown): the mean of COCO's training images at `side`, or black.

    If `data` has no COCO, it is the mean of the synthetic COCO.
    """
    if kind != "mean":
        return torch.zeros(3, shown, shown, dtype=torch.uint8)
    pixels = images.decode(_mean(_coco(data, scale), side), shown)
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def with_image(table: Table, image: Tensor, kind: Vacuous) -> Table:
    """A table of texts with the same image for all; if there should be none, all of it is padding."""
    every = torch.zeros(len(table), dtype=torch.int64)
    inputs = {**table.inputs, "image": Shared(image.unsqueeze(0), every)}
    if kind == "none":
        inputs["image_size"] = Shared(torch.zeros(1, 2, dtype=torch.int32), every)
    return replace(table, inputs=inputs)


def with_text(table: Table, words: Tokenizer) -> Table:
    """A table of pictures with the same text for all."""
    numbers, lengths = words.encode([VACUOUS_TEXT], PLACES)
    longest, every = int(lengths[0]), torch.zeros(len(table), dtype=torch.int64)
    text = {
        "text": Shared(torch.from_numpy(numbers[:, :longest].copy()), every),
        "text_length": Shared(torch.from_numpy(lengths), every),
    }
    return replace(table, inputs={**table.inputs, **text})


def _release(coco: Source) -> tuple[str, str]:
    """The splits of the COCO release that is available: 2014, whose pictures VQAv2 also uses, or 2017."""
    first, second = VISION["coco"].splits
    old = (coco.folder / place / f"instances_{first[0]}.json" for place in ("annotations", "."))
    return first if any(file.is_file() for file in old) else second


def _coco(data: str, scale: str) -> Source:
    if data:
        try:
            return open_source("coco", data=within("coco", data) or data, skip_bad=FLAT)
        except UserError:
            pass
    return open_source("coco", scale=scale if scale == "tiny" else ENOUGH, skip_bad=FLAT)


def _mean(coco: Source, side: int) -> images.Pixels:
    """The mean image, from the cache if possible."""
    split, _ = _release(coco)
    place = place_of("tables", f"mean of {split}", [coco], side, modules=[__name__]).with_suffix(".npy")
    if not is_intact(place):
        found = images.mean_image((image for each in coco.examples(split) for image in each.images), side)
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{place.name}.{os.getpid()}")
        with partial.open("wb") as file:
            np.save(file, found)
        partial.rename(place)
        seal(place)
    pixels: images.Pixels = np.load(place)
    return pixels
