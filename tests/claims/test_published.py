"""The published verdicts: docs/claims.md follows from docs/claims.json and the claims' definitions."""

from pathlib import Path

from holdfast.claims.definition import read_claims
from holdfast.claims.published import is_evidence, read, read_left, text

DOCS = Path(__file__).parents[2] / "docs"
AGAIN = "run `holdfast claims page docs/claims.json --out docs/claims.md`"


def test_the_page_of_verdicts_is_current():
    papers = read_claims()
    every = {claim.name: claim for paper in papers for claim in paper.claims}
    found = read(DOCS / "claims.json", every)
    expected = text(papers, found, "claims.md", read_left(DOCS / "claims.json"))
    assert (DOCS / "claims.md").read_text(encoding="utf-8") == expected, AGAIN


def test_every_value_behind_a_verdict_belongs_to_a_claim():
    assert is_evidence(DOCS / "claims.json")
    assert not is_evidence(DOCS / "claims.md")
    every = {claim.name: claim for paper in read_claims() for claim in paper.claims}
    found = read(DOCS / "claims.json", every)
    names = (DOCS / "claims.json").read_text(encoding="utf-8").count('"claim":')
    assert len(found) == names, f"some claims are gone, or are about other values: {AGAIN}"
    assert all(each.synthetic for each in found if each.scale != "paper")
