"""The page of a report on the papers' claims: the verdicts that `holdfast claims run` kept in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.claims.definition import read_claims
from holdfast.claims.evidence import Evidence
from holdfast.claims.published import STORED, read
from holdfast.claims.shown import METHOD, SYNTHETIC, asserted, by_paper, counted, interval, number, repeated
from holdfast.reports.blocks import Block, Cell, TableBlock
from holdfast.reports.render import render

NAME = "claims.html"
"""The file of the page."""


def pages(store: Path, shared: Mapping[str, str]) -> dict[str, str]:
    """The page as a file of the report; none if the store has no verdicts."""
    found = blocks(store)
    return {NAME: render(NAME, title="Claims", blocks=found, **shared)} if found else {}


def blocks(store: Path) -> list[Block]:
    """A table for each paper and kind of data: each claim with its verdict, and what could have been detected."""
    file = store / STORED
    if not file.is_file():
        return []
    papers = read_claims()
    found = read(file, {claim.name: claim for paper in papers for claim in paper.claims})
    titles = {paper.name: paper.title for paper in papers}
    return [_table(titles.get(paper, paper), data, own) for (paper, data), own in by_paper(found).items()]


def _table(title: str, data: str, found: Sequence[Evidence]) -> TableBlock:
    rows = tuple(_row(each) for each in found)
    columns = ("claim", "verdict", "effect, 95 %", "seeds", "detectable", "what the paper says")
    notes = (
        METHOD,
        "Effect: the contrast that decides. Detectable: the distance from a bound of the claim that these seeds decide "
        "with a probability of 80 %. Seeds: 5 x 3 is five seeds of three orders. Point at a claim to see its runs.",
        f"Everything about one: holdfast claims verdicts STORE --only {found[0].claim.name}",
    )
    warning = SYNTHETIC if any(each.synthetic for each in found) else ""
    return TableBlock(f"{title}, on {data} data: {counted(found)}", columns, rows, notes, warning)


def _row(each: Evidence) -> tuple[Cell, ...]:
    verdict, claim = each.verdict, each.claim
    return (
        Cell(claim.id, hint=asserted(claim)),
        Cell(verdict.outcome, hint=verdict.why),
        Cell(interval(verdict.decisive)),
        Cell(repeated(each)),
        Cell(number(verdict.decisive.detectable)),
        Cell(f"{claim.says} ({claim.where})"),
    )
