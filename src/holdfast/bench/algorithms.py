"""The cost of a step of each algorithm relative to a step of plain fine-tuning, in one run."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog, Watch
from holdfast.models.base import Model
from holdfast.settings import build
from holdfast.tasks import Classify, MaskedPhrase
from holdfast.types import Inputs, Protocol, Stage, Stream, Task, Training

BATCH, PLACES, WARM = 32, 6, 12
CASES: dict[str, tuple[str, dict[str, Any], float | None]] = {
    "ewc": ("ewc", {"share": 0.05}, 1.15),
    "si": ("si", {}, None),
    "mas": ("mas", {"share": 0.05}, None),
    "replay": ("replay", {"capacity": 1000}, 2.1),
    "derpp": ("derpp", {"capacity": 200}, None),
    "agem": ("agem", {"capacity": 1000}, 2.7),
    "mir": ("mir", {"capacity": 1000}, 3.2),
    "lwf": ("lwf", {}, 1.6),
    "l2p": ("l2p", {}, 1.3),
    "coda-prompt": ("coda-prompt", {}, 1.3),
    "lora": ("lora", {}, 1.2),
    "o-lora": ("o-lora", {}, 1.2),
    "inflora": ("inflora", {"count": 256}, 1.2),
    "ties": ("ties", {}, 1.05),
    "magmax": ("magmax", {}, 1.05),
    "ease": ("ease", {}, 1.2),
}
"""The algorithm, its settings in this benchmark, and the maximum ratio of its step time to that of fine-tuning."""
OF_CLASSES = ("ease",)
"""These algorithms need classes instead of phrases, and are compared with fine-tuning on classes."""
CLASSES = 20


@dataclass(frozen=True)
class Cost:
    """Milliseconds per step, and the ratio to fine-tuning."""

    algorithm: str
    milliseconds: float
    ratio: float
    bar: float | None


class _SecondStageTimer(Watch):
    """Times the steps of the second stage: in the first, many algorithms have nothing to do yet.

    One thread of a CPU is timed by its processor time, which other processes hardly change.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.second = device, False
        alone = device.type == "cpu" and torch.get_num_threads() == 1
        self.clock = time.process_time if alone else time.perf_counter
        self.began = self.seconds = 0.0
        self.steps = 0

    def stage(self, index: int, stages: int, stage: Stage, steps: int) -> None:
        self.second, self.steps = index == 1, steps

    def step(self, stage_step: int, loss: Tensor) -> None:
        if self.second and stage_step in (WARM, self.steps):
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            self.seconds, self.began = self.clock() - self.began, self.clock()


def algorithms(device: torch.device, steps: int = 60, repeats: int = 3, compiled: bool | None = None) -> list[Cost]:
    """Time each case and fine-tuning alternately, several times over, and take the median."""
    tiny = device.type == "cpu"
    inputs = Inputs(text=24, vocabulary=2000 if tiny else 30522, regions=(10, 128) if tiny else (36, 2048))
    compiled, half = not tiny if compiled is None else compiled, None if tiny else torch.bfloat16
    torch.manual_seed(0)
    columns = _columns(inputs, 2 * steps * BATCH)
    recipe = registry.MODELS["vlbert-tiny" if tiny else "vlbert"].load()()
    rigs = [_Rig(recipe, inputs, columns, task, steps, device, compiled, half) for task in _tasks(inputs)]
    makes: dict[str, Callable[[], list[Algorithm]]] = {}
    for name, (registered, settings, _) in CASES.items():
        kind = registry.ALGORITHMS[registered].load()
        makes[name] = lambda kind=kind, settings=settings, name=name: [build(kind, settings, name)]  # type: ignore[misc]
    found: dict[str, list[float]] = {name: [] for name in ("finetune", "", *makes)}
    for _ in range(repeats):
        found["finetune"].append(rigs[0].seconds(list))
        for name, make in makes.items():
            if name in OF_CLASSES:
                found[""].append(rigs[1].seconds(list))
            found[name].append(rigs[name in OF_CLASSES].seconds(make))
    median = {name: statistics.median(times) for name, times in found.items()}
    costs = [Cost("finetune", 1e3 * median["finetune"], 1.0, None)]
    for name, (_, _, bar) in CASES.items():
        costs.append(
            Cost(name, 1e3 * median[name], median[name] / median["" if name in OF_CLASSES else "finetune"], bar)
        )
    return costs


class _Rig:
    """One kind of task, with a model for all algorithms that add nothing to it.

    A learner outlives them: what is prepared for it is shared.
    """

    def __init__(
        self,
        recipe: Model,
        inputs: Inputs,
        columns: Mapping[str, Tensor],
        task: Task,
        steps: int,
        device: torch.device,
        compiled: bool,
        half: torch.dtype | None,
    ) -> None:
        self.task, self.steps, self.device = task, steps, device
        rows = len(columns["text"])
        shape = (rows,) if isinstance(task, Classify) else (rows, PLACES)
        targets = torch.randint(5, task.reads.outputs, shape, generator=torch.Generator().manual_seed(1))
        self.data = Data([Table(task.name, columns, targets)]).to(device)
        self.model = recipe.build(inputs, {task.head: task.reads}).to(device)
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.how: dict[str, Any] = {"device": device, "autocast": half, "compiled": compiled}
        self.keeper = Learner(self.model, self.data, {task.name: task}, **self.how)

    def seconds(self, make: Callable[[], list[Algorithm]]) -> float:
        """The time of a step in the second stage."""
        self.keeper.model.load_state_dict(self.start)
        chosen = make()
        adds = any("blocks" in algorithm.needs for algorithm in chosen)
        own = copy.deepcopy(self.model) if adds else self.model
        learner = Learner(own, self.data, {self.task.name: self.task}, **self.how)
        training = Training(batch_size=BATCH, learning_rate=1e-4)
        ids = np.arange(len(self.data), dtype=np.int64)
        stages = tuple(Stage(str(i), part, training) for i, part in enumerate(np.split(ids, 2)))
        clock = _SecondStageTimer(self.device)
        train(learner, Stream(stages), chosen, Protocol(()), log=NoLog(), watch=clock)
        return clock.seconds / (self.steps - WARM)


def _tasks(inputs: Inputs) -> tuple[Task, Task]:
    phrases = MaskedPhrase("words", "words", inputs.vocabulary, 0.0)
    return phrases, Classify("classes", "classes", CLASSES, 1 / CLASSES)


def _columns(inputs: Inputs, rows: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(0)
    assert inputs.regions is not None
    boxes, width = inputs.regions
    return {
        "text": torch.randint(5, inputs.vocabulary, (rows, inputs.text), dtype=torch.int32, generator=draw),
        "text_length": torch.randint(8, inputs.text + 1, (rows,), dtype=torch.int32, generator=draw),
        "regions": torch.rand(rows, boxes, width, generator=draw).to(torch.float16),
        "boxes": torch.rand(rows, boxes, 4, generator=draw).sort(-1).values,
        "region_count": torch.full((rows,), boxes, dtype=torch.int32),
        "masked": torch.randint(1, 7, (rows, PLACES), generator=draw),
    }
