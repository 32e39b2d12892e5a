"""A benchmark's own section of a report, in its paper's layout.

A section is `section(records) -> blocks`, in `report.py` of the benchmark's folder: it uses records alone, without
torch. It receives the records of its own family, whatever their scale, model and settings, and states with each of its
tables what is not comparable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from holdfast import registry
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Bars, Block, Curves, Note, TableBlock


def section(family: str, records: Sequence[Record]) -> list[Block]:
    """The blocks of a family's own section; none if it has no section.

    An error in one section is reported in its place and leaves the rest of the report as it is.

    >>> section("patterns", [])
    []
    """
    if not records or (own := registry.part(family, "report")) is None:
        return []
    try:
        return [registered(block) for block in own.section(records)]
    except Exception as error:  # an external record may lack anything
        return [Note(f"The section on {family} could not be made: {type(error).__name__}: {error}", problem=True)]


def registered(block: Block) -> Block:
    """A block that calls each algorithm by its registered name, with the paper's name in brackets once in a table.

    >>> from holdfast.reports.blocks import Cell
    >>> rows = tuple((Cell(text),) for text in ("SeqFT", "ER: after vqav2", "ER: after nlvr2"))
    >>> [row[0].text for row in registered(TableBlock("Table 5", ("",), rows)).rows]
    ['finetune (SeqFT)', 'replay (ER): after vqav2', 'replay: after nlvr2']
    """
    if isinstance(block, Curves | Bars):
        return replace(block, series=tuple(replace(each, name=_renamed(each.name)) for each in block.series))
    if not isinstance(block, TableBlock):
        return block
    told: set[str] = set()
    rows = tuple((replace(row[0], text=_renamed(row[0].text, told)), *row[1:]) for row in block.rows)
    notes = tuple(_renamed(note) if ": not marked" in note else note for note in block.notes)
    return replace(block, rows=rows, notes=notes)


def _renamed(text: str, told: set[str] | None = None) -> str:
    """A text with registered names; `told` has the papers' names that were given, and None gives none."""

    def name(found: re.Match[str]) -> str:
        own = _registered(found[0].lower())
        if own == found[0].lower() or told is None or own in told:
            return found[0] if own == found[0].lower() else own
        told.add(own)
        return f"{own} ({found[0]})"

    return re.sub(r"[A-Za-z][\w-]*", name, text)


def _registered(word: str) -> str:
    """The registered name behind a paper's, which a row may extend: er-text-only."""
    names = _names()
    stem = next((each for each in sorted(names, key=len, reverse=True) if word.startswith(f"{each}-")), "")
    if word in names or not stem or word in registry.ALGORITHMS:
        return names.get(word, word)
    return names[stem] + word.removeprefix(stem)


@cache
def _names() -> dict[str, str]:
    """The papers' names of algorithms, with the registered ones."""
    found: dict[str, str] = {}
    for table in (registry.ALGORITHMS, registry.PLAIN, registry.TRANSFORMS):
        for main, entry in table.items():
            found |= dict.fromkeys(entry.aliases, main)
            own = {setting: row for row, setting in entry.rows.items() if row.startswith(main)}
            found |= {row: own[setting] for row, setting in entry.rows.items() if own.get(setting, row) != row}
    return found


def stands_alone(benchmark: str) -> bool:
    """Whether runs of a benchmark are an experiment of their own, rather than a part of their family's section."""
    return benchmark not in registry.BENCHMARKS or not registry.BENCHMARKS[benchmark].within
