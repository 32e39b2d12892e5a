"""Which records stand in one row, and what a row is called."""

from holdfast.experiments.store import Record
from holdfast.reports.groups import distinct, experiments, rows_of
from holdfast.reports.runs import on_world
from reports.stores import record


def made(*args, algorithms=None, training=None, start=None, **kwargs):
    value = record(*args, **kwargs)
    value["config"] |= {"algorithms": algorithms} if algorithms is not None else {}
    value["config"] |= {"training": training} if training is not None else {}
    value["config"] |= {"start": start} if start is not None else {}
    return Record.from_json(value, "test")


def test_seeds_are_one_row_in_their_order():
    rows = rows_of([made(algorithm=name, seed=seed) for name in ("ewc", "lwf") for seed in (2, 0, 1)])
    assert {title: [r.config["seed"] for r in group] for title, group in rows.items()} == {
        "ewc": [0, 1, 2], "lwf": [0, 1, 2]
    }  # fmt: skip


def test_a_sub_sample_that_is_drawn_anew_with_each_seed_is_no_other_row():
    rows = rows_of([made("climb:lowshot", seed=seed, sample=seed) for seed in (0, 1, 2)])
    assert [len(group) for group in rows.values()] == [3]


def test_what_is_kept_of_a_run_makes_no_row_and_no_second_seed():
    records = [made(seed=seed, run=f"{seed}0") for seed in (0, 1)] + [
        made(seed=seed, run=f"{seed}1") for seed in (1, 2)
    ]
    for each in records[2:]:
        each.config["predictions"] = True
    ((title, group),) = rows_of(records).items()
    assert "predictions" not in title
    assert [record.config["seed"] for record in group] == [0, 1, 2]
    assert group[1].id.startswith("10"), "the earlier record of the two counts"


def test_rows_of_one_algorithm_are_named_by_what_differs():
    rows = rows_of([made(algorithms=[{"name": "replay", "capacity": c}], run=str(c)) for c in (50, 80)])
    assert list(rows) == ["replay (capacity=50)", "replay (capacity=80)"]
    fast, slow = ([{"learning_rate": rate, "epochs": 3}] * 2 for rate in (0.1, 0.001))
    rows = rows_of([made(training=fast, run="a"), made(training=slow, run="b")])
    assert list(rows) == ["finetune (learning_rate=0.1)", "finetune (learning_rate=0.001)"]


def test_where_too_much_differs_the_run_is_named():
    many = [{"name": "replay", **{f"setting{n}": value for n in range(5)}} for value in (1, 2)]
    rows = rows_of([made(algorithms=[each], run=f"{n}00000") for n, each in enumerate(many)])
    assert list(rows) == ["replay (000000)", "replay (100000)"]


def test_experiments_differ_by_benchmark_model_settings_and_data():
    records = [
        made(),
        made(seed=1),
        made(scale="small", run="a"),
        made(model="resnet18", run="b"),
        made(given=" --data x", run="c"),
        made(benchmark="clvqa", run="d"),
    ]
    found = experiments(records)
    assert [(e.benchmark, len(e.records), e.world) for e in found] == [
        ("clvqa", 1, True), ("patterns", 2, True), ("patterns", 1, True), ("patterns", 1, True), ("patterns", 1, False)
    ]  # fmt: skip
    assert len({e.title for e in found}) == len({e.key for e in found}) == 5


def test_runs_of_one_seed_on_different_data_are_no_mean():
    def on(data, seed, **given):
        found = record(seed=seed, run=f"{data}{seed}", **given)
        return Record.from_json({**found, "config": {**found["config"], "data": data}}, "test")

    records = [on(data, seed) for data in ("a" * 32, "b" * 32) for seed in (0, 1)]
    rows = {title: [r.id for r in group] for title, group in rows_of(records).items()}
    assert {title: len(ids) for title, ids in rows.items()} == {
        "finetune (data=aaaaaaaa)": 2, "finetune (data=bbbbbbbb)": 2
    }  # fmt: skip
    assert [len(each.records) for each in experiments(records)] == [2, 2]
    follows = [on(data, seed) for data, seed in (("a" * 32, 0), ("b" * 32, 1))]  # data that follow the seed
    assert list(rows_of(follows)) == ["finetune"]


def test_a_run_that_starts_from_another_counts_by_what_that_was_not_by_its_seed():
    upstream = [made(algorithm=name, seed=seed, run=f"{name}{seed}") for name in ("ewc", "lwf") for seed in (0, 1)]
    tails = [made(seed=r.config["seed"], run=f"low{r.id}", benchmark="b", start=f"{r.id}@2") for r in upstream]
    rows = rows_of(tails, {r.id: r.config for r in upstream})
    assert sorted(len(group) for group in rows.values()) == [2, 2]
    unknown = rows_of(tails)
    assert sorted(len(group) for group in unknown.values()) == [1, 1, 1, 1]


def test_only_a_named_folder_is_not_the_worlds():
    assert on_world({"command": "holdfast run clvqa --set model.data=3"})
    assert not on_world({"command": "holdfast run clvqa --data=/clevr"})
    assert on_world({"command": 'holdfast run "clvqa'})  # a broken command is never taken for real data
    assert on_world({})
    assert on_world({"command": "holdfast run clvqa --data made", "world": True})


def test_versions_of_parts_that_follow_from_a_setting_are_not_what_tells_rows_apart():
    settings = [
        {"memory": "balanced-sqrt", "parts": {"memory TargetBalanced": 1}},
        {"memory": "reservoir", "parts": {"memory Reservoir": 1}},
    ]
    assert distinct(["er", "er"], settings, "ab") == ["er (memory=balanced-sqrt)", "er (memory=reservoir)"]
    versions = [{"parts": {"algorithm Replay": version}} for version in (1, 2)]
    assert distinct(["er", "er"], versions, "ab") == ["er (algorithm Replay=1)", "er (algorithm Replay=2)"]
