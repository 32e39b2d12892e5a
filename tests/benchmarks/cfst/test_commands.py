"""`holdfast cfst` from the command line."""

import json

import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from holdfast.benchmarks.cfst import commands as cfst
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.world.writers import cgqa
from reports.stores import put, record
from smallest import prepare, run

APP = typer.Typer(pretty_exceptions_enable=False)
cfst.register(APP)
QUICK = {"benchmark.side": 16, "benchmark.tests": 8, "model.channels": 2, "train.epochs": 1}


def holdfast(*words):
    """What `holdfast cfst WORDS` prints; a mistake is raised as the UserError that it is."""
    done = CliRunner().invoke(APP, ["cfst", *(str(word) for word in words)])
    if isinstance(done.exception, UserError):
        raise done.exception
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A store with two short runs on the same pictures, and one on others; and their ids."""
    store = Store(tmp_path_factory.mktemp("runs"))
    asked = [("cgqa", "finetune", {}), ("cgqa", "joint", {}), ("cgqa", "finetune", {"benchmark.side": 24})]
    ids = [
        run(prepare(Request(f"cfst:{name}", algorithm, scale="tiny", settings=QUICK | more)), store).id
        for name, algorithm, more in asked
    ]
    return store.path, ids


def test_maps_of_two_runs_are_one_picture(done, tmp_path):
    store, (first, second, other) = done
    picture = tmp_path / "maps.png"
    shown = holdfast("maps", first, second, "--out", store, "--picture", picture)
    assert "50 pictures" in shown.stdout, "ten of each of the five tests"
    with Image.open(picture) as found:
        assert min(found.size) > 900
    with pytest.raises(UserError, match="do not share the same pictures"):
        holdfast("maps", first, other, "--out", store, "--picture", picture)


def test_the_table_stands_beside_the_papers_and_says_what_it_is_not(done):
    text = holdfast("table", done[0]).stdout
    assert "no reproduction" in text
    assert "[8.38]" in text, "Finetune's Acon in Table 1"


def test_a_series_has_a_row_for_each_method_and_a_column_for_each_value(tmp_path):
    for tasks, seed, value in [(3, 0, 0.5), (3, 1, 0.7), (10, 0, 0.25)]:
        put(tmp_path, record("cfst:cobj", "lwf", seed=seed, summary={"Hn": value}, stages=tasks, tasks=tasks))
    put(tmp_path, record("cfst:cobj", "joint", summary={"Hn": 0.9}, tasks=3))
    found = json.loads(holdfast("series", tmp_path, "--over", "tasks", "--json").stdout)
    rows = {name.split(",")[0]: values for name, values in found["rows"].items()}
    assert rows["lwf"] == pytest.approx({"3": 60.0, "10": 25.0})
    assert rows["joint"] == pytest.approx({"3": 90.0})
    text = holdfast("series", tmp_path, "--over", "tasks").stdout
    assert "60.0" in text


def test_mistakes_are_told(done, tmp_path):
    store, ids = done
    with pytest.raises(UserError, match="did you mean tasks"):
        holdfast("series", store, "--over", "task")
    with pytest.raises(UserError, match="did you mean Asys"):
        holdfast("series", store, "--measure", "Asy")
    cgqa.write(tmp_path / "archive", "tiny", 9)
    with pytest.raises(UserError, match="is not the data of run"):
        holdfast("maps", ids[0], "--out", store, "--data", tmp_path / "archive")
    put(tmp_path / "other", record("patterns"))
    (only,) = Store(tmp_path / "other").runs()
    with pytest.raises(UserError, match="is one of patterns"):
        holdfast("maps", only.id, "--out", tmp_path / "other")
