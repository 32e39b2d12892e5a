"""Recompute every derived cell of the published tables from the other printed numbers.

Rounding is allowed for: each printed input stands for an interval, the rule is evaluated over all of these intervals,
and a cell is called inconsistent only if no unrounded inputs at all could lead to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.papers.published import PAPERS, PublishedTable, tables
from holdfast.papers.rules import BY_PAPER, RULES, Check

__all__ = ["RULES", "Check", "Tally", "audit", "summary"]


@dataclass(frozen=True)
class Tally:
    """How many cells of one table were checked by one rule, and how many of them are inconsistent.

    >>> Tally("climb", "3", "knowledge-transfer", 24, 4).inconsistent
    4
    """

    paper: str
    table: str
    rule: str
    checked: int
    inconsistent: int


def audit(paper: str | None = None, replace: Iterable[PublishedTable] = ()) -> list[Check]:
    """Check each derived cell of one paper, or of all; tables in `replace` stand in for the published ones.

    >>> wrong = [check for check in audit("climb") if check.table == "10" and not check.consistent]
    >>> [(dict(check.keys)["task"], check.printed, round(check.mid, 2)) for check in wrong]
    [('vcr', -26.6, -26.06)]
    """
    published = tables(paper)
    library = {name: {each.number: each for each in published if each.paper == name} for name in PAPERS}
    for each in replace:
        library[each.paper][each.number] = each
    return [check for name in PAPERS if library[name] for check in BY_PAPER[name](library[name])]


def summary(checks: Iterable[Check]) -> list[Tally]:
    """Count the checks of each table and rule, in the order in which they come.

    >>> summary(check for check in audit("climb") if check.table == "13")
    [Tally(paper='climb', table='13', rule='knowledge-transfer', checked=20, inconsistent=1)]
    """
    groups: dict[tuple[str, str, str], list[bool]] = {}
    for check in checks:
        groups.setdefault((check.paper, check.table, check.rule), []).append(check.consistent)
    return [Tally(*group, len(found), found.count(False)) for group, found in groups.items()]
