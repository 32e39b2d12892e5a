"""Which runs a plan has, which begin with which, and what is completed from which."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from holdfast.engine import checkpoint
from holdfast.errors import Stopped, UserError
from holdfast.experiments import local, runner
from holdfast.experiments.config import resolve
from holdfast.experiments.local import Here, Options
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import carry_out, finish
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from smallest import StopAt, make_learner, prepare, request, run

sys.path.insert(0, str(Path(__file__).parent))
import chained


@pytest.fixture(autouse=True)
def _chained(monkeypatch):
    chained.register(monkeypatch)


def asked(algorithm="replay", **more):
    return replace(request(algorithm), benchmark="chained", **more)


def here(plan, store, **more):
    return carry_out(plan, store, Here(store, Options(), Setups()), tries=1, **more)


def test_a_plan_has_what_its_runs_need_once_and_in_an_order_that_one_process_can_follow():
    plan = graph([asked(), asked("finetune"), asked("er")])
    assert list(plan.labels.values()) == [
        "joint: joint, seed 0",
        "replay, seed 0",
        "after 1: finetune, seed 0",
        "after 2: finetune, seed 0",
        "finetune, seed 0",
        "after 1: finetune, seed 0",
        "after 2: finetune, seed 0",
    ]
    assert [plan.labels[run] for run in plan.wanted] == ["replay, seed 0", "finetune, seed 0"]
    seen = set()
    for node in plan.configs.values():
        assert node.after is None or node.after in seen
        seen.add(node.id)
    replay, finetune = plan.wanted
    assert plan.needs[replay]["joint"] == plan.needs[finetune]["joint"]
    assert plan.configs[plan.needs[replay]["after 2"]].request.start == f"{replay}@2"


def test_a_need_keeps_the_settings_that_still_mean_something():
    own = replace(asked(), settings={"er.capacity": 40, "benchmark.stages": 2, "train.epochs": 1, "model.width": 8})
    plan = graph([own])
    joint, run, later, _ = plan.configs.values()
    assert joint.request.settings == {"benchmark.stages": 2, "train.epochs": 1, "model.width": 8}
    assert later.request.settings == {"model.width": 8, "benchmark.stages": 1}
    assert (later.request.model, later.request.seed) == ("perceptron", run.request.seed)


def test_a_run_that_is_what_it_needs_is_its_own_reference(tmp_path):
    store, plan = Store(tmp_path), graph([replace(asked("joint"), settings=request().settings)])
    here(plan, store)
    (node,) = plan.asked()
    assert plan.needs[node.id]["joint"] == node.id
    record = store.folder(node.id).record()
    assert record.summary["last of joint"] == record.scores[-1].score


def test_without_needs_only_what_was_asked_for_is_run_and_the_measures_say_why():
    assert list(graph([asked()], needs=False).labels.values()) == ["replay, seed 0"]


def test_the_weights_of_every_stage_are_kept_and_survive_the_run_exactly_under_resume(tmp_path):
    whole, stopped = Store(tmp_path / "whole"), Store(tmp_path / "stopped")
    ready = prepare(asked())
    run(ready, whole)
    for steps in (2, 5, 4):
        with pytest.raises(Stopped):
            run(ready, stopped, watch=StopAt(steps))
    run(ready, stopped)
    one, two = (store.folder(ready.config.id) for store in (whole, stopped))
    assert [path.name for path in sorted(one.stages.iterdir())] == ["001.safetensors", "002.safetensors"]
    for path in one.stages.iterdir():
        assert path.read_bytes() == (two.stages / path.name).read_bytes()
    assert (one.stages / "002.safetensors").read_bytes() == one.weights.read_bytes()
    assert (one.stages / "001.safetensors").read_bytes() != one.weights.read_bytes()


def test_a_run_that_starts_from_another_has_its_encoder_and_new_heads(tmp_path):
    store = Store(tmp_path)
    first = run(prepare(asked()), store)
    from holdfast.experiments.start import start_file

    later = prepare(replace(request(), start=f"{first.id}@1"))
    plain = prepare(request())
    assert later.config.id != plain.config.id
    assert "start" not in plain.config.content
    path = start_file(later.config.request.start, store)
    given = checkpoint.read(path)
    begun, fresh = make_learner(later, start=path).model, make_learner(plain).model
    for name, value in begun.state_dict().items():
        expected = given[name] if name.startswith("encoder.") else fresh.state_dict()[name]
        assert torch.equal(value, expected), name
    assert not torch.equal(
        begun.state_dict()["encoder.embedding.weight"], fresh.state_dict()["encoder.embedding.weight"]
    )


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ("{id}@7", "the weights after stage 7 were not kept; those after its last stage, 2, are there"),
        ("000000000000@1", "has no finished run 000000000000: run it first"),
    ],
)
def test_a_start_that_is_not_there_is_told(tmp_path, start, sentence):
    store = Store(tmp_path)
    first = run(prepare(asked()), store)
    with pytest.raises(UserError, match=sentence):
        run(prepare(replace(request(), start=start.format(id=first.id))), store)
    with pytest.raises(UserError, match="write it as RUN@STAGE"):
        resolve(replace(request(), start="first"))


def test_a_start_from_another_model_is_told(tmp_path):
    store = Store(tmp_path)
    first = run(prepare(asked()), store)
    with pytest.raises(UserError, match=r"was made by another model: .* start from a run of the same model"):
        run(prepare(replace(request(model__width=8), start=f"{first.id}@1")), store)


def test_a_longer_table_of_positions_repeats_the_shorter(tmp_path):
    from holdfast.experiments.start import begin_with
    from holdfast.models.base import Network
    from holdfast.models.vilt import TinyVilt
    from holdfast.types import Inputs

    sees = Inputs(image=(3, 32, 32), text=4, vocabulary=9)
    short, long = (TinyVilt(side=32, weights="", text_positions=places).encoder(sees) for places in (None, 100))
    checkpoint.write(tmp_path / "001.safetensors", Network(short, {}).state_dict())
    begin_with(Network(long, {}), tmp_path / "001.safetensors")
    rows, repeated = short.text.positions.weight, long.text.positions.weight
    assert len(rows) < 100 == len(repeated)
    assert torch.equal(repeated, rows[torch.arange(100) % len(rows)])
    assert torch.equal(short.pooler.weight, long.pooler.weight)


def test_the_whole_plan_is_carried_out_and_its_measures_completed(tmp_path):
    store, plan = Store(tmp_path), graph([asked()])
    result = here(plan, store)
    assert not result.failed()
    (node,) = plan.asked()
    record = store.folder(node.id).record()
    assert record.others == plan.needs[node.id]
    for name in ("joint", "after 1", "after 2"):
        other = store.folder(plan.needs[node.id][name]).record()
        assert record.summary[f"last of {name}"] == other.scores[-1].score
    assert here(plan, store).tries == {}, "all is done"


def test_completing_again_keeps_what_an_earlier_command_brought(tmp_path):
    store, plan = Store(tmp_path), graph([asked()])
    here(plan, store)
    (node,) = plan.asked()
    before = store.folder(node.id).record()
    again = runner.complete(before, node.benchmark, {"joint": plan.needs[node.id]["joint"]}, store)
    assert again == before == store.folder(node.id).record()
    changed = runner.complete(before, node.benchmark, {"joint": node.id}, store)
    assert changed.others == {**plan.needs[node.id], "joint": node.id}, "a name that is given anew"
    assert changed.summary["last of joint"] == before.scores[-1].score != before.summary["last of joint"]
    assert changed.summary["last of after 2"] == before.summary["last of after 2"]
    assert store.folder(node.id).record() == changed


def test_what_stages_need_that_are_not_learned_is_not_run():
    labels = list(graph([asked(stages=1)]).labels.values())
    assert labels == ["joint: joint, seed 0", "replay, seed 0", "after 1: finetune, seed 0"]


def test_a_failure_stops_no_other_but_those_that_begin_with_it(tmp_path, monkeypatch):
    def broken(config, *arguments, **named):
        if config.title == "replay":
            raise ZeroDivisionError("by the test")
        return runner.run(config, *arguments, **named)

    monkeypatch.setattr(local, "run", broken)
    store, plan = Store(tmp_path), graph([asked(), asked("finetune")])
    told = []
    result = carry_out(
        plan,
        store,
        Here(store, Options(), Setups()),
        tries=2,
        told=lambda config, outcome, again: told.append((plan.labels[config.id], outcome.status, again)),
    )
    replay, finetune = plan.asked()
    assert result.tries[replay.id] == 2
    assert [each[2] for each in told if each[:2] == ("replay, seed 0", "failed")] == [True, False]
    assert {o.id for o in result.failed()} == {
        replay.id,
        *(plan.needs[replay.id][f"after {stage}"] for stage in (1, 2)),
    }
    assert f"starts from the weights of run {replay.id}" in result.outcomes[plan.needs[replay.id]["after 1"]].reason
    assert finish(plan, replay.id, store) is None
    assert store.folder(finetune.id).record().summary["last of after 2"] is not None


def test_a_needed_run_that_failed_leaves_a_reason(tmp_path, monkeypatch):
    def broken(config, *arguments, **named):
        if config.title == "joint":
            raise ZeroDivisionError("by the test")
        return runner.run(config, *arguments, **named)

    monkeypatch.setattr(local, "run", broken)
    store, plan = Store(tmp_path), graph([asked()])
    here(plan, store)
    record = store.folder(plan.asked()[0].id).record()
    assert record.summary["last of joint"] is None
    assert record.reasons["last of joint"] == "the run 'joint' is missing"
    assert record.summary["last of after 1"] is not None


def test_data_that_runs_share_is_read_once(monkeypatch):
    reads = []
    kind = type(resolve(Request("patterns")).benchmark)
    real = kind.setup
    monkeypatch.setattr(kind, "setup", lambda self, wants: reads.append(self.seed) or real(self, wants))
    setups = Setups()
    requests = [replace(request(word), seed=seed) for seed in (0, 1) for word in ("finetune", "replay", "joint")]
    plan = graph(requests, setups=setups)
    assert reads == [0, 1]
    for node in list(plan.configs.values())[3:]:
        assert setups.of(node).stream.stages
    assert reads == [0, 1], "the last data is still there"
    assert [prepare(each).config.id for each in requests] == list(plan.configs), "and the ids are those of runs alone"


def test_only_the_first_stages_are_learned_where_asked(tmp_path):
    one, all_, joint, joint_one = (
        prepare(each)
        for each in (
            replace(request(), stages=1),
            replace(request(), stages=2),
            request("joint"),
            replace(request("joint"), stages=1),
        )
    )
    assert len(one.setup.stream.stages) == 1
    assert all_.config.id == prepare(request()).config.id, "all of them is no other run"
    assert joint.config.id != joint_one.config.id
    assert len(run(one, Store(tmp_path)).config["training"]) == 1


def test_a_preset_stands_below_what_a_user_sets(monkeypatch):
    from holdfast.benchmarks.patterns.benchmark import Patterns

    seen = []

    def preset(self, model, algorithm):
        seen.append((model, algorithm))
        return {"train.epochs": 7, "replay.capacity": 11}

    monkeypatch.setattr(Patterns, "preset", preset)
    found = prepare(Request("patterns", "er", scale="tiny", settings={"er.capacity": 12})).config
    assert found.training[0]["epochs"] == 7
    assert found.algorithms[0].capacity == 12
    assert seen == [("perceptron", "replay")]
    assert resolve(Request("patterns", "er", scale="tiny")).algorithms[0].capacity == 11
