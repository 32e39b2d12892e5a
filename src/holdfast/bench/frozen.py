"""Training with a frozen encoder, or with frozen lower layers, whose outputs are computed once or at every step.

The model is a ViLT of twelve layers at a quarter of the published width, over images of 96 pixels and texts of 16 word
pieces. Its weights and its inputs are random, since values do not affect the speed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.frozen import FrozenBottom, FrozenEncoder
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.once import Keep
from holdfast.engine.watch import NoLog
from holdfast.models.vilt import Vilt
from holdfast.tasks import Classify
from holdfast.types import Head, Inputs, Protocol, Stage, Stream, Training

MODEL = Vilt(width=192, depth=12, heads=4, hidden=768, patch=16, side=96)
INPUTS = Inputs((3, 96, 96), text=16, vocabulary=1000)
CLASSES, EPOCHS, BATCH = 10, 8, 32
TASK = Classify("speed", "speed", CLASSES, 1 / CLASSES)
CASES: dict[str, tuple[Algorithm, float]] = {
    "encoder": (FrozenEncoder(), 5.0),
    "9 of 12 layers": (FrozenBottom(k=9), 2.2),
}
"""What is frozen, and the target: how many times faster training should be if its outputs are computed once."""


@dataclass(frozen=True)
class FrozenTimes:
    """Seconds of training with the frozen part computed at every step, once, or by an earlier run.

    They are medians over interleaved repetitions; on a CPU of processor time, which other processes do not change.
    """

    case: str
    anew: float
    once: float
    again: float
    """For another run with the same frozen weights and data, such as another seed or algorithm."""
    ratio: float
    """How many times faster `once` is than `anew`: the median of the repetitions' ratios."""
    later: float
    """How many times faster `again` is than `anew`: the median of the repetitions' ratios."""
    limit: float
    difference: float
    """The largest difference between the outputs of the trained models, relative to the largest output."""


def frozen(examples: int, repeats: int, place: torch.device) -> list[FrozenTimes]:
    """Time both cases; filling a table is part of the measured time."""
    draw = torch.Generator().manual_seed(0)
    image = torch.randint(256, (examples, *(INPUTS.image or ())), generator=draw, dtype=torch.uint8)
    text = torch.randint(1, INPUTS.vocabulary, (examples, INPUTS.text), generator=draw, dtype=torch.int32)
    targets = torch.randint(CLASSES, (examples,), generator=draw)
    data = Data([Table(TASK.name, {"image": image, "text": text}, targets)]).to(place)
    training = Training(epochs=EPOCHS, batch_size=BATCH, learning_rate=1e-4)
    stream = Stream((Stage(TASK.name, np.arange(examples), training),))

    clock = time.perf_counter if place.type == "cuda" else time.process_time

    def trained(algorithm: Algorithm, folder: Path | None) -> tuple[float, Tensor]:
        torch.manual_seed(0)
        model = MODEL.build(INPUTS, {TASK.head: Head("classify", CLASSES)})
        keep = None if folder is None else Keep("bench", lambda name, title, size: folder / name)
        learner = Learner(model, data, {TASK.name: TASK}, device=place, keep=keep)
        start = clock()
        train(learner, stream, [algorithm], Protocol(()), log=NoLog())
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        seconds = clock() - start
        model.eval()
        with torch.no_grad():
            return seconds, learner.forward(data.fetch(np.arange(min(examples, BATCH)), place))[0]

    found = []
    for case, (algorithm, limit) in CASES.items():
        times: list[tuple[float, float, float]] = []
        for _ in range(repeats + 1):  # the first round is a warm-up
            with tempfile.TemporaryDirectory() as folder:
                anew, expected = trained(algorithm, None)
                once, output = trained(algorithm, Path(folder))
                again, _ = trained(algorithm, Path(folder))
            times.append((anew, once, again))
        anew, once, again = (statistics.median(row[column] for row in times[1:]) for column in range(3))
        ratio, later = (statistics.median(row[0] / row[column] for row in times[1:]) for column in (1, 2))
        difference = float((output - expected).abs().max() / expected.abs().max())
        found.append(FrozenTimes(case, anew, once, again, ratio, later, limit, difference))
    return found
