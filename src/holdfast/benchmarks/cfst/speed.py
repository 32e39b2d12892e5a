"""The few-shot test of one mode: all tasks together, compared with one task after another, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from holdfast.benchmarks.cfst.fewshot import EPOCHS, RATE, TASKS, Draw, accuracies, draw, new_heads
from holdfast.models.resnet import ResNet18
from holdfast.types import Inputs

T = TypeVar("T")
LIMIT_RATIO = 20.0
CLASSES, EACH = 100, 100
"""The number of examples in one of CGQA's modes."""
TIMED_TASKS, TIMED_IMAGES = 3, 300
"""With the extractor, only this many sequential tasks are timed: all take equally long."""


@dataclass(frozen=True)
class TestTime:
    """Seconds for a test one task after another, and with all tasks together; the speed-up."""

    case: str
    one_by_one: float
    together: float
    times: float
    at_least: float | None


def _case(name: str, one_by_one: float, together: float, at_least: float | None = None) -> TestTime:
    return TestTime(name, one_by_one, together, one_by_one / together, at_least)


def one_by_one(
    features: Callable[[Tensor], Tensor], drawn: Draw, heads: tuple[Tensor, Tensor], tasks: int
) -> NDArray[np.float64]:
    """The accuracies of the first few-shot tasks by the plainest loop: a separate head and optimiser for each."""
    found = []
    for number in range(tasks):
        support, query = (torch.from_numpy(rows[number].reshape(-1)) for rows in (drawn.support, drawn.query))
        weight, bias = heads[0][number], heads[1][number]
        head = nn.Linear(weight.shape[1], weight.shape[0])
        head.load_state_dict({"weight": weight, "bias": bias})
        some = features(support[:1])
        head.to(some)
        known, asked = (targets.to(some.device) for targets in drawn.targets)
        optimiser = torch.optim.Adam(head.parameters(), lr=RATE)
        for _ in range(EPOCHS):
            optimiser.zero_grad()
            functional.cross_entropy(head(features(support)), known).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        with torch.no_grad():
            found.append((head(features(query)).argmax(1) == asked).double().mean().item())
    return np.array(found)


def fewshot(device: torch.device, *, tasks: int = TASKS, side: int = 32, channels: int = 64) -> list[TestTime]:
    """Time the heads alone, at the width of a ResNet-18, and the whole test with its extractor.

    In the sequential test, the frozen extractor runs in every step, as in plain code, or once per task.
    """
    random = np.random.default_rng(0)
    drawn = draw(np.repeat(np.arange(CLASSES), EACH), random, tasks=tasks)
    table = torch.randn(CLASSES * EACH, 8 * channels, generator=torch.Generator().manual_seed(0)).to(device)
    heads = new_heads(tasks, drawn.support.shape[1], table.shape[1], random)
    each = drawn.support[0].size + drawn.query[0].size

    def timed(work: Callable[[], T]) -> tuple[float, T]:
        work()  # once, to warm up
        _wait(device)
        began = time.perf_counter()
        found = work()
        _wait(device)
        return time.perf_counter() - began, found

    together, ours = timed(lambda: accuracies(table, drawn, heads))
    alone, plain = timed(lambda: one_by_one(lambda rows: table[rows.to(device)], drawn, heads, tasks))
    assert np.abs(ours - plain).mean() < 1e-3, "both agree, except for rounding in single precision"

    encoder = ResNet18(channels=channels).encoder(Inputs((3, side, side))).to(device).eval()
    images = torch.randint(256, (each, 3, side, side), dtype=torch.uint8, device=device)

    def extracted(rows: Tensor) -> Tensor:
        with torch.no_grad():
            found: Tensor = encoder({"image": images[rows.to(device) % each]})
        return found

    image = timed(lambda: extracted(torch.arange(TIMED_IMAGES)))[0] / TIMED_IMAGES
    whole = together + image * CLASSES * EACH
    every = timed(lambda: one_by_one(extracted, drawn, heads, TIMED_TASKS))[0] / TIMED_TASKS * tasks
    return [
        # For so small a problem a GPU waits for the host; a CPU is always busy, in either case.
        _case("heads alone", alone, together, LIMIT_RATIO if device.type == "cuda" else None),
        _case("extractor in every step", every, whole, LIMIT_RATIO),
        _case("extractor once a task", alone + tasks * each * image, whole),
    ]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
