"""What the goldens are measured on: two small streams, and numbers that tell two models apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from holdfast.benchmarks.base import Setup
from holdfast.data.table import Data, Table
from holdfast.models.bert import Bert
from holdfast.tasks import (
    Choose,
    Classify,
    Generate,
    MaskedPhrase,
    MultiLabel,
    Prompted,
    Prompts,
    References,
    Retrieve,
    SoftLabel,
)
from holdfast.types import Array, EvaluationSet, Inputs, Protocol, Stage, Stream, Task, Training
from smallest import Ready, prepare, request, trained

Values = dict[str, list[float]]


class Outcome(NamedTuple):
    """What was measured, and with which versions of which parts."""

    parts: Mapping[str, int]
    values: Values


PROJECTIONS = 4
PICTURES = {"benchmark__stages": 3, "train__epochs": 2, "train__batch_size": 20}
VOCABULARY, LENGTH, ROWS = 30, 6, 24
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        SoftLabel("soft", "soft", 5, 0.2, prior=0.5),
        MultiLabel("labels", "labels", 4, 0.5),
        Choose("choose", "choose", 3, 1 / 3),
        Classify("classify", "classify", 4, 0.25),
    )
}
PROMPTS = Prompts(np.ones((4, 1, 3), np.int32), np.full((4, 1), 3, np.int32))
PAIRS: tuple[Task, ...] = (
    Prompted("own", "pairs", 4, 0.25, PROMPTS, 0, 4),
    Prompted("all", "pairs", 4, 0.25, PROMPTS, 1, 2, candidates="all"),
    Retrieve("softmax", "pairs", 4, 0.1),
    Retrieve("sigmoid", "pairs", 4, 0.1, pairing="sigmoid"),
)
PHRASES: dict[str, Task] = {"phrase": MaskedPhrase("phrase", "phrase", VOCABULARY, 0.0)}


class Numbers:
    """A language whose words are the numbers of tokens."""

    def texts(self, tokens: Array) -> list[str]:
        return [" ".join(str(token) for token in row if token >= 0) for row in tokens.tolist()]


WRITTEN = Generate("written", "text", VOCABULARY, 0.0, Numbers(), References([["7 5"], ["6", "8"]]), longest=3)


@contextmanager
def exactly() -> Iterator[None]:
    """Draw weights in float64 from the start: the draws of float32 differ in the last digit between CPUs."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def tensors(found: Iterable[Tensor]) -> Values:
    """The norm of many tensors, and fixed random projections of all of their numbers."""
    flat = torch.cat([torch.zeros(1), *(each.detach().double().flatten().cpu() for each in found)]).numpy()
    norm = float(np.linalg.norm(flat))
    drawn = np.random.default_rng(17).standard_normal((PROJECTIONS, len(flat)))
    return {"norm": [norm], "projections": (drawn @ flat).tolist()}


def model_values(model: torch.nn.Module) -> Values:
    return tensors(weight for weight in model.state_dict().values() if weight.is_floating_point())


def on_pictures(algorithm: str, settings: Mapping[str, Any]) -> Outcome:
    """Train on `patterns`."""
    with exactly():
        return _trained(prepare(request(algorithm, **{**PICTURES, **settings})))


def on_texts(algorithm: str, settings: Mapping[str, Any], tasks: Mapping[str, Task]) -> Outcome:
    """Train a small text model on one stage for each task, or on two where there is only one."""
    ready = prepare(request(algorithm, **{**settings, "model.width": 16}))
    training = replace(ready.setup.stream.stages[0].training, epochs=1, batch_size=8)
    recipe = Bert(width=8, depth=2, heads=2, hidden=12, positions=LENGTH, dropout=0.0)
    with exactly():
        return _trained(replace(ready, recipe=recipe, setup=texts(tasks, training)))


def texts(tasks: Mapping[str, Task], training: Training) -> Setup:
    """Random texts with random answers."""
    random, chosen = np.random.default_rng(5), list(tasks.values()) * (1 if len(tasks) > 1 else 2)
    tables = [table_of(task, random) for task in tasks.values()]
    if len(tables) < len(chosen):
        tables = [table_of(chosen[0], random, ROWS * len(chosen))]
    parts = np.arange(ROWS * len(chosen)).reshape(len(chosen), ROWS)
    sets = [
        EvaluationSet(f"{task.name}-{number}", task.name, "test", ids)
        for number, (task, ids) in enumerate(zip(chosen, parts, strict=True))
    ]
    stages = [Stage(each.name, each.ids, training, (replace(each, split="validation"),)) for each in sets]
    inputs = Inputs(text=LENGTH, vocabulary=VOCABULARY)
    return Setup(Data(tables), tasks, Stream(tuple(stages)), Protocol(tuple(sets), initial=True), inputs)


def table_of(task: Task, random: np.random.Generator, rows: int = ROWS) -> Table:
    shape = (rows, task.outputs, LENGTH) if isinstance(task, Choose) else (rows, LENGTH)
    columns = {
        "text": torch.from_numpy(random.integers(5, VOCABULARY, shape)),
        "text_length": torch.from_numpy(random.integers(2, LENGTH + 1, shape[:-1])),
    }
    if isinstance(task, SoftLabel):
        answers, scores = random.integers(0, task.outputs, (rows, 2)), random.random((rows, 2)).round(1)
        answers[::3, 1], scores[::3, 1] = -1, 0
        targets = torch.from_numpy(np.stack([answers.astype(float), scores], axis=1)).float()
    elif isinstance(task, MultiLabel):
        targets = torch.from_numpy(random.integers(0, 2, (rows, task.outputs)).astype(np.uint8))
    elif isinstance(task, MaskedPhrase):
        columns["masked"] = torch.from_numpy(np.tile([0, 1], (rows, 1)))
        columns["masked"][::4, 1] = -1
        targets = torch.from_numpy(random.integers(5, 12, (rows, 2)))
        targets[::4, 1] = -100
    elif isinstance(task, Generate):
        columns["answer"] = torch.from_numpy(random.integers(0, task.outputs, (rows, task.longest)))
        columns["answer"][::4, 1:] = -1
        targets = torch.from_numpy(random.integers(0, len(task.references), rows))
    else:
        targets = torch.from_numpy(random.integers(0, task.outputs, rows))
    return Table(task.name, columns, targets)


def _trained(ready: Ready) -> Outcome:
    learner, log = trained(ready)
    scores = {"scores": [score.score for score in log.scores]}
    return Outcome(ready.config.parts, scores | model_values(learner.model))
