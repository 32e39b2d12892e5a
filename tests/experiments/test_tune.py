import math
from dataclasses import replace

import pytest

from holdfast.errors import UserError
from holdfast.experiments.store import Store
from holdfast.experiments.tune import best, grid_of, mark, on_validation, points, some_points, tune
from smallest import prepare, request, run

MEASURES = ["final_accuracy", "forgetting"]


def test_the_grid_is_run_and_scored_on_validation_data_alone(tmp_path):
    def carry_out(plan):
        return {name: run(prepare(node.request), Store(tmp_path)) for name, node in plan.configs.items()}

    trials = tune(
        request("replay"),
        list(points({"replay.capacity": ["40", "120"]})),
        "final_accuracy",
        [0, 1],
        carry_out,
        MEASURES,
    )
    assert [trial.settings for trial in trials] == [{"replay.capacity": "40"}, {"replay.capacity": "120"}]
    assert len(list(Store(tmp_path).runs())) == 4
    for trial in trials:
        for record, value in zip(trial.records, trial.values, strict=True):
            last = [s for s in record.scores if s.split == "validation" and s.stage == 2]
            assert value == pytest.approx(math.fsum(s.score for s in last) / len(last))
            assert not {s.score for s in on_validation(record.scores)} - {
                s.score for s in record.scores if s.split == "validation"
            }


def test_the_choice_may_be_made_on_the_first_stage_and_the_record_says_how(tmp_path):
    store = Store(tmp_path)

    def carry_out(plan):
        return {name: run(prepare(node.request), store) for name, node in plan.configs.items()}

    first = replace(request("replay"), stages=1)
    trials = tune(first, list(points({"replay.capacity": ["40", "120"]})), "final_accuracy", [0], carry_out, MEASURES)
    assert all({s.stage for s in trial.records[0].scores} == {0, 1} for trial in trials), "no later stage was learned"
    best = replace(first, stages=None, settings={**first.settings, **trials[1].settings})
    (chosen,) = mark([best], {"trials": 2, "by": "final_accuracy"}, carry_out, store)
    record = store.folder(chosen).record()
    assert record.tuning == {"trials": 2, "by": "final_accuracy"}
    assert {s.stage for s in record.scores} == {0, 1, 2}


@pytest.mark.parametrize(("word", "learned"), [("replay", 2), ("joint", 2), ("replay", 3)])
def test_only_what_was_learned_is_averaged(tmp_path, word, learned):
    """Of three stages, the first two or all: by hand, from the scores after the last stage that was learned."""

    def carry_out(plan):
        return {name: run(prepare(node.request), Store(tmp_path)) for name, node in plan.configs.items()}

    first = replace(request(word, benchmark__stages=3), stages=learned)
    (trial,) = tune(first, list(points({"train.epochs": ["4"]})), "final_accuracy", [0], carry_out, MEASURES)
    (record,) = trial.records
    last = [s for s in record.scores if s.split == "validation" and s.stage == (1 if word == "joint" else learned)]
    names = list(dict.fromkeys(s.name for s in last))
    assert len(names) == 3, "the record itself has the scores of all"
    expected = math.fsum(s.score for s in last if s.name in names[:learned]) / learned
    assert trial.values == (pytest.approx(expected, abs=1e-12),)
    if learned < 3:
        assert expected > math.fsum(s.score for s in last) / 3, "what was not learned scores less"


def test_the_measures_that_compare_stages_are_those_of_the_learned_ones(tmp_path):
    """The matrix of two learned stages is square, so that forgetting is known."""

    def carry_out(plan):
        return {name: run(prepare(node.request), Store(tmp_path)) for name, node in plan.configs.items()}

    first = replace(request("finetune", benchmark__stages=3), stages=2)
    (trial,) = tune(first, list(points({"train.epochs": ["10"]})), "forgetting", [0], carry_out, MEASURES)
    name, *_ = (s.name for s in trial.records[0].scores if s.split == "validation")
    one, two = (
        next(s.score for s in trial.records[0].scores if (s.name, s.stage, s.split) == (name, stage, "validation"))
        for stage in (1, 2)
    )
    assert one > two
    assert trial.values == (pytest.approx(one - two, abs=1e-12),)


@pytest.mark.parametrize(
    ("grid", "by", "sentence"),
    [
        ({"replay.capacity": ["40"]}, "final_acuracy", "did you mean final_accuracy"),
        ({}, "final_accuracy", "nothing to choose among"),
        ({"replay.capacity": ["40", "many"]}, "final_accuracy", "must be a whole number"),
    ],
)
def test_mistakes_are_told_before_the_first_run(grid, by, sentence):
    def never(asked):
        raise AssertionError

    with pytest.raises(UserError, match=sentence):
        tune(request("replay"), list(points(grid)), by, [0], never, MEASURES)


def test_a_point_whose_run_failed_has_no_mean_and_the_same_run_is_one_point(tmp_path):
    first = request("replay", train__epochs=1)

    def carry_out(plan):
        made = {name: run(prepare(node.request), Store(tmp_path)) for name, node in plan.configs.items()}
        return {name: record for name, record in made.items() if record.config["algorithms"][0]["capacity"] != 80}

    grid = {"replay.capacity": ["40", "80", "040"]}
    good, bad = tune(first, list(points(grid)), "final_accuracy", [0, 1], carry_out, MEASURES)
    assert (len(good.records), good.failed) == (2, ())
    assert bad.settings == {"replay.capacity": "80"}
    assert (bad.records, bad.failed) == ((), bad.runs)
    assert math.isnan(bad.mean)
    assert best([bad, good], higher=True) == best([good, bad], higher=False) == [good]
    assert best([bad], higher=True) == []


def test_some_points_are_drawn_once_each_in_the_grids_order():
    grid = {"ewc.strength": ["1", "10", "100"], "train.epochs": ["1", "5"]}
    every, some = list(points(grid)), some_points(grid, 4, 7, "ewc")
    assert [point for point in every if point in some] == some
    assert some == some_points(grid, 4, 7, "ewc")
    assert {str(some_points(grid, 4, seed, "ewc")) for seed in range(20)} != {str(some)}
    with pytest.raises(UserError, match="the grid of ewc has 6 points, fewer than --trials 7"):
        some_points(grid, 7, 0, "ewc")


def test_settings_of_one_algorithm_are_no_part_of_anothers_grid():
    ewc, both = request("ewc"), request("lwf+replay")
    grid = {"ewc.strength": ["1"], "replay.capacity": ["9"], "train.epochs": ["1"], "unknown.x": ["2"]}
    assert list(grid_of(ewc, grid, [ewc, both])) == ["ewc.strength", "train.epochs", "unknown.x"]
    assert list(grid_of(both, grid, [ewc, both])) == ["replay.capacity", "train.epochs", "unknown.x"]
