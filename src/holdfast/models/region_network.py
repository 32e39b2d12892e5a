"""A small frozen network that computes features of boxes, in place of a detector.

VisCOLL takes its features from a Faster R-CNN trained on other photographs. This network was trained on other
pictures of the synthetic world, by `python -m holdfast.pretraining.region_network`; its weights are beside this file.
It only works on such pictures: photographs need their own features.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WEIGHTS = Path(__file__).with_suffix(".safetensors")
SIDE, WIDTH, MARGIN = 32, 128, 0.08
"""The side of a crop, the width of a feature, and how much of its surroundings a crop includes, relative to the box."""
_CHANNELS = (3, 24, 48, 96)


class RegionNetwork(nn.Module):
    """Maps crops and the positions of their boxes to features of unit scale; with a head for each attribute, for
    training.
    """

    def __init__(self, attributes: Mapping[str, int]) -> None:
        super().__init__()
        down = [nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in pairwise(_CHANNELS)]
        deep = [nn.Conv2d(channels, channels, 3, 1, 1, bias=False) for channels in _CHANNELS[1:]]
        self.down, self.deep = nn.ModuleList(down), nn.ModuleList(deep)
        self.norms = nn.ModuleList(nn.GroupNorm(4, channels) for channels in _CHANNELS[1:] for _ in range(2))
        self.join = nn.Linear(_CHANNELS[-1] * 4 + 4, WIDTH)
        self.heads = nn.ModuleDict({name: nn.Linear(WIDTH, values) for name, values in attributes.items()})

    def forward(self, crops: Tensor, boxes: Tensor) -> Tensor:
        """Map uint8 crops (rows, 3, SIDE, SIDE) and corners (rows, 4), as shares of the picture's sides, to (rows,
        WIDTH).
        """
        x = crops.float() / 127.5 - 1
        norms = iter(self.norms)
        for down, deep in zip(self.down, self.deep, strict=True):
            x = next(norms)(down(x)).relu()
            x = x + next(norms)(deep(x)).relu()
        x = functional.adaptive_max_pool2d(x, 2).flatten(1)
        sides = torch.stack([boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1], boxes[:, 1], boxes[:, 3]], 1)
        return functional.layer_norm(self.join(torch.cat([x, sides], 1)), (WIDTH,))


@cache
def trained_region_network() -> RegionNetwork:
    """The network with its trained weights, frozen."""
    weights = {key: value.float() for key, value in load_file(WEIGHTS).items()}
    heads = {key.split(".")[1]: len(value) for key, value in weights.items() if key.startswith("heads.")}
    network = RegionNetwork(heads)
    network.load_state_dict(weights)
    return network.requires_grad_(False).eval()


def crops(picture: Image.Image, boxes: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The crop of a picture for each box (corners as shares of the sides): (boxes, 3, SIDE, SIDE).

    >>> crops(Image.new("RGB", (96, 72)), np.array([[0, 0, 1, 1], [0.5, 0.5, 0.6, 0.9]], np.float32)).shape
    (2, 3, 32, 32)
    """
    wide = (boxes[:, 2:] - boxes[:, :2]) * MARGIN
    corners = np.concatenate([boxes[:, :2] - wide, boxes[:, 2:] + wide], 1).clip(0, 1) * (picture.size * 2)
    shown = [picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=tuple(each)) for each in corners.tolist()]
    return np.stack([np.asarray(each) for each in shown]).transpose(0, 3, 1, 2)
