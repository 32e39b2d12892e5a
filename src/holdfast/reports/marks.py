"""The best of a table: which cells are marked, what a mark means, and why there may be none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeAlias

from holdfast import metrics
from holdfast.benchmarks.base import Measure
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Cell, mean_cell
from holdfast.reports.significance import LEAST, Leaders, above, leaders

Row: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True)
class Marked:
    """Rows with their marks, what a mark means (empty if there is none), and why other cells have none."""

    rows: list[Row]
    marks: str
    notes: tuple[str, ...]


def measured(group: Sequence[Record], name: str, measure: Measure) -> Cell:
    """A row's mean of a measure, with the values that decide its mark."""
    cell = mean_cell([record.summary.get(name) for record in group], measure.factor, measure.decimals)
    if cell.number is None:
        return cell
    chance = chance_of(group, name, measure)
    return replace(
        cell,
        values={seed: value * measure.factor for seed, value in by_seed(group, name).items()},
        chance=None if chance is None else chance * measure.factor,
        learned=_learned(group, measure.relies_on),
    )


def _learned(group: Sequence[Record], name: str) -> bool:
    """Whether a row's mean score is above chance, according to its records."""
    chance, values = chance_of(group, name, Measure(name, mean_of=("*",))), list(by_seed(group, name).values())
    return not name or chance is None or len(values) < LEAST or above(values, chance)


def by_seed(group: Sequence[Record], name: str) -> dict[int, float]:
    """A row's values of a measure, by seed; if one seed has several, their mean."""
    found: dict[int, list[float]] = {}
    for record in group:
        if (value := record.summary.get(name)) is not None:
            found.setdefault(record.config["seed"], []).append(value)
    return {seed: values[0] if len(values) == 1 else metrics.mean(values) for seed, values in found.items()}


def chance_of(group: Sequence[Record], name: str, measure: Measure) -> float | None:
    """The score of guessing by a measure, over a row's records; None if they do not state it."""
    found = [_chance(record, name, measure) for record in group]
    return metrics.mean([each for each in found if each is not None]) if found and None not in found else None


def _chance(record: Record, name: str, measure: Measure) -> float | None:
    if name in record.chance or not measure.mean_of or not record.chance:
        return record.chance.get(name)
    own = [each for each in record.tested if any(fnmatchcase(each, pattern) for pattern in measure.mean_of)]
    return metrics.mean([record.chance[each] for each in own]) if own and set(own) <= record.chance.keys() else None


def mark_best(
    rows: Sequence[Row], columns: Sequence[str], higher: Sequence[bool | None], ranks: Sequence[str | None]
) -> Marked:
    """Mark the cells of these columns, the first of which is the second cell of each row.

    Rows of one rank compete, separately in each column; rows of rank None are never marked. `leaders` decides.
    """
    marked = [list(row) for row in rows]
    found: list[tuple[str, str, Leaders]] = []
    told: dict[tuple[str, str], list[str]] = {}
    for rank in dict.fromkeys(rank for rank in ranks if rank is not None):
        own = {str(place): row for place, row in enumerate(rows) if ranks[place] == rank}
        for column, (title, more) in enumerate(zip(columns, higher, strict=True), 1):
            cells = {name: row[column] for name, row in own.items() if row[column].number is not None}
            for name in [name for name, cell in cells.items() if not cell.learned]:
                told.setdefault((rows[int(name)][0].text, "its score is not above chance"), []).append(title)
                del cells[name]
            if not cells:
                continue
            guessed = {name: cell.chance for name, cell in cells.items() if cell.chance is not None}
            chosen = leaders({name: cell.values for name, cell in cells.items()}, more, guessed)
            found.append((rank, title, chosen))
            for name in chosen.names:
                marked[int(name)][column] = replace(cells[name], best=True)
            for name, why in chosen.apart.items():
                told.setdefault((rows[int(name)][0].text, why), []).append(title)
    notes = [*_unmarked(found), *_apart(told, len(columns))]
    seeds = sorted({count for *_, each in found for count in each.seeds if each.names})
    return Marked([tuple(row) for row in marked], meaning(seeds) if seeds else "", tuple(notes))


def meaning(seeds: Sequence[int]) -> str:
    """What a mark means, after tests over the given numbers of seeds.

    >>> meaning([3, 5])
    'best, or not distinguishable from it (paired t over 3 to 5 seeds, Holm)'
    """
    counts = str(seeds[0]) if len(set(seeds)) == 1 else f"{min(seeds)} to {max(seeds)}"
    return f"best, or not distinguishable from it (paired t over {counts} seeds, Holm)"


def _unmarked(found: Sequence[tuple[str, str, Leaders]]) -> list[str]:
    """For each reason, the columns without marks; one short note if that is all columns."""
    several = len({rank for rank, *_ in found}) > 1
    reasons: dict[str, dict[str, list[str]]] = {}
    for rank, title, each in found:
        if not each.names:
            reasons.setdefault(each.why, {}).setdefault(rank, []).append(title)
    if len(reasons) == 1 and not any(each.names for *_, each in found):
        (why,) = reasons
        return [f"Nothing is marked: {why}{f', and marks need {LEAST}' if why == 'one seed' else ''}."]
    notes = []
    for why, columns in reasons.items():
        where = [f"{', '.join(titles)}{f' ({rank})' if several and rank else ''}" for rank, titles in columns.items()]
        notes.append(f"No mark in {'; '.join(where)}: {why}.")
    return notes


def _apart(told: Mapping[tuple[str, str], Sequence[str]], columns: int) -> list[str]:
    """For each reason, the rows that it keeps from being marked, and the columns."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (row, why), titles in told.items():
        where = "" if len(titles) == columns else f" in {', '.join(dict.fromkeys(titles))}"
        reasons.setdefault((where, why), []).append(row)
    return [f"{', '.join(dict.fromkeys(rows))}: not marked{where} ({why})." for (where, why), rows in reasons.items()]
