"""How the measures of a record are shown, without executing code of its benchmark."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast import registry
from holdfast.benchmarks.base import Measure
from holdfast.experiments.store import Record


def measures(record: Record) -> Mapping[str, Measure]:
    """The measures of a record's benchmark: this version's for built-in benchmarks, the record's own for others.

    So old records of built-in benchmarks look like new ones, and reading a store executes none of its runs' code.
    """
    protocol = registry.part(record.config["benchmark"]["name"], "protocol")
    found: Mapping[str, Measure] = getattr(protocol, "MEASURES", {})
    return found or {name: Measure.from_json(value) for name, value in record.measures.items()}
