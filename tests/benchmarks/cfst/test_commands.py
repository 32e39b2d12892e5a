"""`holdfast cfst` from the command line."""

import json
import shutil

import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from holdfast.benchmarks.cfst import commands as cfst
from holdfast.benchmarks.cfst import report
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from holdfast.experiments.store import Record, Store
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
    shown = holdfast("maps", first, second, "--out", store, "--picture", picture, "--concepts")
    assert int(shown.stdout.split()[0]) % 10 == 0, "five of each of two classes, on fresh or on old concepts"
    with pytest.raises(UserError, match="do not share the same pictures"):
        holdfast("maps", first, other, "--out", store, "--picture", picture)


def test_a_run_tested_again_is_the_run_that_was_tested_so_from_the_start(done, tmp_path):
    store, (first, second, _) = done
    other = {"benchmark.way": 3, "benchmark.shots": 4, "benchmark.tests": 6}
    shown = holdfast("test", first, second, "--way", 3, "--shots", 4, "--tests", 6, "--out", store).stdout
    assert "Asys" in shown
    for algorithm in ("finetune", "joint"):
        fresh = run(prepare(Request("cfst:cgqa", algorithm, scale="tiny", settings=QUICK | other)), Store(tmp_path))
        again = Store(store).folder(fresh.id).record()
        assert again.scores == fresh.scores
        assert again.summary == fresh.summary
        assert again.chance["sys"] == pytest.approx(1 / 3)
        before = Store(store).folder({"finetune": first, "joint": second}[algorithm]).record()
        assert again.summary["Acon"] == before.summary["Acon"]
        assert again.summary["Asys"] != before.summary["Asys"]
        assert again.config["benchmark"]["way"] == 3
    repeated = json.loads(
        holdfast("test", first, "--way", 3, "--shots", 4, "--tests", 6, "--out", store, "--json").stdout
    )
    assert [each["id"] for each in repeated] != [first]


@pytest.mark.parametrize(("algorithm", "setting"), [("rpsnet", "class"), ("mntdp", "task"), ("adapters", "task")])
def test_what_an_algorithm_added_to_its_network_is_tested_again(tmp_path, algorithm, setting):
    model = {"adapters": "vit-tiny"}.get(algorithm)
    settings = {"benchmark.side": 16, "benchmark.tests": 8, "train.epochs": 1, "benchmark.per_class": 4}
    settings |= {"model.patch": 8} if model else {"model.channels": 2}
    settings |= {"rpsnet.every": 1, "rpsnet.candidates": 2, "rpsnet.modules": 3} if algorithm == "rpsnet" else {}
    ready = {"algorithm": algorithm, "model": model, "scale": "tiny", "setting": setting}
    known = run(prepare(Request("cfst:cobj", **ready, settings=settings)), Store(tmp_path / "known"))
    fresh = run(prepare(Request("cfst:cobj", **ready, settings=settings | {"benchmark.way": 2})), Store(tmp_path))
    (found,) = json.loads(holdfast("test", known.id, "--way", 2, "--out", tmp_path / "known", "--json").stdout)
    assert found["id"] == fresh.id
    assert found["summary"] == dict(fresh.summary)


def test_mistakes_in_testing_again_are_told(done, tmp_path):
    store, (first, *_) = done
    with pytest.raises(UserError, match="give --way, --shots, --frozen or --tests"):
        holdfast("test", first, "--out", store)
    with pytest.raises(UserError, match="a 40-way test"):
        holdfast("test", first, "--way", 40, "--out", store)
    cgqa.write(tmp_path / "archive", "tiny", 9)
    with pytest.raises(UserError, match=r"would be trained differently now \(data differ\): give its data with --data"):
        holdfast("test", first, "--way", 2, "--out", store, "--data", tmp_path / "archive")
    put(tmp_path / "other", record("patterns"))
    (only,) = Store(tmp_path / "other").runs()
    with pytest.raises(UserError, match="is one of patterns: this command needs the few-shot tests"):
        holdfast("test", only.id, "--way", 2, "--out", tmp_path / "other")
    shutil.copytree(store / first, tmp_path / "dropped" / first)
    shutil.rmtree(tmp_path / "dropped" / first / "checkpoints")
    with pytest.raises(UserError, match="kept no state that could be tested: delete"):
        holdfast("test", first, "--way", 2, "--out", tmp_path / "dropped")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"tasks": 10}, "10-way here and 3-way in the paper"),
        ({"tasks": 10, "way": 3}, ""),
        ({"tasks": 5, "way": 6, "shots": 5}, "5-shot here and 10-shot in the paper"),
        ({"tasks": 3}, ""),
        ({"tasks": 3, "frozen": False}, "the extractor learns here, and is frozen in the paper"),
    ],
)
def test_a_table_says_where_its_tests_are_not_the_papers(settings, told):
    whole = {"way": None, "shots": 10, "tests": 300, "frozen": True} | settings
    own = Record.from_json(record("cfst:cobj", "lwf", **whole), "here")
    notes = report._other_tests([own], report.COBJ_TASKS[settings["tasks"]])
    assert bool(notes) == bool(told)
    assert all(told in note and "holdfast cfst test RUN --" in note for note in notes)


def test_the_table_stands_beside_the_papers_and_says_what_it_is_not(done):
    text = holdfast("table", done[0]).stdout
    assert "not reproduce" in text
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
