"""How the measures of a record are shown, without executing code of its benchmark."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast import registry
from holdfast.benchmarks.base import Measure
from holdfast.experiments.store import Record

AREA = "anytime_area"
"""The measure that every run with a budget has."""


def measures(record: Record) -> Mapping[str, Measure]:
    """The measures of a record's benchmark: this version's for built-in benchmarks, the record's own for others.

    So old records of built-in benchmarks look like new ones, and reading a store executes none of its runs' code.
    """
    protocol = registry.part(record.config["benchmark"]["name"], "protocol")
    found: Mapping[str, Measure] = getattr(protocol, "MEASURES", {})
    return {**(found or {name: Measure.from_json(value) for name, value in record.measures.items()}), **area(record)}


def area(record: Record) -> Mapping[str, Measure]:
    """How the area below a run's curve of scores against its budget is shown: in percent if its scores are shares."""
    if AREA not in record.summary:
        return {}
    shares = scores_are_shares(record)
    return {AREA: Measure("anytime", higher=True, factor=100.0 if shares else 1.0, decimals=1 if shares else 3)}


def scores_are_shares(record: Record) -> bool:
    """Whether the scores of a run are shown in percent."""
    return all(0 <= score.score <= 1 for score in record.scores if score.split == "test" and "/" not in score.name)
