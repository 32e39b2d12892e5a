"""Results of others: exports, evidence of claims, and records whose commands name code. Nothing of them is executed."""

import json

import pytest

from cli.inside import inside
from holdfast import registry
from holdfast.checksums import sealed
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.made import made
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.experiments.weights import weights_of
from reports.stores import put, record

CODE = """
from pathlib import Path
from dataclasses import dataclass
from holdfast.algorithms.base import Algorithm
Path(__file__).with_name("owned").touch()
@dataclass
class Evil(Algorithm):
    pass
"""
OWN = """
title = "Mine"
[runs.evil]
benchmark = "patterns"
algorithm = "{place}:Evil"
[[claim]]
id = "c"
says = "C."
where = "Table 1"
statistic = "difference"
of = ["evil/final_accuracy", 0]
margin = 1
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Code that says when it is executed."""
    (tmp_path / "evil.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "evil.py"


def store_of(tmp_path, command):
    """A store with a run that was made by a command."""
    value = record()
    value["config"]["parts"] = {"engine": 1}
    value["environment"]["command"] = command
    run = put(tmp_path / "runs", value)
    (run / "environment.json").write_text(json.dumps(value["environment"]))
    (run / "model.safetensors").write_bytes(b"weights")
    return tmp_path / "runs"


@pytest.mark.parametrize(
    "words",
    [
        "patterns --algorithm {}:Evil",
        "patterns --algorithm evil:Evil",
        "patterns --model {}:Evil",
        "{}:Evil",
        "patterns --algorithm er --set er.memory={}:Evil",
    ],
)
def test_code_that_a_record_names_is_not_executed(words, code, tmp_path):
    store = store_of(tmp_path, f"holdfast run {words.format(code)} --scale tiny")
    assert made(Store(store)) == set()
    list(weights_of(Store(store)))
    for asked in (
        ["verdicts", "runs"],
        ["page", "runs"],
        ["plan", "--only", "climb/vcr-makes-forget", "--out", "runs"],
    ):
        done = inside("claims", *asked, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert not code.with_name("owned").exists()


def test_code_that_the_user_names_as_well_is_found_in_records(code, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_NAMED", set())
    store = store_of(tmp_path, f"holdfast run patterns --algorithm {code}:Evil --scale tiny")
    (tmp_path / "theirs.toml").write_text(OWN.format(place=code))
    with registry.of_records(), pytest.raises(UserError, match="only your own command executes"):
        registry.find(f"{code}:Evil", "algorithm")
    assert not code.with_name("owned").exists()
    done = inside("claims", "verdicts", store, "--paper", "theirs.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert code.with_name("owned").exists()
    with registry.of_records():
        assert registry.find(f"{code.parent}/./evil.py:Evil", "algorithm").name == "Evil"
    config = resolve(Request("patterns", f"{code}:Evil", scale="tiny"))
    value = record()
    value["config"] = {**config.content, "data": "0"}
    value["environment"]["command"] = config.request.command()
    put(tmp_path / "own", value)
    assert made(Store(tmp_path / "own")) == {config.id}


def exported(tmp_path, **changes):
    value = {**record(), **changes}
    content = {"holdfast": "0.1.0", "export": 1, "runs": [value]}
    (tmp_path / "theirs.json").write_text(json.dumps(sealed(content)))


@pytest.mark.parametrize("name", ["../owned", "/owned", "..", ".", "", "a/b", "a\0b", "x" * 300])
def test_the_id_of_a_record_leads_nowhere(name, tmp_path):
    exported(tmp_path, id=name)
    before = sorted(tmp_path.rglob("*"))
    for asked in (["merge", "theirs.json", "--out", "here/runs"], ["compare", "theirs.json"]):
        done = inside(*asked, cwd=tmp_path)
        assert done.returncode == 2
        assert "is not a record of a run (id)" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_merging_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.delenv("HOLDFAST_LINKS", raising=False)
    (tmp_path / "secret.txt").write_text("secret")
    run = put(tmp_path / "theirs", record())
    (run / "scores.jsonl").unlink(missing_ok=True)
    (run / "scores.jsonl").symlink_to(tmp_path / "secret.txt")
    done = inside("merge", "theirs", "--out", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "outside theirs" in done.stderr
    assert not list((tmp_path / "mine").rglob("scores.jsonl"))


@pytest.mark.parametrize("parts", [5, [1], {"engine": [1]}])
def test_parts_that_are_none_are_refused(parts, tmp_path):
    exported(tmp_path, config={**record()["config"], "parts": parts})
    for asked in (["compare"], ["report", "--out", "r"], ["leaderboard", "--out", "l"], ["claims", "verdicts"]):
        done = inside(*asked, "theirs.json", cwd=tmp_path)
        assert (done.returncode, "config" in done.stderr) == (2, True)


def test_scores_that_are_no_numbers_are_refused(tmp_path):
    scores = [{**score, "score": float("nan")} for score in record()["scores"]]
    exported(tmp_path, scores=scores)
    assert inside("export", "theirs.json", "--out", "again.json", cwd=tmp_path).returncode == 2


EVIL = "tiny; touch owned \x1b[2J\x07<script>owned()</script>"


def evidence(path, claim="climb/vcr-makes-forget", scale="tiny", says="S", text=""):
    from holdfast.claims.definition import read_claims

    known = {each.name: each for paper in read_claims() for each in paper.claims}
    of = [str(each) for each in known[claim].contrasts] if claim in known else ["er/final_accuracy"]
    table = {"id": "c", "says": says, "where": says, "statistic": "difference", "margin": 1.0, "less": False}
    one = {
        "claim": claim, "scale": scale, "synthetic": True, "orders": 1, "definition": {**table, "of": ["er/a", 0.0]},
        "values": [{"of": each, "seeds": {str(seed): 5.0 + seed / 100 for seed in range(5)}} for each in of],
        "gaps": [text], "runs": [text or "a"], "made": [text],
    }  # fmt: skip
    if claim not in known:
        one["values"][0]["of"] = "er/a"
    path.write_text(json.dumps(sealed({"claims": 1, "evidence": [one], "left": []}), indent=1))


@pytest.mark.parametrize("asked", [{"scale": EVIL}, {"claim": f"{EVIL.replace('/', '')}/c"}])
def test_evidence_whose_names_are_no_words_is_refused(asked, tmp_path):
    evidence(tmp_path / "theirs.json", **asked)
    done = inside("claims", "verdicts", "theirs.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a word" in done.stderr


def test_texts_of_evidence_are_escaped(tmp_path):
    put(tmp_path / "runs", record())
    evidence(tmp_path / "runs" / "claims.json", text=EVIL)
    one = ["claims", "verdicts", "runs/claims.json", "--only", "climb/vcr-makes-forget"]
    for asked in (one, one[:3], ["report", "runs", "--out", "r"], ["claims", "page", "runs/claims.json"]):
        done = inside(*asked, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not {"\x1b", "\x07"} & {*done.stdout}
    for file in (tmp_path / "r" / "claims.html", tmp_path / "claims.md"):
        text = file.read_text()
        assert "vcr-makes-forget" in text
        assert "<script>owned" not in text
        assert not {"\x1b", "\x07"} & {*text}
    assert "--only climb/ID --scale tiny" in (tmp_path / "claims.md").read_text()
    evidence(tmp_path / "runs" / "claims.json", claim="mine/c", says=EVIL)
    assert inside("report", "runs", "--out", "r", cwd=tmp_path).returncode == 0
    assert "\\x1b[2J" in (tmp_path / "r" / "claims.html").read_text()
    assert not {"\x1b", "\x07"} & {*(tmp_path / "r" / "claims.html").read_text()}


def test_evidence_that_is_a_link_is_neither_read_nor_written_through(tmp_path, monkeypatch):
    monkeypatch.delenv("HOLDFAST_LINKS", raising=False)
    from holdfast.claims.published import dump

    put(tmp_path / "runs", record())
    evidence(tmp_path / "outside.json")
    before = (tmp_path / "outside.json").read_bytes()
    (tmp_path / "runs" / "claims.json").symlink_to(tmp_path / "outside.json")
    done = inside("report", "runs", "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "outside runs" in done.stderr
    dump([], tmp_path / "runs" / "claims.json")
    assert (tmp_path / "outside.json").read_bytes() == before
    assert not (tmp_path / "runs" / "claims.json").is_symlink()
