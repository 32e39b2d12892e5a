"""Images passed once through a model's frozen front, whose outputs replace them before training starts."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from holdfast.benchmarks.base import Setup
from holdfast.data.table import Column, Data, Shared, Table

BATCH = 256


def through(setup: Setup, front: nn.Module) -> Setup:
    """The same setup with the feature maps of its images, as `grid`, in place of the pixels.

    Images that stay files, and examples with several images, are left as they are: the model passes these through its
    front itself.
    """
    inputs = setup.inputs
    columns = [table.inputs.get("image") for table in setup.data.tables]
    if inputs.image is None or inputs.images > 1 or not all(isinstance(c, Tensor | Shared) for c in columns):
        return setup
    data = Data([_mapped(table, front) for table in setup.data.tables])
    with torch.no_grad():
        channels, height, width = front(torch.zeros(1, *inputs.image, dtype=torch.uint8)).shape[1:]
    return replace(setup, data=data, inputs=replace(inputs, image=None, grid=(channels, height, width)))


def _mapped(table: Table, front: nn.Module) -> Table:
    column = table.inputs["image"]
    pictures = column.values if isinstance(column, Shared) else column
    assert isinstance(pictures, Tensor)
    with torch.no_grad():
        maps = torch.cat([front(part) for part in pictures.split(BATCH)])  # type: ignore[no-untyped-call]
    grid: Column = Shared(maps, column.index) if isinstance(column, Shared) else maps
    rest = {name: values for name, values in table.inputs.items() if name != "image"}
    return replace(table, inputs={**rest, "grid": grid})
