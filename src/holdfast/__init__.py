"""Continual learning of vision and language, measured.

| | |
|---|---|
| functions | `run`, `plan`, `train`, `evaluate`, `load`, `report` |
| to extend | `Algorithm`, `Benchmark`, `Model`, `Task`, `Memory`, `Tracker` |
| what these see | `Stage`, `Stream`, `Training`, `Learner`, `Measure`, `Between` |
| results, errors | `Record`, `Runs`, `UserError`, `RunError` |
| modules | `algorithms`, `models`, `streams`, `tasks`, `memory`, `metrics`, `papers` |

Everything else is private. Importing this imports no torch: each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from holdfast.errors import RunError, UserError
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast import algorithms, memory, metrics, models, papers, streams, tasks
    from holdfast.algorithms.base import Algorithm
    from holdfast.api import evaluate, plan, report, run, train
    from holdfast.benchmarks.base import Benchmark, Measure
    from holdfast.engine.learner import Learner
    from holdfast.experiments.store import Record
    from holdfast.experiments.trackers import Tracker
    from holdfast.memory.base import Memory
    from holdfast.models.base import Model
    from holdfast.reports.runs import Runs, load
    from holdfast.types import Between, Stage, Stream, Task, Training

_PLACES = {
    "Algorithm": "algorithms.base",
    "Benchmark": "benchmarks.base",
    "Between": "types",
    "Learner": "engine.learner",
    "Measure": "benchmarks.base",
    "Memory": "memory.base",
    "Model": "models.base",
    "Record": "experiments.store",
    "Runs": "reports.runs",
    "Stage": "types",
    "Stream": "types",
    "Task": "types",
    "Tracker": "experiments.trackers",
    "Training": "types",
    "evaluate": "api",
    "load": "reports.runs",
    "plan": "api",
    "report": "api",
    "run": "api",
    "train": "api",
}
_ROOMS = ("algorithms", "memory", "metrics", "models", "papers", "streams", "tasks")

__all__ = [
    "Algorithm",
    "Benchmark",
    "Between",
    "Learner",
    "Measure",
    "Memory",
    "Model",
    "Record",
    "RunError",
    "Runs",
    "Stage",
    "Stream",
    "Task",
    "Tracker",
    "Training",
    "UserError",
    "__version__",
    "algorithms",
    "evaluate",
    "load",
    "memory",
    "metrics",
    "models",
    "papers",
    "plan",
    "report",
    "run",
    "streams",
    "tasks",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"holdfast.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"holdfast.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
