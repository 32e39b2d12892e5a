"""Runs as objects: what is whole is read, what is broken says so, and nothing stops the rest."""

import json
import shutil

import pytest

import holdfast
from holdfast.errors import UserError
from holdfast.experiments.store import Store
from reports.stores import put, record


def test_load_gives_the_runs_of_a_store_with_their_records(real_store):
    runs = holdfast.load(real_store)
    assert [run.status for run in runs] == ["done"] * 4
    assert [(run.benchmark, run.algorithm, run.seed) for run in runs] == [
        ("patterns", "finetune", 0), ("patterns", "finetune", 1), ("patterns", "replay", 0), ("patterns", "replay", 1)
    ]  # fmt: skip
    for run in runs:
        assert run.record == Store(real_store).folder(run.id).record()
        assert run.command == Store(real_store).folder(run.id).command()
    assert runs.where(algorithm="replay", seed=1)[0] is runs[3]
    assert len(runs[:2]) == 2
    assert [run.id for run in holdfast.load(real_store / runs[2].id)] == [runs[2].id]


def test_to_pandas_has_a_row_a_run_and_a_row_a_score(real_store):
    import pandas

    runs = holdfast.load(real_store)
    frame = runs.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["id"]) == [run.id for run in runs]
    assert list(frame["final_accuracy"]) == [run.record.summary["final_accuracy"] for run in runs]
    assert list(frame["cost_steps"]) == [run.record.cost["steps"] for run in runs]
    scores = runs.scores_to_pandas()
    assert len(scores) == sum(len(run.record.scores) for run in runs)
    last = scores[(scores.split == "test") & (scores.stage == 2)].groupby("id")["score"].mean()
    assert last[runs[0].id] == pytest.approx(runs[0].summary["final_accuracy"])


def test_unknown_words_and_places_are_told(real_store, tmp_path):
    with pytest.raises(UserError, match="runs have no 'sed' to choose by"):
        holdfast.load(real_store).where(sed=1)
    with pytest.raises(UserError, match="no store exists at"):
        holdfast.load(tmp_path / "nowhere")
    assert len(holdfast.load(tmp_path)) == 0


def changed(**values):
    return {**record(run="aaaaaaaaaaaa"), **values}


BROKEN = {
    "cut off": '{"id": "aaaaaaaaaaaa", "config": {',
    "a list": "[1, 2]",
    "foreign": '{"name": "eslint", "version": 3, "schema": 1}',
    "from the future": json.dumps(changed(schema=99)),
    "of another run": json.dumps(changed(id="bbbbbbbbbbbb")),
    "a measure of words": json.dumps(changed(summary={"final_accuracy": "good"})),
    "a measure that is no number": json.dumps(changed(summary={"final_accuracy": float("nan")})),
    "scores of words": json.dumps(changed(scores=[{**record()["scores"][0], "score": "good"}])),
    "scores of another kind": json.dumps(changed(scores=[{"epoch": 1}])),
    "a summary that is a list": json.dumps(changed(summary=[1])),
    "a configuration of words": json.dumps(changed(config="patterns")),
    "a benchmark without a name": json.dumps(changed(config={**record()["config"], "benchmark": {}})),
    "algorithms of numbers": json.dumps(changed(config={**record()["config"], "algorithms": [1]})),
    "no environment": json.dumps(changed(environment=None)),
    "nested without end": "[" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_or_foreign_record_is_shown_as_such(tmp_path, text):
    put(tmp_path, record(run="cccccccccccc"))
    folder = put(tmp_path, record(run="aaaaaaaaaaaa"))
    (folder / "record.json").write_text(text)
    runs = {run.id: run for run in holdfast.load(tmp_path)}
    assert runs["cccccccccccc"].status == "done"
    assert runs["aaaaaaaaaaaa"].status == "broken"
    assert runs["aaaaaaaaaaaa"].problem
    assert str(tmp_path) not in runs["aaaaaaaaaaaa"].problem
    assert runs["aaaaaaaaaaaa"].row()["benchmark"] == ""


def test_bytes_that_are_no_text_and_a_record_alone(tmp_path):
    folder = put(tmp_path, record(run="aaaaaaaaaaaa"))
    (folder / "config.json").write_bytes(b"\xff\xfe{}")
    alone = put(tmp_path, record(run="bbbbbbbbbbbb"))
    (alone / "config.json").unlink()
    (tmp_path / "notes.txt").write_text("no run")
    (tmp_path / "empty").mkdir()
    assert {run.id: run.status for run in holdfast.load(tmp_path)} == {
        "aaaaaaaaaaaa": "broken", "bbbbbbbbbbbb": "done"
    }  # fmt: skip


def test_failed_stopped_and_running_runs_are_told_apart(tmp_path, real_store):
    source = holdfast.load(real_store)[0].path
    for name in ("failed", "stopped", "running"):
        shutil.copytree(source, tmp_path / name)
        (tmp_path / name / "record.json").unlink()
    (tmp_path / "failed" / "failure.txt").write_text("Traceback ...\nRuntimeError: out of memory\n")
    with Store(tmp_path).folder("running").lock():
        runs = {run.id: run for run in holdfast.load(tmp_path)}
    assert {name: run.status for name, run in runs.items()} == {n: n for n in ("failed", "stopped", "running")}
    assert runs["failed"].problem == "RuntimeError: out of memory"
    assert runs["failed"].algorithm == "finetune"
    assert runs["failed"].record is None
