"""A small frozen network that sees what is in a box, in the place of a detector.

The paper takes its features from a Faster R-CNN that had learned the objects of other photographs. This one learned the
things of other pictures of the world: their names, colours, sizes, patterns and what they do, and the place where they
are. `python -m holdfast.benchmarks.viscoll.extractor` trains it anew, in some minutes; its weights lie beside this
file. It knows the world's pictures and no others: photographs need features of their own.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from holdfast.world.describe import name
from holdfast.world.draw import encode_image, render
from holdfast.world.scene import make_scene
from holdfast.world.vocabulary import COCO_NOUNS, COLOURS, PATTERNS, PLACES, SIZES, VERBS

WEIGHTS = Path(__file__).with_suffix(".safetensors")
SIDE, WIDTH, MARGIN = 32, 128, 0.08
"""The side of a crop, the width of a feature, and how much of its surroundings a box shows, as a share of its sides."""
_CHANNELS = (3, 24, 48, 96)
_LESSONS: dict[str, tuple[str, ...]] = {
    "name": (*("man", "woman", "child"), *(noun for noun in COCO_NOUNS if noun != "person")),
    "colour": tuple(COLOURS),
    "size": SIZES,
    "pattern": PATTERNS,
    "verb": ("", *VERBS),
    "place": PLACES,
}
_UNTOLD = -1
_SEED = 0x0B0C5


class RegionNetwork(nn.Module):
    """Crops, and where their boxes are, to features of unit scale."""

    def __init__(self) -> None:
        super().__init__()
        down = [nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in pairwise(_CHANNELS)]
        deep = [nn.Conv2d(channels, channels, 3, 1, 1, bias=False) for channels in _CHANNELS[1:]]
        self.down, self.deep = nn.ModuleList(down), nn.ModuleList(deep)
        self.norms = nn.ModuleList(nn.GroupNorm(4, channels) for channels in _CHANNELS[1:] for _ in range(2))
        self.join = nn.Linear(_CHANNELS[-1] * 4 + 4, WIDTH)
        self.heads = nn.ModuleDict({lesson: nn.Linear(WIDTH, len(words)) for lesson, words in _LESSONS.items()})

    def forward(self, crops: Tensor, boxes: Tensor) -> Tensor:
        """uint8 crops (rows, 3, SIDE, SIDE) and corners (rows, 4), as shares of the picture's sides: (rows, WIDTH)."""
        x = crops.float() / 127.5 - 1
        norms = iter(self.norms)
        for down, deep in zip(self.down, self.deep, strict=True):
            x = next(norms)(down(x)).relu()
            x = x + next(norms)(deep(x)).relu()
        x = functional.adaptive_max_pool2d(x, 2).flatten(1)
        sides = torch.stack([boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1], boxes[:, 1], boxes[:, 3]], 1)
        return functional.layer_norm(self.join(torch.cat([x, sides], 1)), (WIDTH,))


@cache
def trained_extractor() -> RegionNetwork:
    """The network with its weights; nothing in it learns any more."""
    network = RegionNetwork()
    network.load_state_dict({key: value.float() for key, value in load_file(WEIGHTS).items()})
    return network.requires_grad_(False).eval()


def crops(picture: Image.Image, boxes: NDArray[np.float32]) -> NDArray[np.uint8]:
    """What each box (corners as shares of the sides) shows of a picture: (boxes, 3, SIDE, SIDE).

    >>> crops(Image.new("RGB", (96, 72)), np.array([[0, 0, 1, 1], [0.5, 0.5, 0.6, 0.9]], np.float32)).shape
    (2, 3, 32, 32)
    """
    wide = (boxes[:, 2:] - boxes[:, :2]) * MARGIN
    corners = np.concatenate([boxes[:, :2] - wide, boxes[:, 2:] + wide], 1).clip(0, 1) * (picture.size * 2)
    shown = [picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=tuple(each)) for each in corners.tolist()]
    return np.stack([np.asarray(each) for each in shown]).transpose(0, 3, 1, 2)


