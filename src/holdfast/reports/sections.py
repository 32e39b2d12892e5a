"""A benchmark's own section of a report, in its paper's layout.

A section is `section(records) -> blocks`, in `report.py` of the benchmark's folder: it uses records alone, without
torch. It receives the records of its own family, whatever their scale, model and settings, and states with each of its
tables what is not comparable.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast import registry
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Block, Note


def section(family: str, records: Sequence[Record]) -> list[Block]:
    """The blocks of a family's own section; none if it has no section.

    An error in one section is reported in its place and leaves the rest of the report as it is.

    >>> section("patterns", [])
    []
    """
    if not records or (own := registry.part(family, "report")) is None:
        return []
    try:
        return list(own.section(records))
    except Exception as error:  # an external record may lack anything
        return [Note(f"The section on {family} could not be made: {type(error).__name__}: {error}", problem=True)]


def stands_alone(benchmark: str) -> bool:
    """Whether runs of a benchmark are an experiment of their own, rather than a part of their family's section."""
    return benchmark not in registry.BENCHMARKS or not registry.BENCHMARKS[benchmark].within
