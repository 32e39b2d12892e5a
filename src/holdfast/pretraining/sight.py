"""The training of `models/sight.py`: `python -m holdfast.pretraining.sight` repeats it in minutes.

The pictures show blocks, as in the synthetic CLEVR at `small`, under a seed that no dataset uses. The network learns
for each cell whether a block has its centre there, and which block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from rich.progress import track
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from holdfast.data.images import decode
from holdfast.models.sight import GROUPS, STRIDE, WEIGHTS, Sight
from holdfast.world.blocks import COLOURS, MATERIALS, SHAPES, SIZES, Block, draw_blocks, make_blocks
from holdfast.world.writers.clevr import SMALL

SEED = 0x516
SIDE, WIDTH, HEIGHT = 64, 120, 80
_VALUES = tuple(COLOURS), SHAPES, MATERIALS, tuple(SIZES)
_NOWHERE = -1


@dataclass(frozen=True)
class LabelledCells:
    """Pictures, and for each group the content of each cell: the index of a value, or -1 if there is no block."""

    images: Tensor
    targets: Tensor

    def mirrored(self) -> LabelledCells:
        """The mirror images."""
        return LabelledCells(self.images.flip(-1), self.targets.flip(-1))


def draw(first: int, count: int) -> LabelledCells:
    """The pictures and labels of `count` scenes.

    >>> made = draw(0, 2)
    >>> made.images.shape, made.targets.shape, 3 <= int((made.targets[0, 0] >= 0).sum()) <= 5
    (torch.Size([2, 3, 64, 64]), torch.Size([2, 4, 8, 8]), True)
    """
    cells = SIDE // STRIDE
    images = np.zeros((count, SIDE, SIDE, 3), np.uint8)
    targets = np.full((count, len(GROUPS), cells, cells), _NOWHERE)
    for row in range(count):
        scene = make_blocks(SEED, first + row, count=SMALL.blocks, near=SMALL.near)
        images[row] = decode(draw_blocks(scene, WIDTH, HEIGHT)[..., :3], SIDE)
        # The nearest last: it hides other blocks in the same cell.
        for block in sorted(scene.things, key=lambda b: -scene.camera.project(b.middle, WIDTH, HEIGHT)[2]):
            across, down, _ = scene.camera.project(block.middle, WIDTH, HEIGHT)
            place = (
                int(np.clip(down / HEIGHT * cells, 0, cells - 1)),
                int(np.clip(across / WIDTH * cells, 0, cells - 1)),
            )
            targets[row, :, *place] = _numbers(block)
    return LabelledCells(torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), torch.from_numpy(targets))


def train(given: LabelledCells, steps: int = 3000, rate: float = 4e-3, batch: int = 64) -> Sight:
    """Train a new network."""
    torch.manual_seed(SEED)
    sight = Sight()
    optimiser = torch.optim.AdamW(sight.parameters(), lr=rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 1e-3, steps)
    for step in track(range(steps), "training", transient=True):
        rows = torch.randint(len(given.images), (batch,))
        part = LabelledCells(given.images[rows], given.targets[rows])
        optimiser.zero_grad()
        _loss(sight, part if step % 2 else part.mirrored()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    return sight


def accuracies(sight: Sight, given: LabelledCells) -> list[float]:
    """The accuracy of each group, over the cells that contain a block."""
    with torch.inference_mode():
        groups = torch.split(sight.logits(given.images), [*GROUPS, 1], dim=1)
    there = given.targets[:, 0] >= 0
    return [
        float((logits.argmax(1)[there] == given.targets[:, number][there]).float().mean())
        for number, logits in enumerate(groups[:-1])
    ]


def _loss(sight: Sight, given: LabelledCells) -> Tensor:
    *groups, found = torch.split(sight.logits(given.images), [*GROUPS, 1], dim=1)
    there = (given.targets[:, 0] >= 0).float()
    # Few cells contain a block: their loss must not be drowned out by that of the others.
    loss = 8 * functional.binary_cross_entropy_with_logits(found.squeeze(1), there)
    for number, logits in enumerate(groups):
        loss = loss + functional.cross_entropy(logits, given.targets[:, number], ignore_index=_NOWHERE)
    return loss


def _numbers(block: Block) -> list[int]:
    values = block.colour, block.shape, block.material, block.size
    return [names.index(value) for names, value in zip(_VALUES, values, strict=True)]


def main(pictures: int = 3500) -> None:
    """Train the network, print its accuracies on new pictures, and write its weights."""
    parts = [draw(first, 50) for first in track(range(0, pictures, 50), "drawing", transient=True)]
    whole = LabelledCells(torch.cat([part.images for part in parts]), torch.cat([part.targets for part in parts]))
    sight = train(whole)
    names = ("colour", "shape", "material", "size")
    found = accuracies(sight, draw(1_000_000, 300))
    print(", ".join(f"{name} {share:.3f}" for name, share in zip(names, found, strict=True)))
    save_file({name: value.half().contiguous() for name, value in sight.state_dict().items()}, WEIGHTS)


if __name__ == "__main__":
    main()
