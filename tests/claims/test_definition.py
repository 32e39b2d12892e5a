"""The claims of the papers as data: well-formed, tested by runs that exist, and mistakes in files of one's own."""

import tomllib
from pathlib import Path

import pytest

from holdfast import registry
from holdfast.claims.definition import STATISTICS, chosen, parsed, read_claims, shipped
from holdfast.claims.gathering import requests_of
from holdfast.claims.shown import asserted
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.planfile import shipped as plans
from holdfast.types import Score

PAPERS = {paper.name: paper for paper in read_claims()}
EXTRA = {f"{kind}({group})" for kind in ("S", "Anon", "Asys") for group in ("f", "o")} | {"S(sys)"}
"""Measures of composition that are in records without being columns of a table."""


def test_the_four_papers_have_claims_and_plans_and_there_are_at_least_forty():
    assert {*shipped()} == {"cfst", "climb", "clvqa", "viscoll"}
    assert {*shipped()} <= {*plans()}
    assert sum(len(paper.claims) for paper in PAPERS.values()) >= 40
    assert {claim.statistic for paper in PAPERS.values() for claim in paper.claims} == {*STATISTICS}


@pytest.mark.parametrize("name", PAPERS)
def test_claims_say_where_they_stand_and_name_runs_and_measures_that_exist(name):
    paper, used = PAPERS[name], set()
    configs = {}
    for runs in paper.runs:
        for scale in ("tiny", "small", "paper"):
            configs[runs] = [resolve(request) for request in requests_of(paper, runs, scale)]
            assert all(config.benchmark.scale == scale for config in configs[runs])
    for claim in paper.claims:
        used |= {*claim.runs}
        assert claim.says.endswith("."), claim.name
        assert any(word in claim.where for word in ("ection", "able", "ppendix", "accuracies")), claim.name
        assert asserted(claim)
        for item in (item for item in claim.of if item.runs):
            known = configs[item.runs][0].benchmark.measures
            assert item.measure in known or item.measure in EXTRA, (claim.name, item.measure)
            assert item.stage is None or item.stage <= 10
            assert not item.task or known[item.measure].pooled
    assert used == {*paper.runs}, "runs that no claim is about"


def test_the_further_measures_are_in_records():
    tests = ["non", "sys", "pro", "sub", "noc", "non(f)", "non(o)", "sys(f)", "sys(o)"]
    found = registry.part(registry.BENCHMARKS["cfst:cgqa"].package.rpartition(".")[2], "protocol")
    log = [Score(1, 9, name, "test", 9, 0.5) for name in ["task-0", *tests]]
    assert {*found.summary(log)} >= EXTRA


def test_paper_scale_takes_the_large_models():
    models = {
        config.model
        for paper in PAPERS.values()
        for runs in paper.runs
        for config in map(resolve, requests_of(paper, runs, "paper"))
    }
    assert not {model for model in models if "tiny" in model}


CLAIM = {"id": "a", "says": "A.", "where": "1", "statistic": "difference", "of": ["x/m", 0], "margin": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "A b"}, "small letters"),
        ({"says": ""}, "says is missing"),
        ({"statistic": "diference"}, "did you mean difference"),
        ({"margin": 0}, "above 0"),
        ({"margin": True}, "above 0"),
        ({"of": ["x/m"]}, "at least 2"),
        ({"of": [1, 2]}, "names no runs"),
        ({"of": ["y/m", 0]}, r"\[runs.y\] is missing"),
        ({"of": ["x", 0]}, "has no measure"),
        ({"of": ["x[", 0]}, "is not an item"),
        ({"statistic": "interaction"}, "needs 4 items"),
        ({"less": 1}, "true or false"),
        ({"colour": 1}, "'colour' is not a key"),
    ],
)
def test_mistakes_in_a_claim_are_reported_with_their_place(change, message):
    with pytest.raises(UserError, match=message) as error:
        parsed({"runs": {"x": {}}, "claim": [CLAIM | change]}, "mine", Path("mine.toml"))
    assert "mine.toml, claim 1" in str(error.value)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"claim": [CLAIM]}, "describes no runs"),
        ({"runs": {"x": {}}}, "makes no claim"),
        ({"runs": {"x": {}}, "claim": [CLAIM, CLAIM]}, "two claims have the id 'a'"),
        ({"runs": {"x": {}}, "claims": [CLAIM]}, "did you mean claim"),
    ],
)
def test_mistakes_in_a_file_are_reported(tables, message):
    with pytest.raises(UserError, match=message):
        parsed(tables, "mine", Path("mine.toml"))


def test_claims_are_chosen_by_name_and_ambiguity_is_an_error(tmp_path):
    papers = read_claims()
    name = papers[0].claims[0].name
    assert [claim.name for claim in chosen(papers, [name, name])] == [name]
    with pytest.raises(UserError, match="unknown claim 'nonsense'"):
        chosen(papers, ["nonsense"])
    (tmp_path / "mine.toml").write_text("claim = 3")
    with pytest.raises(UserError, match="describes no runs"):
        read_claims(str(tmp_path / "mine.toml"))
    with pytest.raises(UserError, match="cannot be read"):
        read_claims(str(tmp_path / "other.toml"))


def test_the_example_in_the_module_is_a_file_of_claims():
    from holdfast.claims import definition

    text = definition.__doc__.partition("same form:\n")[2].partition("\nAn item")[0]
    (claim,) = parsed(tomllib.loads(text), "mine", Path("mine.toml")).claims
    assert asserted(claim) == "final_accuracy: er > finetune, by more than 2"
