"""The duration of one pass over a stream of COCO-shift's size with each method: VL-BERT, batches of 32.

The stream is arranged by the benchmark's own code, over tasks as unequal as COCO-shift's; words and region features are
random, since their values do not affect the speed. Everything is stored on the device, with one copy per image.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.bench.calibration import CalibrationCase
from holdfast.benchmarks.viscoll import paper
from holdfast.data.shifting import arranged
from holdfast.data.table import Column, Data, Shared, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.stepper import forget_earlier_runs
from holdfast.engine.watch import NoLog, Watch
from holdfast.errors import Stopped, UserError, nearest
from holdfast.settings import build
from holdfast.tasks import MaskedPhrase
from holdfast.types import Inputs, Protocol, Stage, Stream, Training

CASES: dict[str, tuple[str | None, dict[str, Any], float, float]] = {
    "vanilla": (None, {}, 59, 90),
    "er": ("replay", {"capacity": paper.MEMORY[1]}, 97, 180),
    "agem": ("agem", {"capacity": paper.MEMORY[1], "size": paper.CANDIDATES["coco"]}, 177, 240),
    "mir": ("mir", {"capacity": paper.MEMORY[1], "candidates": paper.CANDIDATES["coco"]}, 229, 360),
}
"""The algorithm, its settings, the minutes reported in the paper (Table 3), and the target in seconds."""
WARM = 300
"""The number of steps after which each method has reached its full speed, and memories have examples to replay."""


@dataclass(frozen=True)
class Size:
    """The size of the stream and of its examples."""

    examples: int = 639_592
    tasks: int = 80
    images: int = 20_000
    boxes: int = 36
    width: int = 2048
    words: int = 24
    places: int = 6
    vocabulary: int = 30_522


@dataclass(frozen=True)
class Pass:
    """One pass over the stream: its seconds, the seconds of its first steps, and its pace."""

    method: str
    seconds: float
    starting: float
    steps_a_second: float
    measured: bool
    """Whether the whole pass was timed; otherwise, its end is extrapolated from the part that was."""
    paper_minutes: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the pass meets its target."""
        return self.seconds <= self.limit


def passes(
    device: torch.device,
    *,
    steps: int | None = None,
    only: str = "",
    size: Size | None = None,
    model: str = "vlbert",
    warm: int = WARM,
    compiled: bool = True,
) -> list[Pass]:
    """Time each method over the whole stream, or over its first steps."""
    names = only.split(",") if only else list(CASES)
    for name in names:
        if name not in CASES:
            raise UserError(f"unknown method {name!r}: {nearest(name, CASES)}")
    size = size or Size()
    data, task, inputs, ids = _stream(size, device)
    total = -(-size.examples // paper.BATCH)
    timed = min(steps or total, total)
    if timed <= warm:
        raise UserError(f"{timed} steps are too few to be timed: the first {warm} do not count")
    found = []
    for name in names:
        registered, settings, minutes, limit = CASES[name]
        algorithms: list[Algorithm] = []
        if registered:
            algorithms = [build(registry.ALGORITHMS[registered].load(), settings, registered)]
        torch.manual_seed(0)
        network = registry.MODELS[model].load()().build(inputs, {task.head: task.reads})
        half = torch.bfloat16 if device.type == "cuda" else None
        forget_earlier_runs()
        learner = Learner(network, data, {task.name: task}, device=device, autocast=half, compiled=compiled)
        training = Training(batch_size=paper.BATCH, learning_rate=paper.RATE, shuffle=False)
        stream = Stream((Stage("stream", ids, training),), boundaries=False)
        clock = _StepTimer(device, warm, timed)
        with suppress(Stopped):  # raised when the timer stops the run
            train(learner, stream, algorithms, Protocol(()), log=NoLog(), watch=clock)
        pace = (timed - warm) / clock.rest
        seconds = clock.starting + (total - warm) / pace
        found.append(Pass(name, seconds, clock.starting, pace, timed == total, minutes, limit))
    return found


class _StepTimer(Watch):
    """Times the first steps, then those up to `last`, where it asks the run to stop."""

    def __init__(self, device: torch.device, warm: int, last: int) -> None:
        self.device, self.warm, self.last = device, warm, last
        self.began, self.starting, self.rest = time.perf_counter(), 0.0, 0.0

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        """Start the clock: the stream begins."""
        self.began = time.perf_counter()

    def step(self, stage_step: int, loss: Tensor) -> None:
        """Read the clock at the end of a part."""
        if stage_step in (self.warm, self.last):
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            now = time.perf_counter()
            if stage_step == self.warm:
                self.starting = now - self.began
            else:
                self.rest = now - self.began - self.starting
                self.stopping = True


def _stream(size: Size, device: torch.device) -> tuple[Data, MaskedPhrase, Inputs, np.ndarray[Any, Any]]:
    """The examples on the device, and their numbers in the order of the stream."""
    draw = torch.Generator(device).manual_seed(0)
    rows, inputs = size.examples, Inputs(text=size.words, vocabulary=size.vocabulary, regions=(size.boxes, size.width))

    def numbers(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=draw, device=device, dtype=torch.int32)

    image = numbers(0, size.images, rows).long()
    values = torch.empty(size.images, size.boxes, size.width, dtype=torch.float16, device=device)
    for start in range(0, size.images, 1000):  # drawing all at once would need three times the memory
        part = values[start : start + 1000]
        part.copy_(torch.rand(part.shape, generator=draw, device=device))
    corners = torch.rand(size.images, size.boxes, 4, generator=draw, device=device).sort(-1).values
    hidden = torch.arange(size.places, device=device) < numbers(1, size.places + 1, rows)[:, None]
    columns: dict[str, Column] = {
        "text": numbers(5, size.vocabulary, rows, size.words),
        "text_length": numbers(10, size.words + 1, rows),
        "masked": numbers(1, 9, rows, size.places).where(hidden, -1),
        "regions": Shared(values, image),
        "boxes": Shared(corners, image),
        "region_count": Shared(numbers(size.boxes // 2, size.boxes + 1, size.images), image),
    }
    targets = numbers(5, size.vocabulary, rows, size.places).where(hidden, -100)
    shares = 1 / np.arange(1, size.tasks + 1) ** 1.1
    tasks = np.random.default_rng(0).choice(size.tasks, rows, p=shares / shares.sum())
    _, tasks = np.unique(tasks, return_inverse=True)
    task = MaskedPhrase("phrases", "phrases", size.vocabulary, 0.0)
    return Data([Table("phrases", columns, targets)]), task, inputs, arranged(tasks)


CALIBRATION = tuple(
    CalibrationCase(
        f"phrases, {name}",
        f"viscoll:{name}",
        "log_perplexity",
        "offline",
        settings={"train.batch_size": 32},
        low=0.3,
        high=1.0,
    )
    for name in ("coco", "flickr")
)
"""Ten epochs in random order, in batches as large as the paper's."""
