"""The published verdicts: docs/claims.md follows from docs/claims.json and the claims' definitions."""

from pathlib import Path

from holdfast.claims.definition import read_claims
from holdfast.claims.published import is_evidence, read, read_left, text
from holdfast.papers import table

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


CELLS = {
    "Acon": "acon",
    "Asys": "sys",
    "Apro": "pro",
    "Asub": "sub",
    "Anon": "non",
    "Anoc": "noc",
    "Hn": "hn",
    "Ha": "ha",
}
PRINTED = {"cfst:cgqa": "1", "cfst:cobj": "4", "cfst:cpin": "7", "cfst:cifar100": "8"}


def printed(paper, item):
    """What CFST's tables print for some runs; None if it is in none of them."""
    runs = paper.runs[item.runs]
    settings = runs.get("set", {})
    if settings and settings != {"benchmark.tasks": 3}:
        return None
    number = "5" if runs.get("model") == "vit-tiny" else PRINTED[runs["benchmark"]]
    column = "accuracy" if number == "8" else CELLS.get(item.measure)
    published = table("cfst", number)
    if column not in {each.name for each in published.columns}:
        return None
    (row,) = published.select(method=runs["algorithm"], setting=runs["setting"])
    return row[column]


def test_what_cfst_prints_agrees_with_the_claims_about_it():
    """A margin above the printed difference would count the paper's own numbers as evidence against it."""
    paper = next(each for each in read_claims() if each.name == "cfst")
    checked = 0
    for claim in paper.claims:
        for contrast in claim.contrasts:
            cells = [(weight, printed(paper, item) if item.runs else item.constant) for weight, item in contrast.terms]
            if all(cell is not None for _, cell in cells):
                assert contrast.low < sum(weight * cell for weight, cell in cells) < contrast.high, str(contrast)
                checked += 1
    assert checked >= 60
