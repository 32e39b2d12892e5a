"""Modules that know nothing of Holdfast, as users bring them."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.narrow, self.wide = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.wide(self.narrow(x).relu())


class Blocks(nn.Module):
    """Patches, a class token, repeated blocks, and a scale at the end that stands in no module."""

    def __init__(self, width: int = 8, depth=3, drop=0.1):
        super().__init__()
        self.token, self.scale = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.ones(width))
        self.patches, self.drop = nn.Conv2d(1, width, 4, 4), nn.Dropout(drop)
        self.layers = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = self.drop(torch.cat([self.token.expand(len(x), -1, -1), x], 1))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x.mean(1)) * self.scale


class Normalised(nn.Module):
    """Batch normalisation over maps and over rows, a counter, and a weight that is used twice."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU())
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight
        self.rows = nn.BatchNorm1d(6)

    def forward(self, x):
        return self.rows(self.second(self.first(self.body(x).mean((2, 3))).relu()))


class Counting(nn.Module):
    """Draws random numbers wherever it is called, and counts the rows that it saw in training."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(144, 8))
        self.register_buffer("rows", torch.zeros((), dtype=torch.int64))

    def forward(self, pixels):
        if self.training:
            self.rows += len(pixels)
        x = self.body(pixels)
        return x + 0.1 * torch.randn_like(x) + 1e-3 * self.rows


class Attending(nn.Module):
    """PyTorch's own transformer, which has a faster way in evaluation that calls none of its layers."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, pixel_values):
        return self.encoder(self.patches(pixel_values).flatten(2).transpose(1, 2))


def convolutional():
    """A function that builds a module."""
    block = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()) for _ in range(2)]
    return nn.Sequential(nn.Conv2d(1, 8, 3, 2), *block, nn.AdaptiveAvgPool2d(1), nn.Flatten())
