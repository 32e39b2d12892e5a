"""Class activation maps (Zhou et al. 2016; E.3): where in a picture a few-shot head finds its class.

A head is linear, and its input is the mean of the extractor's last feature map. Its output is therefore the mean of its
outputs at each place of that map: nothing is approximated, and the map's mean, plus the head's bias, is the logit.
Evidence for all classes alike is evidence for none: it is subtracted, which changes no probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor
from torch.nn import functional

from holdfast.benchmarks.cfst import fewshot
from holdfast.benchmarks.cfst.testing import FewShotTest
from holdfast.data.table import Data

BATCH = 256
TILE, GAP, MARGIN, LINE = 84, 6, 96, 12
"""The pixels of a picture on a sheet, between two pictures, left of a row, and of a line of a title."""


@dataclass(frozen=True)
class TaskMaps:
    """One few-shot task: for each of its classes some query pictures, their maps, and whether the head was right."""

    test: str
    titles: tuple[str, ...]
    images: NDArray[np.uint8]
    """(pictures, height, width, 3)."""
    maps: NDArray[np.float32]
    """(pictures, height, width): 1 where the picture has most evidence for its class, 0 where it has none."""
    right: NDArray[np.bool_]


def activations(grid: Tensor, weights: Tensor) -> Tensor:
    """The evidence at each place of feature maps (rows, width, down, across) for the class with weights (rows, width).

    >>> activations(torch.ones(1, 2, 1, 3), torch.tensor([[2.0, 3.0]])).tolist()
    [[[5.0, 5.0, 5.0]]]
    """
    return torch.einsum("rwyx,rw->ryx", grid, weights)


def maps(
    grid: Callable[[Tensor], Tensor],
    data: Data,
    tests: Sequence[FewShotTest],
    titles: Callable[[str], Mapping[int, str]],
    seed: int,
    shots: int = fewshot.SHOT,
    samples: int = 1,
) -> list[TaskMaps]:
    """The maps of one few-shot task of each test, with `samples` pictures of each class.

    `grid` computes the last feature map of pictures; `titles` gives the titles of a mode's classes by their numbers.
    """
    found = []
    for test in tests:
        known = titles(test.name.partition("(")[0])
        random = np.random.default_rng([seed, *test.name.encode()])
        drawn = fewshot.draw(test.labels, random, tasks=1, way=test.way, shot=shots)
        chosen = test.mode[test.rows]
        support = _grids(grid, data, chosen[drawn.support[0].reshape(-1)]).mean((-2, -1))
        heads = fewshot.new_heads(1, test.way, support.shape[1], random)
        weights, biases = fewshot.trained(support.unsqueeze(0), drawn.targets[0], heads)
        queries = drawn.query[0, :, :samples].reshape(-1)  # in the order of the head's classes
        classes = torch.arange(test.way).repeat_interleave(samples)
        images = _images(data, chosen[queries])
        last = _grids(grid, data, chosen[queries])
        logits = functional.linear(last.mean((-2, -1)), weights[0], biases[0])
        shown = activations(last, (weights[0] - weights[0].mean(0))[classes]).clamp(min=0)
        shown = functional.interpolate(shown.unsqueeze(1), images.shape[-2:], mode="bilinear").squeeze(1)
        shown = shown / shown.amax((-2, -1), keepdim=True).clamp(min=torch.finfo(shown.dtype).tiny)
        found.append(
            TaskMaps(
                test.name,
                tuple(known[int(test.labels[row])] for row in queries),
                images.permute(0, 2, 3, 1).numpy(),
                shown.float().numpy(),
                (logits.argmax(1) == classes).numpy(),
            )
        )
    return found


def _images(data: Data, ids: NDArray[np.int64]) -> Tensor:
    (part,) = data.fetch(ids, torch.device("cpu")).parts
    return part.inputs["image"]


def _grids(grid: Callable[[Tensor], Tensor], data: Data, ids: NDArray[np.int64]) -> Tensor:
    with torch.no_grad():
        return torch.cat([grid(_images(data, ids[at : at + BATCH])) for at in range(0, len(ids), BATCH)])


def sheet(shown: Mapping[str, Sequence[TaskMaps]]) -> Image.Image:
    """For each test a row of pictures and, for each run by name, a row of maps; a wrong answer has a red frame."""
    tests = next(iter(shown.values()))
    titles = [[fill(title, TILE // 6) for title in test.titles] for test in tests]
    above = [LINE * (1 + max(title.count("\n") + 1 for title in own)) for own in titles]
    heights = [height + (TILE + GAP) * (1 + len(shown)) for height in above]
    width = MARGIN + (TILE + GAP) * max(len(test.titles) for test in tests)
    found = Image.new("RGB", (width, sum(heights)), "white")
    pen = ImageDraw.Draw(found)
    for number, test in enumerate(tests):
        top = sum(heights[:number])
        first = top + above[number]
        pen.text((GAP, first + TILE // 2), test.test, "black")
        for place, (image, title) in enumerate(zip(test.images, titles[number], strict=True)):
            left = MARGIN + place * (TILE + GAP)
            pen.multiline_text((left, top), title, "black", spacing=0)
            found.paste(Image.fromarray(image).resize((TILE, TILE)), (left, first))
        for row, (run, each) in enumerate(shown.items(), 1):
            below = first + row * (TILE + GAP)
            pen.multiline_text((GAP, below + TILE // 3), run.replace(" ", "\n"), "black")
            for place, heat in enumerate(each[number].maps):
                left = MARGIN + place * (TILE + GAP)
                if not each[number].right[place]:
                    pen.rectangle((left - 3, below - 3, left + TILE + 2, below + TILE + 2), "red")
                found.paste(
                    Image.fromarray(_over(each[number].images[place], heat)).resize((TILE, TILE)), (left, below)
                )
    return found


def _over(image: NDArray[np.uint8], heat: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A grey picture under a map, which glows from red over yellow to white."""
    grey = image.mean(-1, keepdims=True)
    glow = 255 * np.clip(3 * heat[..., None] - np.arange(3), 0, 1)
    share = 0.15 + 0.6 * heat[..., None]
    return np.asarray((1 - share) * grey + share * glow, np.uint8)
