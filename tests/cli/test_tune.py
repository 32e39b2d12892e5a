"""`holdfast tune`: chosen on validation data, and the records say so."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.benchmarks.base import Measure
from holdfast.benchmarks.patterns import protocol
from holdfast.cli.tune import _doubt, tune
from holdfast.errors import RunError, UserError
from holdfast.experiments.store import Store
from holdfast.experiments.tune import Trial, best
from holdfast.reports.tables import comparison


def test_the_chosen_runs_say_among_how_many_they_were_chosen(tmp_path, capsys):
    given = {
        "benchmark": "patterns",
        "algorithm": "er",
        "grid": ["replay.capacity=40,80"],
        "by": "final_accuracy",
        "scale": "tiny",
        "settings": ["train.epochs=1", "benchmark.stages=2"],
        "seeds": 2,
        "stages": 1,
        "jobs": 1,
        "out": tmp_path,
        "device": "cpu",
    }
    tune(**given, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["trials"], told["split"], told["stages"]) == (2, "validation", 1)
    assert [point["settings"] for point in told["points"]] == [{"replay.capacity": "40"}, {"replay.capacity": "80"}]
    best = max(told["points"], key=lambda point: sum(point["final_accuracy"]))
    assert sum(best["final_accuracy"]) == max(sum(point["final_accuracy"]) for point in told["points"])
    records = [Store(tmp_path).folder(run).record() for run in told["chosen"]]
    assert [record.config["seed"] for record in records] == [0, 1]
    for record in records:
        assert str(record.config["algorithms"][0]["capacity"]) == told["best"]["replay.capacity"]
        assert (record.tuning["trials"], record.tuning["by"]) == (2, "final_accuracy")
        assert len(record.config["training"]) == 2, "of all stages"
    tune(**given, as_json=False)
    printed = capsys.readouterr().out
    assert "2 points, 2 seeds; chosen on validation data alone, of the first 1 stage." in printed
    assert "On the test data: holdfast run patterns --algorithm er" in printed
    with pytest.raises(UserError, match="no run of the grid has 'backward_transfer' on validation data: "):
        tune(**given | {"by": "backward_transfer"}, as_json=False)


GRID = {
    "benchmark": "patterns",
    "algorithm": "ewc",
    "grid": ["ewc.strength=1,1000"],
    "by": "final_accuracy",
    "scale": "tiny",
    "settings": ["train.epochs=1", "benchmark.stages=2"],
    "jobs": 1,
    "device": "cpu",
}
BROKEN = """
from dataclasses import dataclass
from holdfast.algorithms.base import Algorithm
@dataclass
class Later(Algorithm):
    def begin(self, learner, stage):
        if stage.name == "stage-2":
            raise IndexError("a mistake in the second stage")
