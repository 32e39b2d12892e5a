"""Results as one file: written without machine paths, and read wherever a store is."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from cli.inside import inside
from holdfast.errors import UserError
from holdfast.experiments.store import Store
from holdfast.reports import exchange
from holdfast.reports.runs import load
from smallest import prepared, run


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> tuple[Path, Path]:
    """Two stores: runs of two algorithms, and one of them again with a third."""
    folder = tmp_path_factory.mktemp("exchange")
    for name, algorithms in (("one", ("finetune", "replay")), ("two", ("replay", "ewc"))):
        for algorithm in algorithms:
            run(prepared(algorithm, train__epochs=1), Store(folder / name))
    return folder / "one", folder / "two"


def test_what_is_exported_is_loaded_again(stores, tmp_path):
    one, _ = stores
    done = inside("export", one, "--out", "results.json", cwd=tmp_path)
    assert done.stdout == "2 finished runs in results.json\n"
    before, after = load(one), holdfast.load(tmp_path / "results.json")
    assert [each.id for each in after] == [each.id for each in before]
    for ours, theirs in zip(before.records, after.records, strict=True):
        assert (theirs.scores, theirs.summary, theirs.config) == (ours.scores, ours.summary, ours.config)
    assert str(after).partition("\n")[0] == str(before).partition("\n")[0], "they print as the same table"


def test_no_path_of_this_machine_is_in_the_file(stores, tmp_path):
    one, _ = stores
    found = load(one)[0]
    command = f"holdfast run folder --data {tmp_path}/photos --model ~/nets/net.py:Net --set model.weights=../w/x.pt"
    record = replace(found.record, environment={"command": command}, problems=(f"{tmp_path}/photos/7.jpg: not a JPEG",))
    exchange.export([replace(found, record=record)], tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text()
    assert str(tmp_path) not in text
    (run,) = exchange.read(tmp_path / "results.json")
    assert run.command == "holdfast run folder --data photos --model net.py:Net --set model.weights=x.pt"
    assert run.record.problems == ("7.jpg: not a JPEG",)


def test_several_stores_and_files_are_compared_and_reported_as_one(stores, tmp_path):
    one, two = stores
    inside("export", two, "--out", "two.json", cwd=tmp_path)
    assert json.loads(inside("compare", one, "two.json", "--json", cwd=tmp_path).stdout)
    text = inside("compare", one, "two.json", cwd=tmp_path).stdout
    assert all(f"  {name} " in text for name in ("finetune", "replay", "ewc"))
    done = inside("report", one, "two.json", "--out", "report", cwd=tmp_path)
    assert done.stdout.startswith("3 runs in ")
    assert "ewc" in (tmp_path / "report/index.html").read_text()


def test_stores_are_merged_without_weights_and_the_records_stay_intact(stores, tmp_path):
    one, two = stores
    inside("export", one, "--out", "one.json", cwd=tmp_path)
    assert inside("merge", two, "one.json", "--out", "all", cwd=tmp_path).stdout == "added 3 runs to all\n"
    assert inside("merge", one, two, "--out", "all", cwd=tmp_path).stdout == "added 0 runs to all\n"
    assert {each.id for each in load(tmp_path / "all")} == {each.id for store in stores for each in load(store)}
    assert not list((tmp_path / "all").rglob("*.safetensors"))
    assert inside("verify", "all", cwd=tmp_path).returncode == 0


def test_the_same_run_with_different_scores_is_an_error(stores, tmp_path):
    one, _ = stores
    found = load(one)[0]
    wrong = replace(found.record, scores=tuple(replace(s, score=0.0) for s in found.record.scores))
    exchange.export([replace(found, record=wrong)], tmp_path / "wrong.json")
    with pytest.raises(UserError, match=f"run {found.id} has different scores in .*one/{found.id} and .*wrong.json"):
        exchange.load_all([one, tmp_path / "wrong.json"])


def test_a_file_that_cannot_be_trusted_is_refused(stores, tmp_path):
    one, _ = stores
    path = tmp_path / "results.json"
    exchange.export(load(one), path)
    text = path.read_text()
    cases = {
        text.replace('"seed": 0', '"seed": 1'): "cannot be trusted",
        text[:200]: "not valid JSON",
        "[1, 2]": "is not an export of holdfast",
        text.replace('"export": 1', '"export": 2'): "by a newer holdfast",
        "[" * 100_000: "not valid JSON",
    }
    for content, why in cases.items():
        path.write_text(content)
        with pytest.raises(UserError, match=why):
            load(path)
    with pytest.raises(UserError, match="no store exists at"):
        exchange.load_all([tmp_path / "nothing.json"])


def test_an_unfinished_run_of_the_same_id_is_not_overwritten(stores, tmp_path):
    one, _ = stores
    found = load(one)[0]
    shutil.copytree(found.path, tmp_path / "all" / found.id)
    (tmp_path / "all" / found.id / "record.json").unlink()
    done = inside("merge", one, "--out", "all", cwd=tmp_path)
    assert done.returncode == 2
    assert "finish or delete it" in " ".join(done.stderr.split())


def test_the_page_on_reports_names_each_field_of_an_exported_file(stores, tmp_path):
    exchange.export(load(stores[0]), tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text())
    page = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    named = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert set(found) | set(found["runs"][0]) | set(found["runs"][0]["scores"][0]) <= named
