"""The overhead of the training loop relative to the barest PyTorch loop, on the same model and data, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.replay import Replay
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog
from holdfast.models.base import Model
from holdfast.models.module import of
from holdfast.models.perceptron import Perceptron
from holdfast.tasks import Classify
from holdfast.types import Head, Inputs, Protocol, Stage, Stream, Training

LIMIT_MS = 0.15
MODULE_LIMIT_MS = 0.2
"""For an external module."""
EXAMPLES = 4096
BATCH = 32
SHAPE = (3, 16, 16)
CLASSES = 10
CPU = torch.device("cpu")


@dataclass(frozen=True)
class StepOverhead:
    """Milliseconds per step: the barest loop, this library, and the difference; medians over interleaved repeats."""

    case: str
    bare_ms: float
    ours_ms: float
    extra_ms: float
    limit_ms: float = LIMIT_MS


def overhead(steps: int = 256, repeats: int = 25, place: torch.device = CPU) -> list[StepOverhead]:
    """Measure fine-tuning, replay compared with a bare loop over the larger batch, and an external module.

    The bare loop calls that module itself, with pixels as numbers from 0 to 1, and a linear layer.
    """
    rest = steps, repeats, place
    return [
        _compare("finetune", Perceptron(width=128, depth=2), [], BATCH, *rest),
        _compare("replay", Perceptron(width=128, depth=2), [Replay(capacity=500)], 2 * BATCH, *rest),
        _compare("module", of(_module), [], BATCH, *rest),
    ]


def _module() -> nn.Module:
    """An equivalent of `Perceptron`, as a user might write it."""
    sizes = [SHAPE[0] * SHAPE[1] * SHAPE[2], 128, 128, 128]
    layers = [nn.Sequential(nn.Linear(before, after), nn.ReLU()) for before, after in pairwise(sizes)]
    return nn.Sequential(nn.Flatten(), *layers)


class Bare(nn.Module):
    """A user's module with a linear layer, called in the usual way."""

    def __init__(self) -> None:
        super().__init__()
        self.module, self.head = _module(), nn.Linear(128, CLASSES)

    def forward(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The logits."""
        out: Tensor = self.head(self.module(inputs["image"].float().div(255)))
        return out


def _compare(
    case: str,
    recipe: Model,
    algorithms: list[Algorithm],
    bare_batch: int,
    steps: int,
    repeats: int,
    place: torch.device,
) -> StepOverhead:
    images = torch.randint(0, 256, (EXAMPLES, *SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    targets = torch.randint(0, CLASSES, (EXAMPLES,), generator=torch.Generator().manual_seed(1))
    images, targets = images.to(place), targets.to(place)
    task = Classify("speed", "speed", CLASSES, 1 / CLASSES)
    data = Data([Table("speed", {"image": images}, targets)])
    training = Training(epochs=-(-steps * BATCH // EXAMPLES), batch_size=BATCH)
    stream = Stream((Stage("speed", np.arange(EXAMPLES), training),))
    done = training.epochs * (EXAMPLES // BATCH)

    def model(alone: bool = False) -> nn.Module:
        torch.manual_seed(0)
        if alone and case == "module":
            return Bare().to(place)
        return recipe.build(Inputs(SHAPE), {"speed": Head("classify", CLASSES)}).to(place)

    def bare() -> None:
        net = model(alone=True)
        optimiser = torch.optim.AdamW(net.parameters(), lr=training.learning_rate, weight_decay=0.0, fused=True)
        for _ in range(training.epochs):
            order = torch.randint(EXAMPLES, (done // training.epochs, bare_batch)).to(place)
            for rows in order:
                optimiser.zero_grad()
                loss = functional.cross_entropy(net({"image": images[rows]}, "speed"), targets[rows])
                torch.autograd.backward(loss)
                optimiser.step()

    def ours() -> None:
        net = model()
        train(Learner(net, data, {"speed": task}, device=place), stream, algorithms, Protocol(()), log=NoLog())  # type: ignore[arg-type]

    times = {"bare": [], "ours": []}  # type: dict[str, list[float]]
    for _ in range(repeats + 1):  # the first round is a warm-up
        times["bare"].append(_milliseconds(bare, done, place))
        times["ours"].append(_milliseconds(ours, done, place))
    bare_ms, ours_ms = (statistics.median(times[name][1:]) for name in ("bare", "ours"))
    extra = statistics.median(o - b for o, b in zip(times["ours"][1:], times["bare"][1:], strict=True))
    return StepOverhead(case, bare_ms, ours_ms, extra, MODULE_LIMIT_MS if case == "module" else LIMIT_MS)


def _milliseconds(work: Callable[[], None], steps: int, place: torch.device) -> float:
    start = time.perf_counter()
    work()
    if place.type == "cuda":
        torch.cuda.synchronize(place)
    return 1000 * (time.perf_counter() - start) / steps
