"""Continual learning of vision and language, measured.

Importing this imports no torch; `run`, `load`, `Algorithm` and the modules below are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from holdfast.errors import RunError, UserError
from holdfast.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast import metrics, papers
    from holdfast.algorithms.base import Algorithm
    from holdfast.experiments.store import Record
    from holdfast.reports.runs import load

__all__ = ["Algorithm", "RunError", "UserError", "__version__", "load", "metrics", "papers", "run"]


def run(
    benchmark: str = "patterns",
    algorithm: str = "finetune",
    *,
    out: str | Path = "runs",
    device: str = "cpu",
    needs: bool = True,
    **request: Any,
) -> Record:
    """Carry out one run, or go on with it, or return its record if it is done: `holdfast run` from Python.

    The runs that its measures are taken against, such as CLiMB's direct fine-tuning, are carried out as well where the
    store does not have them; `needs=False` leaves them out, as `--no-needs` does. Nothing is printed. Ctrl-C saves
    before it is raised. `request` takes the other words of the command: model, scale, setting, order, seed, precision,
    predictions, threads, and settings={"replay.capacity": 50}.

    >>> import tempfile
    >>> record = run("patterns", "replay", scale="tiny", out=tempfile.mkdtemp(), settings={"benchmark.stages": 2})
    >>> record.algorithm, sorted(record.summary)[:2]
    ('replay', ['backward_transfer', 'final_accuracy'])
    """
    from holdfast.experiments.carry import run_one
    from holdfast.experiments.local import Options
    from holdfast.experiments.request import Request
    from holdfast.experiments.store import Store
    from holdfast.settings import fields

    if unknown := sorted(set(request) - set(fields(Request))):
        from holdfast.errors import nearest

        raise UserError(f"run() takes no {unknown[0]!r}: {nearest(unknown[0], fields(Request))}")
    return run_one(Request(benchmark, algorithm, **request), Store(out), Options(device), needs=needs)


def __getattr__(name: str) -> Any:
    if name in ("metrics", "papers"):
        return importlib.import_module(f"holdfast.{name}")
    if name == "Algorithm":
        return importlib.import_module("holdfast.algorithms.base").Algorithm
    if name == "load":
        return importlib.import_module("holdfast.reports.runs").load
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
