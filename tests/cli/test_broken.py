"""A store with broken runs: every command names them, leaves them out, and agrees with the others about the rest."""

import json

import pytest
import typer
from typer.testing import CliRunner

from holdfast.benchmarks.climb import commands as climb
from holdfast.errors import UserError
from holdfast.experiments.store import Store
from holdfast.reports.progress import look
from reports.commands import holdfast
from reports.stores import put, record

CUT, EMPTY, BARE, HOMELESS, COPIED = (letter * 12 for letter in "abcde")
"""A record cut short, one that is `{}`, a run without config.json, one without environment.json, another's record."""
BROKEN = {CUT, EMPTY, COPIED}


@pytest.fixture
def store(tmp_path):
    put(tmp_path, record(seed=7))
    cut = put(tmp_path, record(run=CUT)) / "record.json"
    cut.write_bytes(cut.read_bytes()[:300])
    (put(tmp_path, record(run=EMPTY)) / "record.json").write_text("{}")
    (put(tmp_path, record(run=BARE, algorithm="ewc", seed=3)) / "config.json").unlink()
    (put(tmp_path, record(run=HOMELESS, algorithm="mas")) / "environment.json").unlink()
    (put(tmp_path, record(run=COPIED)) / "record.json").write_text(json.dumps(record(run="f" * 12)))
    direct = record("climb", run="1" * 12, stages=1, order="vcr", model="vilt-tiny")
    direct["scores"] = [score | {"name": "vcr"} for score in direct["scores"]]
    put(tmp_path, direct)
    return tmp_path


def test_all_commands_count_alike_and_name_what_is_broken(store, tmp_path_factory):
    listed = json.loads(holdfast("list", "runs", "--out", store, "--json").stdout)
    assert len(listed) == 7
    assert {run["run"] for run in listed if run["status"] == "broken"} == BROKEN
    assert all(bool(run["problem"]) == (run["status"] == "broken") for run in listed)

    watched = json.loads(holdfast("watch", store, "--json").stdout)
    assert watched["runs"] == {"done": 4, "broken": 3}
    assert watched["broken"] == {run["run"]: run["problem"] for run in listed if run["status"] == "broken"}
    assert "4 done, 3 broken" in holdfast("watch", store).stdout

    pages = tmp_path_factory.mktemp("pages")
    told = json.loads(holdfast("report", store, "--out", pages, "--json").stdout)
    assert told["broken"] == watched["broken"]
    assert holdfast("report", store, "--out", pages).stdout.startswith("7 runs in ")
    for run in BROKEN:
        assert f"{run} is broken: " in holdfast("list", "runs", "--out", store).stdout
        assert f"{run} is broken: " in holdfast("watch", store).stdout
        assert f"{run} is broken and left out: " in holdfast("compare", store).stderr
        with pytest.raises(UserError, match=f"run {run} in .* is broken: record.json "):
            holdfast("show", run, "--out", store)


def test_the_tables_of_climb_go_on_without_what_is_broken(store):
    app = typer.Typer()
    climb.register(app)
    done = CliRunner().invoke(app, ["climb", "tables", str(store), "--table", "6", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)[0]["number"] == "6"
    for run in BROKEN:
        assert f"{run} is broken and left out: record.json " in done.stderr


def test_a_run_is_shown_from_its_record_where_another_file_is_gone(store):
    bare = holdfast("show", BARE, "--out", store).stdout
    assert "algorithm: ewc (capacity=200)" in bare
    assert f"again: holdfast run patterns --algorithm ewc --scale tiny --seed 3 --out {store}" in bare
    assert Store(store).folder(BARE).config() == record(algorithm="ewc", seed=3)["config"]
    homeless = holdfast("show", HOMELESS, "--out", store).stdout
    assert "again: holdfast run patterns --algorithm mas --scale tiny --seed 0" in homeless
    (store / HOMELESS / "record.json").unlink()
    assert "its environment.json is missing" in holdfast("show", HOMELESS, "--out", store).stdout


def test_watching_sees_a_record_break_and_mend(store):
    file = store / BARE / "record.json"
    whole = file.read_text()
    assert look(store).counts["done"] == 4
    file.write_text(whole[:200])
    assert BARE in look(store).broken
    file.write_text(whole)
    assert look(store).counts == {"done": 4, "broken": 3}
