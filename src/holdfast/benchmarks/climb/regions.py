"""Regions where there are only pictures: the cells of a grid over each, for models that see boxes.

A detector's boxes would be better; a grid needs none, and at the size of the world's pictures its cells are about as
large as the things in them.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.benchmarks.source import Split
from holdfast.data.table import Column, Shared
from holdfast.errors import UserError
from holdfast.types import Inputs

CELLS, PIXELS = 4, 8
"""So many cells along each side of a picture, each of so many pixels a side."""
WIDTH = 3 * PIXELS * PIXELS
_CHUNK = 1024


def with_regions(split: Split) -> Split:
    """The same examples with regions in place of pictures."""
    inputs = dict(split.table.inputs)
    column = inputs.pop("image")
    if isinstance(column, Shared):
        values, index = column.values, column.index
    elif isinstance(column, Tensor):
        values, index = column, torch.arange(len(column))
    else:
        raise UserError(
            "regions are cut from decoded pictures, and at the scale 'paper' these stay files: choose the scale 'large'"
        )
    found: dict[str, Column] = {"regions": Shared(cells(values), index)}
    for name, value in (("boxes", boxes()), ("region_count", torch.tensor(CELLS * CELLS))):
        found[name] = Shared(value.unsqueeze(0), torch.zeros_like(index))
    return replace(split, table=replace(split.table, inputs=inputs | found))


def region_inputs(inputs: Inputs) -> Inputs:
    """The inputs with regions in place of pictures."""
    return replace(inputs, image=None, padded=False, regions=(CELLS * CELLS, WIDTH))


def cells(pixels: Tensor) -> Tensor:
    """Pictures (n, 3, height, width) of bytes as the cells of their grids, (n, cells, width) from -1 to 1, row by row.

    >>> corner = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    >>> corner[:, :, :8, 8:16] = 255
    >>> cells(corner)[0].mean(-1).tolist()[:3]
    [-1.0, 1.0, -1.0]
    """
    side = CELLS * PIXELS
    found = []
    for start in range(0, len(pixels), _CHUNK):
        chunk = pixels[start : start + _CHUNK].float()
        small = functional.interpolate(chunk, size=(side, side), mode="area") / 127.5 - 1
        cut = small.unfold(2, PIXELS, PIXELS).unfold(3, PIXELS, PIXELS)  # n, 3, down, across, pixels, pixels
        found.append(cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2).half())
    return torch.cat(found)


def boxes() -> Tensor:
    """The corners of the cells as shares of the sides.

    >>> boxes()[1].tolist()
    [0.25, 0.0, 0.5, 0.25]
    """
    at = torch.arange(CELLS) / CELLS
    top, left = torch.meshgrid(at, at, indexing="ij")
    return torch.stack([left, top, left + 1 / CELLS, top + 1 / CELLS], dim=-1).flatten(0, 1)
