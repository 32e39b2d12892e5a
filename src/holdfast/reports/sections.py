"""Benchmarks' own sections of a report, in their papers' layout: one function for each family of benchmarks.

A section is `(records) -> blocks`, from records alone and without torch. It is given the records of its own family,
whatever their scale, model and settings, and says with each of its tables what is not comparable. To add one, write
`reports/<family>.py` with a function `section`, and name it here.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from holdfast.experiments.store import Record
from holdfast.reports.blocks import Block, Note

FAMILIES = ("cfst", "climb", "clvqa", "viscoll")
WITHIN = ("climb:lowshot",)
"""Benchmarks whose runs make sense in their family's section alone: none is an experiment of its own."""


def section(family: str, records: Sequence[Record]) -> list[Block]:
    """The blocks of a family's own section; none where it has no section.

    What goes wrong in one is said in its place, and costs the report nothing else.

    >>> section("patterns", [])
    []
    """
    if family not in FAMILIES or not records:
        return []
    try:
        return list(importlib.import_module(f"holdfast.reports.{family}").section(records))
    except Exception as error:  # a foreign record may lack anything
        return [Note(f"The section on {family} could not be made: {type(error).__name__}: {error}", problem=True)]
