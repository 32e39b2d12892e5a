"""The cost of a plan: the seconds that its runs will take, estimated from records of similar runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from holdfast.experiments.config import Config
from holdfast.experiments.plan import Plan
from holdfast.experiments.store import Store, algorithm_of, read_json

Kind = tuple[str, str, str, str]
"""A benchmark, its scale, a model and an algorithm: runs that are alike in these take about as long."""


@dataclass(frozen=True)
class CostLine:
    """The runs of one kind in a plan: how many, how many of them are done, and the seconds of one, if known."""

    kind: Kind
    runs: int
    done: int
    seconds: float | None


def expected(store: Store) -> dict[Kind, float]:
    """The median seconds of the finished runs of each kind in the store."""
    seconds: dict[Kind, list[float]] = {}
    for path in store.path.glob("*/record.json"):
        try:
            record = read_json(path)
            config = record["config"]
            kind = _kind(config["benchmark"], config["model"]["name"], algorithm_of(config))
            if math.isfinite(taken := record["cost"]["seconds"]):
                seconds.setdefault(kind, []).append(taken)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue  # a foreign or broken record says nothing about cost
    return {kind: median(values) for kind, values in seconds.items()}


def lines(plan: Plan, store: Store) -> list[CostLine]:
    """The runs of a plan by kind, in order of first occurrence."""
    done, known = plan.done(store), expected(store)
    groups: dict[Kind, list[str]] = {}
    for run, config in plan.configs.items():
        groups.setdefault(kind_of(config), []).append(run)
    return [
        CostLine(kind, len(runs), sum(run in done for run in runs), known.get(kind)) for kind, runs in groups.items()
    ]


def kind_of(config: Config) -> Kind:
    """The kind of a run that is not done yet."""
    scale = {"scale": getattr(config.benchmark, "scale", "")}
    return _kind({"name": config.names["benchmark"], **scale}, config.names["model"], config.title)


def _kind(benchmark: Mapping[str, Any], model: str, algorithm: str) -> Kind:
    return benchmark["name"], str(benchmark.get("scale", "")), model, algorithm
