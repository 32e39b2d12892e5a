"""The duration of one epoch over CIFAR-100's 50,000 images: ResNet-18 at 32 pixels, Adam, batches of 100, mirrored.

The images are stored on the device as one uint8 tensor, and are mirrored there. Their pixels are random, since values
do not affect the speed. For comparison, the barest PyTorch loop on the same model and images, without mirroring.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.stepper import forget_earlier_runs
from holdfast.engine.watch import NoLog, Watch
from holdfast.errors import Stopped
from holdfast.models.base import Network
from holdfast.models.resnet import ResNet18
from holdfast.tasks import Classify
from holdfast.types import Inputs, Protocol, Stage, Stream, Training

IMAGES, CLASSES, BATCH, RATE = 50_000, 100, 100, 1e-3
TASK = Classify("images", "images", CLASSES, 1 / CLASSES)
LIMIT = 2.0
"""The target for an epoch of 50,000 images on a fast GPU, in seconds."""
FORMS = {"float32": (None, False), "bfloat16": (torch.bfloat16, False), "bfloat16, compiled": (torch.bfloat16, True)}


@dataclass(frozen=True)
class Epoch:
    """The seconds of an epoch in one form, of the barest loop in the same precision, and of start-up."""

    form: str
    seconds: float
    bare: float
    starting: float
    """For the first steps, which are slower."""


def epochs(device: torch.device, *, images: int = IMAGES, side: int = 32, only: str = "") -> Iterator[Epoch]:
    """Time an epoch in each form whose name contains `only`, and the barest loop for comparison."""
    draw = torch.Generator(device).manual_seed(0)
    pixels = torch.randint(256, (images, 3, side, side), generator=draw, device=device, dtype=torch.uint8)
    labels = torch.randint(CLASSES, (images,), generator=draw, device=device)
    bare: dict[torch.dtype | None, float] = {}
    for form, (half, compiled) in FORMS.items():
        if only not in form:
            continue
        if half not in bare:
            bare[half] = _bare(_network(side), pixels, labels, half)
        data = Data([Table("images", {"image": pixels}, labels)])
        forget_earlier_runs()
        learner = Learner(_network(side), data, {TASK.name: TASK}, device=device, autocast=half, compiled=compiled)
        training = Training(batch_size=BATCH, learning_rate=RATE, optimiser="adam", epochs=2, augment="flip")
        clock = _EpochTimer(device, -(-images // BATCH))
        with suppress(Stopped):  # raised when the timer stops the run
            stream = Stream((Stage("images", np.arange(images), training),))
            train(learner, stream, [], Protocol(()), log=NoLog(), watch=clock)
        yield Epoch(form, clock.seconds, bare[half], max(clock.first - clock.seconds, 0.0))


def _network(side: int) -> Network:
    torch.manual_seed(0)
    return ResNet18().build(Inputs(image=(3, side, side)), {TASK.head: TASK.reads})


class _EpochTimer(Watch):
    """Times the first epoch, which warms up, and the second."""

    def __init__(self, device: torch.device, steps: int) -> None:
        self.device, self.steps = device, steps
        self.began, self.first, self.seconds = 0.0, 0.0, 0.0

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """Start the clock: the first epoch begins."""
        self.began = time.perf_counter()

    def step(self, stage_step: int, loss: Tensor) -> None:
        """Read the clock at the end of an epoch."""
        if stage_step in (self.steps, 2 * self.steps):
            now = _now(self.device)
            if stage_step == self.steps:
                self.first = now - self.began
            else:
                self.seconds = now - self.began - self.first
                self.stopping = True


def _bare(model: Network, pixels: Tensor, labels: Tensor, half: torch.dtype | None) -> float:
    """The seconds of the second of two epochs of the barest loop."""
    model.to(pixels.device).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
    began = seconds = 0.0
    for epoch in range(2):
        order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(epoch)).to(pixels.device)
        began = _now(pixels.device)
        for rows in torch.split(order, BATCH):
            with torch.autocast(pixels.device.type, half, enabled=half is not None):
                output = model({"image": pixels[rows]}, "images")
            optimiser.zero_grad()
            functional.cross_entropy(output.float(), labels[rows]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        seconds = _now(pixels.device) - began
    return seconds


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
