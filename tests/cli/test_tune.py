"""`holdfast tune`: chosen on validation data, and the records say so."""

import json

import pytest

from holdfast.cli.tune import tune
from holdfast.errors import UserError
from holdfast.experiments.store import Store


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
    with pytest.raises(UserError, match="no run of the grid has a backward_transfer on validation data: "):
        tune(**given | {"by": "backward_transfer"}, as_json=False)
