"""A small frozen network that recognises the block in each cell of a picture.

The papers' models use a large network trained on a million photographs. Offline and on a CPU, this one takes
its place: `python -m holdfast.pretraining.sight` trained it on other pictures of the synthetic world, and its weights
are beside this file.
"""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from holdfast.models.resnet import Normalise

WEIGHTS = Path(__file__).with_name("sight.safetensors")
CHANNELS = (16, 32, 48)
DEPTH = 2
"""Further convolutions at the size of the cells."""
STRIDE = 8
GROUPS = (8, 3, 2, 2)
"""Colours, shapes, materials and sizes: for each group, a share of every value; then whether there is a block at
all."""


class Sight(nn.Module):
    """Maps pixels to blocks: in each cell of eight by eight pixels, shares of each group's values, times the
    probability that the middle of a block is there; and that probability.
    """

    channels = sum(GROUPS) + 1

    def __init__(self) -> None:
        super().__init__()
        self.normalise = Normalise()
        sizes = [3, *CHANNELS]
        down = [nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in pairwise(sizes)]
        deep = [nn.Conv2d(CHANNELS[-1], CHANNELS[-1], 3, 1, 1, bias=False) for _ in range(DEPTH)]
        self.convolutions = nn.ModuleList([*down, *deep])
        self.norms = nn.ModuleList(nn.GroupNorm(4, layer.out_channels) for layer in [*down, *deep])
        self.names = nn.Conv2d(CHANNELS[-1], self.channels, 1)

    def logits(self, images: Tensor) -> Tensor:
        """Images (rows, 3, height, width) to (rows, channels, cells down, cells across)."""
        x: Tensor = self.normalise(images)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            y = norm(convolution(x)).relu()
            x = x + y if y.shape == x.shape else y
        found: Tensor = self.names(x)
        return found

    def forward(self, images: Tensor) -> Tensor:
        """The outputs as shares and probabilities."""
        *groups, there = torch.split(self.logits(images), [*GROUPS, 1], dim=1)
        there = there.sigmoid()
        return torch.cat([*(group.softmax(1) * there for group in groups), there], dim=1)


def trained_sight() -> Sight:
    """The network with its trained weights, frozen."""
    sight = Sight()
    sight.load_state_dict({name: value.float() for name, value in load_file(WEIGHTS).items()})
    return sight.requires_grad_(False)


@cache
def sight_hash() -> str:
    """A hash of the weights, for runs' ids."""
    return hashlib.blake2b(WEIGHTS.read_bytes(), digest_size=8).hexdigest()
