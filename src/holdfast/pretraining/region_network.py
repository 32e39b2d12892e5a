"""The training of `models/region_network.py`: `python -m holdfast.pretraining.region_network` repeats it in minutes.

The network learns to name the things in synthetic pictures, their colours, sizes, patterns and actions, and the place
they are in.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from holdfast.models.region_network import WEIGHTS, RegionNetwork, crops
from holdfast.world.describe import name
from holdfast.world.draw import encode_image, render
from holdfast.world.scene import make_scene
from holdfast.world.vocabulary import COCO_NOUNS, COLOURS, PATTERNS, PLACES, SIZES, VERBS

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "name": (*("man", "woman", "child"), *(noun for noun in COCO_NOUNS if noun != "person")),
    "colour": tuple(COLOURS),
    "size": SIZES,
    "pattern": PATTERNS,
    "verb": ("", *VERBS),
    "place": PLACES,
}
"""The values of each attribute that the network learns to name."""
_UNLABELLED = -1
_SEED = 0x0B0C5


@dataclass(frozen=True)
class LabelledCrops:
    """Crops with their boxes, and the index of the right value of each attribute, -1 if it has none."""

    crops: Tensor
    boxes: Tensor
    targets: Tensor

    def rows(self, rows: Tensor) -> LabelledCrops:
        """A selection of the rows."""
        return LabelledCrops(self.crops[rows], self.boxes[rows], self.targets[rows])


def draw(numbers: Sequence[int], seed: int = _SEED) -> LabelledCrops:
    """The boxes of some scenes with their labels; the first crop of a scene is the whole picture, labelled by place.

    >>> made = draw([1, 2])
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
        right.append([_UNLABELLED] * (len(ATTRIBUTES) - 1) + [PLACES.index(scene.place)])
        for thing in scene.things:
            noun = name(thing) if thing.noun == "person" else thing.noun
            values = (noun, thing.colour, thing.size, thing.pattern, thing.verb)
            pairs = zip(ATTRIBUTES.values(), values, strict=False)
            right.append([*(among.index(value) for among, value in pairs), _UNLABELLED])
    return LabelledCrops(
        torch.from_numpy(np.concatenate(shown)), torch.from_numpy(np.concatenate(where)), torch.tensor(right)
    )


def train(given: LabelledCrops, epochs: int = 8, rate: float = 4e-3, batch: int = 256) -> RegionNetwork:
    """Train a new network."""
    torch.manual_seed(_SEED)
    network = RegionNetwork({attribute: len(values) for attribute, values in ATTRIBUTES.items()})
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
    """The accuracy of each attribute's head."""
    with torch.inference_mode():
        features = network(given.crops, given.boxes)
    found = {}
    for number, attribute in enumerate(ATTRIBUTES):
        rows = given.targets[:, number] >= 0
        answers = network.heads[attribute](features[rows]).argmax(1)
        found[attribute] = float((answers == given.targets[rows, number]).float().mean())
    return found


def _loss(network: RegionNetwork, given: LabelledCrops, mirrored: bool) -> Tensor:
    features = network(given.crops.flip(-1) if mirrored else given.crops, given.boxes)
    losses = [
        functional.cross_entropy(network.heads[attribute](features), given.targets[:, number], ignore_index=_UNLABELLED)
        for number, attribute in enumerate(ATTRIBUTES)
    ]
    return torch.stack(losses).sum()


def main(pictures: int = 6_000) -> None:
    """Train the network, print its accuracies on new pictures, and write its weights."""
    network = train(draw(range(pictures)))
    print({key: round(share, 3) for key, share in accuracies(network, draw(range(10**6, 10**6 + 500))).items()})
    save_file({key: value.half().contiguous() for key, value in network.state_dict().items()}, WEIGHTS)


if __name__ == "__main__":
    main()
