"""How the measures of a record are shown, without any code of its benchmark."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast import registry
from holdfast.benchmarks.base import Measure
from holdfast.experiments.store import Record


def measures(record: Record) -> Mapping[str, Measure]:
    """The measures of a record's benchmark: of a built-in one as this version has them, of another as the record says.

    So old records of ours are shown as new ones are, and reading a store executes nothing of its runs.
    """
    protocol = registry.part(record.config["benchmark"]["name"], "protocol")
    found: Mapping[str, Measure] = getattr(protocol, "MEASURES", {})
    return found or {name: Measure.from_json(value) for name, value in record.measures.items()}
