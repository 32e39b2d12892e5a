"""The tables of a store: each experiment's measures, and the papers' tables with ours in them."""

from __future__ import annotations

from holdfast.reports.blocks import TableBlock
from holdfast.reports.groups import experiments
from holdfast.reports.overview import comparison
from holdfast.reports.runs import Runs
from holdfast.reports.sections import section, stands_alone


def tables(runs: Runs) -> list[TableBlock]:
    """What `holdfast compare` prints: for each family of benchmarks its experiments, then its papers' tables."""
    found = experiments(runs.records)
    families = dict.fromkeys(each.benchmark.partition(":")[0] for each in found)
    tables: list[TableBlock] = []
    for family in families:
        own = [each for each in found if each.benchmark.partition(":")[0] == family]
        tables += [comparison(each) for each in own if stands_alone(each.benchmark)]
        blocks = section(family, [record for each in own for record in each.records])
        tables += [block for block in blocks if isinstance(block, TableBlock)]
    return tables
