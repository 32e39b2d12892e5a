"""What a plan costs: from the records of like runs, the seconds that a run will take."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from holdfast.experiments.config import check
from holdfast.experiments.plan import Node, Plan
from holdfast.experiments.store import Store, algorithm_of

Kind = tuple[str, str, str, str]
"""A benchmark, its scale, a model and an algorithm: runs that are alike in these take about as long."""


@dataclass(frozen=True)
class Line:
    """The runs of one kind in a plan: how many, how many of them are done, and the seconds of one, if known."""

    kind: Kind
    runs: int
    done: int
    seconds: float | None


def expected(store: Store) -> dict[Kind, float]:
    """The median seconds of the runs of each kind that the store has done."""
    seconds: dict[Kind, list[float]] = {}
    for path in store.path.glob("*/record.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            config = record["config"]
            kind = _kind(config["benchmark"], config["model"]["name"], algorithm_of(config))
            if math.isfinite(taken := record["cost"]["seconds"]):
                seconds.setdefault(kind, []).append(taken)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue  # a foreign or broken record tells nothing
    return {kind: median(values) for kind, values in seconds.items()}


def lines(plan: Plan, store: Store) -> list[Line]:
    """The runs of a plan by kind, in the order of their first."""
    done, known = plan.done(store), expected(store)
    groups: dict[Kind, list[Node]] = {}
    for node in plan.nodes.values():
        groups.setdefault(kind_of(node), []).append(node)
    return [
        Line(kind, len(nodes), sum(node.id in done for node in nodes), known.get(kind))
        for kind, nodes in groups.items()
    ]


def kind_of(node: Node) -> Kind:
    """The kind of a run that is still to be made."""
    checked = check(node.request)
    scale = {"scale": getattr(node.benchmark, "scale", "")}
    return _kind({"name": checked.names["benchmark"], **scale}, checked.names["model"], checked.title)


def _kind(benchmark: Mapping[str, Any], model: str, algorithm: str) -> Kind:
    return benchmark["name"], str(benchmark.get("scale", "")), model, algorithm
