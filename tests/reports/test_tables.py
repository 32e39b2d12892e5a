"""Tables for a terminal: a dash comes with its reason, and the reason is true."""

import pytest

from holdfast.errors import UserError
from holdfast.experiments.store import Record
from holdfast.reports import overview
from holdfast.reports.groups import experiments
from holdfast.reports.tables import comparison
from reports.stores import record


def climb(algorithm="finetune", seed=0, stages=None, **summary):
    """A made-up run of climb with these measures; None: without a value, since its baseline is near chance."""
    value = record("climb", algorithm, seed, order="vqav2>nlvr2", summary=summary)
    value["reasons"] = {name: "the baseline is near chance" for name, number in summary.items() if number is None}
    value["config"] |= {"stages": stages} if stages else {}
    return Record.from_json(value, "test")


def notes(*records):
    """What stands under the table of a command, and under that of a page."""
    (found,) = experiments(records)
    return comparison(records).notes, overview.comparison(found).notes


def test_a_measure_that_a_later_seed_lacks_is_a_dash_with_its_reason():
    runs = [climb(seed=0, forgetting_transfer=40.0), climb(seed=1, forgetting_transfer=None)]
    assert comparison(runs).rows[0][:2] == ("finetune", "–")
    for under in notes(*runs):
        assert "finetune: no T_F: the baseline is near chance." in under


def test_what_was_not_asked_for_is_not_called_old():
    asked = climb("replay", knowledge_transfer=1.0, intransigence=0.1, low_shot_vision=2.0)
    for under in notes(asked, climb(knowledge_transfer=1.0)):
        assert "finetune: no Int: it needs runs that were not requested (--set benchmark.joint=true)." in under
        assert "finetune: no T_LS vision: it needs runs that were not requested (--downstream)." in under
        assert not any("older than the measure" in note for note in under)


def test_a_task_that_was_never_learned_is_not_called_old():
    runs = [climb("replay", vqav2=0.5, nlvr2=0.6), climb(vqav2=0.5, stages=1)]
    assert "finetune: no nlvr2: only 1 of its stages was learned." in comparison(runs).notes


def test_runs_that_learned_fewer_stages_are_not_compared_with_the_others():
    found = experiments([climb("replay", vqav2=0.5, nlvr2=0.6), climb(vqav2=0.5, stages=1)])
    assert sorted(each.title.partition("(")[2] for each in found) == ["1 stage)", "all stages)"]


def test_rows_that_were_trained_differently_say_so():
    runs = [climb("replay", vqav2=0.5), climb(vqav2=0.4)]
    for under in notes(*runs):
        assert not any("trained alike" in note for note in under)
    for stage in runs[0].config["training"]:
        stage["epochs"] = 20
    for under in notes(*runs):
        assert "The rows were not trained alike: epochs 20 (replay), 10 (finetune)." in under
    runs[1].config["start"] = "abc@1"
    told = "The rows were not trained alike: epochs 20 (replay), 10 (finetune); start none (replay), a run's weights ("
    assert any(note.startswith(told) for note in comparison(runs).notes)


def test_pooled_measures_are_in_percent_too():
    assert comparison([climb(vqav2=0.5, forgetting_transfer=40.0)]).notes[0].startswith("vqav2, T_F in percent;")


def test_an_old_record_is_called_old():
    for under in notes(climb("replay", final_accuracy=0.5, forward_transfer=0.1), climb(final_accuracy=0.5)):
        assert "finetune: no FWT: this record is older than the measure." in under


def outside(**measures):
    """A made-up run of a benchmark that is not built in, whose record says how its measures are shown."""
    value = record("Mine", "replay", 0, summary={"perplexity": 12.345, "recall": 0.5, "unsaid": 1.0})
    return value | {"measures": measures}


def test_a_benchmark_that_is_not_built_in_is_shown_as_its_record_says():
    shown = {"perplexity": {"title": "PPL", "higher": False, "factor": 1, "decimals": 2}, "recall": {"title": "R@1"}}
    found = comparison([Record.from_json(outside(**shown), "test")])
    assert found.columns == ("algorithm", "PPL ↓", "R@1")
    assert found.rows == (("replay", "12.35", "50.0"),)
    assert "R@1 in percent" in found.notes[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"title": 3},
        {"title": "R", "higher": 1},
        {"title": "R", "decimals": 99},
        {"title": "R", "factor": 1e300},
        {"title": "R", "mean_of": [1]},
        {"title": "R", "code": "import os"},
        "R",
    ],
)
def test_a_record_whose_measures_are_not_as_they_must_be_is_refused(wrong):
    with pytest.raises(UserError, match=r"not a record of a run \(measures\)"):
        Record.from_json(outside(recall=wrong), "test")