"""


def test_a_point_whose_run_failed_stays_as_failed_and_the_end_is_that_of_run(tmp_path, capsys):
    given = GRID | {"grid": ["train.learning_rate=1e-3,1e30"], "out": tmp_path}
    with pytest.raises(RunError, match="1 of 2 runs failed"):
        tune(**given, as_json=True)
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    good, bad = told["points"]
    assert (told["trials"], told["failed"], told["best"]) == (2, 1, {"train.learning_rate": "1e-3"})
    assert good["final_accuracy"][0] > 0
    assert good["failed"] == []
    assert bad["final_accuracy"] == [None]
    assert bad["failed"] == bad["runs"]
    assert told["chosen"] == good["runs"]
    with pytest.raises(RunError, match="1 of 2 runs failed"):
        tune(**given)
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if "1e30" in line)
    assert row == ["train.learning_rate=1e30", "–", "failed"]
    with pytest.raises(RunError, match="1 of 1 runs failed"):
        tune(**given | {"grid": ["train.learning_rate=1e30"]})
    assert "1 point, 1 seed; nothing could be chosen." in capsys.readouterr().out


def test_a_chosen_run_that_fails_is_told_and_the_end_is_that_of_run(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    given = GRID | {"algorithm": "mine.py:Later", "grid": ["train.batch_size=16,32"], "stages": 1}
    with pytest.raises(RunError, match="1 of 1 runs failed"):
        tune(**given, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["failed"], told["chosen"], len(told["chosen_failed"])) == (0, [], 1)
    with pytest.raises(RunError):
        tune(**given)
    assert f"1 of the chosen runs failed: {told['chosen_failed'][0]}." in capsys.readouterr().out


def test_points_that_tie_are_told_and_the_first_of_them_is_taken(tmp_path, capsys):
    given = GRID | {"stages": 1, "out": tmp_path}  # EWC has nothing to keep in the first stage
    tune(**given, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["tied"] == [{"ewc.strength": "1"}, {"ewc.strength": "1000"}]
    assert told["best"] == {"ewc.strength": "1"}
    assert Store(tmp_path).folder(told["chosen"][0]).record().tuning["tied"] == told["tied"]
    tune(**given)
    printed = capsys.readouterr().out
    assert "2 points tie for the best final acc.; the first of them was chosen." in printed
    assert [line.split()[-1] for line in printed.splitlines() if "ewc.strength=1" in line[:20]] == ["best", "tied"]


def test_the_example_of_the_documentation_can_choose(tmp_path, capsys):
    """On patterns in its place, which takes seconds: as many stages and the same grid of ewc.strength."""
    text = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("holdfast tune"))
    words = line.split()
    stages, grid = (words[words.index(name) + 1] for name in ("--stages", "--grid"))
    given = GRID | {"grid": [grid], "stages": int(stages), "settings": ["train.epochs=3"], "out": tmp_path}
    tune(**given, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 3
    assert len({point["final_accuracy"][0] for point in told["points"]}) > 1, "the setting makes a difference"


def test_what_is_printed_is_what_was_done(tmp_path, capsys, monkeypatch):
    shown = replace(protocol.MEASURES["final_accuracy"], factor=1, decimals=3)
    monkeypatch.setitem(protocol.MEASURES, "final_accuracy", shown)
    tune(**GRID | {"grid": ["ewc.strength=1,1.0,1"], "stages": 99, "out": tmp_path})
    printed = capsys.readouterr().out
    assert "1 point, 1 seed; chosen on validation data alone.\n" in printed
    assert re.search(r"ewc.strength=1 +0\.\d{3} +best", printed)
    assert f"--set ewc.strength=1 --out {tmp_path}" in printed.replace("\n", " ").replace("  ", " ")


def points(*values):
    return [Trial({"ewc.strength": str(n)}, row, (str(n),), ()) for n, row in enumerate(values)]


@pytest.mark.parametrize(
    ("trials", "sentence"),
    [
        (points((0.6,), (0.5,)), "No test can tell whether the chosen point is better than the others: one seed."),
        (
            points((0.6, 0.7, 0.65), (0.61, 0.6, 0.66), (0.1, 0.2, 0.16)),
            "Chosen by its mean alone; these points are not distinguishable from it (paired t over 3 seeds, Holm): "
            "ewc.strength=1.",
        ),
        (
            points((0.6, 0.7, 0.65), (0.1, 0.21, 0.14), (math.nan,) * 3),
            "The chosen point is distinguishable from every other point (paired t over 3 seeds, Holm).",
        ),
        (points((0.6, 0.7, 0.65)), None),
        (points((math.nan,)), None),
    ],
)
def test_a_runner_up_that_is_not_distinguishable_is_told(trials, sentence):
    measure = protocol.MEASURES["final_accuracy"]
    said = _doubt(trials, best(trials, True), measure, range(len(trials[0].values)))
    assert said == ([sentence] if sentence else [])


def test_nothing_is_chosen_by_a_measure_without_a_direction(tmp_path, monkeypatch):
    monkeypatch.setitem(protocol.MEASURES, "final_accuracy", Measure("mine"))
    with pytest.raises(UserError, match="'final_accuracy' cannot be used to choose"):
        tune(**GRID | {"out": tmp_path})


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        (["ewc.strength=1,2", "ewc.strength=3"], "--grid ewc.strength is given twice"),
        (["trainrate"], "^--grid 'trainrate': write it as"),
    ],
)
def test_a_grid_that_is_no_grid_is_told(tmp_path, grid, sentence):
    with pytest.raises(UserError, match=sentence):
        tune(**GRID | {"grid": grid, "out": tmp_path})


def test_several_algorithms_get_the_same_number_of_trials_and_tables_say_so(tmp_path, capsys):
    given = GRID | {
        "algorithm": "ewc,er",
        "grid": ["ewc.strength=1,10,100", "replay.capacity=40,80", "train.epochs=1,2"],
        "settings": ["benchmark.stages=2"],
        "out": tmp_path,
    }
    with pytest.raises(UserError, match="say how many points each of them may try: --trials 8"):
        tune(**given)
    tune(**given, trials=3, as_json=True)
    ewc, er = json.loads(capsys.readouterr().out)
    assert [(told["algorithm"], len(told["points"])) for told in (ewc, er)] == [("ewc", 3), ("er", 3)]
    assert {key for point in er["points"] for key in point["settings"]} == {"replay.capacity", "train.epochs"}
    records = [Store(tmp_path).folder(run).record() for told in (ewc, er) for run in told["chosen"]]
    assert all(record.tuning["trials"] == 3 for record in records)
    notes = comparison(records).notes
    assert "Settings were chosen on validation data: the best of 3: ewc, replay." in notes
    untuned = replace(records[1], tuning={})
    assert "the best of 3: ewc; not tuned: replay." in " ".join(comparison([records[0], untuned]).notes)
    assert not any("chosen" in note for note in comparison([replace(each, tuning={}) for each in records]).notes)