@dataclass(frozen=True)
class LabelledCrops:
    """Crops with their boxes, and the number of the right word for each lesson, -1 where it is not told."""

    crops: Tensor
    boxes: Tensor
    targets: Tensor

    def rows(self, rows: Tensor) -> LabelledCrops:
        """Some of it."""
        return LabelledCrops(self.crops[rows], self.boxes[rows], self.targets[rows])


def lesson(numbers: Sequence[int], seed: int = _SEED) -> LabelledCrops:
    """What is in the boxes of some scenes, and their places; the first crop of a scene is the whole picture.

    >>> made = lesson([1, 2])
    >>> made.crops.shape[1:], int((made.targets[:, -1] >= 0).sum())
    (torch.Size([3, 32, 32]), 2)
    """
    shown, where, right = [], [], []
    for number in numbers:
        scene, size = make_scene(seed, number), (72, 96) if number % 5 == 0 else (96, 72)
        picture = Image.open(io.BytesIO(encode_image(render(scene, *size), "jpeg"))).convert("RGB")
        boxes = [(t.box.left, t.box.top, t.box.left + t.box.width, t.box.top + t.box.height) for t in scene.things]
        corners = np.array([(0, 0, 1, 1), *boxes], np.float32)
        shown.append(crops(picture, corners))
        where.append(corners)
        right.append([_UNTOLD] * (len(_LESSONS) - 1) + [PLACES.index(scene.place)])
        for thing in scene.things:
            noun = name(thing) if thing.noun == "person" else thing.noun
            told = (noun, thing.colour, thing.size, thing.pattern, thing.verb)
            words = zip(_LESSONS.values(), told, strict=False)
            right.append([*(among.index(word) for among, word in words), _UNTOLD])
    return LabelledCrops(
        torch.from_numpy(np.concatenate(shown)), torch.from_numpy(np.concatenate(where)), torch.tensor(right)
    )


def train_extractor(given: LabelledCrops, epochs: int = 8, rate: float = 4e-3, batch: int = 256) -> RegionNetwork:
    """A network that learned the lesson."""
    torch.manual_seed(_SEED)
    network = RegionNetwork()
    steps = epochs * (len(given.crops) // batch)
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(given.crops))
        for at in range(0, len(order) - batch + 1, batch):
            part = given.rows(order[at : at + batch])
            mirrored = bool(torch.rand(()) < 0.5)
            optimiser.zero_grad()
            _loss(network, part, mirrored).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    return network.eval()


def accuracies(network: RegionNetwork, given: LabelledCrops) -> dict[str, float]:
    """How often each lesson's own layer names the right word."""
    with torch.inference_mode():
        features = network(given.crops, given.boxes)
    found = {}
    for number, (key, head) in enumerate(network.heads.items()):
        told = given.targets[:, number] >= 0
        found[key] = float((head(features[told]).argmax(1) == given.targets[told, number]).float().mean())
    return found


def _loss(network: RegionNetwork, given: LabelledCrops, mirrored: bool) -> Tensor:
    features = network(given.crops.flip(-1) if mirrored else given.crops, given.boxes)
    losses = [
        functional.cross_entropy(head(features), given.targets[:, number], ignore_index=_UNTOLD)
        for number, head in enumerate(network.heads.values())
    ]
    return torch.stack(losses).sum()


def main(pictures: int = 6_000) -> None:
    """Train it, say how good it is on pictures that it has not seen, and write its weights."""
    network = train_extractor(lesson(range(pictures)))
    print({key: round(share, 3) for key, share in accuracies(network, lesson(range(10**6, 10**6 + 500))).items()})
    save_file({key: value.half().contiguous() for key, value in network.state_dict().items()}, WEIGHTS)


if __name__ == "__main__":
    main()
