"""`holdfast compare` from the command line: the same table in every format, with its warning."""

import csv
import io
import json

import numpy as np
import pytest
from scipy import stats

from holdfast.errors import UserError
from reports.commands import holdfast
from reports.stores import put, record

TESTS = {"Acon": 0.2, "Asys": 0.7, "Apro": 0.6, "Asub": 0.5, "Anon": 0.8, "Anoc": 0.4}


@pytest.fixture
def store(tmp_path):
    for algorithm in ("finetune", "replay"):
        for seed in range(3):
            put(tmp_path, record(algorithm=algorithm, seed=seed))
    put(tmp_path, record("cfst:cgqa", "lwf", model="resnet18-tiny", summary=TESTS))
    return tmp_path


def test_text_has_ours_beside_the_papers_and_says_what_it_is_not(store):
    text = holdfast("compare", store).stdout
    assert "final acc. ↑" in text
    assert "20.00 [9.11]" in text
    assert "this does not reproduce the paper" in text
    only = holdfast("compare", store, "--benchmark", "patterns").stdout
    assert "cfst" not in only


def test_markdown_latex_csv_and_json(store):
    assert "| lwf · class | 20.00 (9.11) |" in holdfast("compare", store, "--format", "markdown").stdout
    latex = holdfast("compare", store, "--format", "latex").stdout
    assert r"lwf $\cdot$ class & 20.00 (9.11)" in latex
    assert latex.count(r"\begin{table") == latex.count("does not reproduce") + 1  # all but that of patterns say so
    text = holdfast("compare", store, "--format", "csv", "--benchmark", "cfst").stdout
    tables = [list(csv.DictReader(io.StringIO(part))) for part in text.strip().split("\n\n")]
    row = next(row for row in tables[1] if row["method · setting"] == "lwf · class")
    assert (float(row["Acon"]), float(row["Acon paper"])) == (20.0, 9.11)
    values = json.loads(holdfast("compare", store, "--json").stdout)
    assert [bool(value["warning"]) for value in values] == [True, True, False]


def test_the_scores_after_each_stage_have_intervals(store):
    values = json.loads(holdfast("compare", store, "--matrix", "--benchmark", "patterns", "--json").stdout)
    assert [value["title"].rpartition(": ")[2] for value in values] == ["finetune", "replay"]
    scores = {(each["stage"], each["name"]): [] for each in record()["scores"] if each["split"] == "test"}
    for seed in range(3):
        for each in record(seed=seed)["scores"]:
            if each["split"] == "test":
                scores[each["stage"], each["name"]].append(100 * each["score"])
    text = holdfast("compare", store, "--matrix", "--benchmark", "patterns", "--format", "csv").stdout
    rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(text.split("\n\n")[0]))}
    assert list(rows) == [f"after {stage}" for stage in range(1, 6)]
    for (stage, name), own in scores.items():
        low, high = stats.t.interval(0.95, 2, loc=np.mean(own), scale=stats.sem(own)) if np.ptp(own) else (own[0],) * 2
        found = rows[f"after {stage}"]
        assert float(found[name]) == pytest.approx(np.mean(own))
        assert float(found[f"{name} interval"]) == pytest.approx((high - low) / 2, abs=1e-9)


def test_mistakes_are_told(store, tmp_path):
    with pytest.raises(UserError, match="unknown format 'latx': did you mean latex"):
        holdfast("compare", store, "--format", "latx")
    with pytest.raises(UserError, match="only of cfst:cgqa, patterns"):
        holdfast("compare", store, "--benchmark", "climb")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no finished run"):
        holdfast("compare", tmp_path / "empty")


def test_a_record_that_is_cut_is_told_by_name_wherever_it_is_read(store):
    file = put(store, record("cfst:cgqa", "er")) / "record.json"
    file.write_bytes(file.read_bytes()[:300])
    name = f"{file.parent.name} is broken: record.json is broken"
    assert name in holdfast("list", "runs", "--out", store).stdout.replace("\n", "")
    statuses = [run["status"] for run in json.loads(holdfast("list", "runs", "--out", store, "--json").stdout)]
    assert sorted(statuses) == ["broken"] + ["done"] * 7
    errors = holdfast("compare", store).stderr
    assert f"{file.parent.name} is broken" in errors
    assert "record.json is broken" in errors
    with pytest.raises(UserError, match=f"{file.parent.name} in .* is broken: record.json is broken"):
        holdfast("show", file.parent.name, "--out", store)
