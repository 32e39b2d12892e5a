"""The benchmark climb: stages, heads, needs, and every algorithm on it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import holdfast
from holdfast import registry
from holdfast.algorithms.importance import some_of
from holdfast.bench.calibration import CalibrationCase, all_cases, calibration
from holdfast.benchmarks.climb import paper
from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.benchmarks.climb.paper import TASKS
from holdfast.benchmarks.climb.runs import RunsAtScale
from holdfast.benchmarks.climb.tables import sheet
from holdfast.benchmarks.climb.transfer import LowShotRun
from holdfast.data.table import Shared
from holdfast.engine.files import write_json
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.runner import complete
from holdfast.experiments.store import Record, Store
from holdfast.papers import table
from holdfast.reports.tables import shown_measures
from holdfast.types import Score, Stage, Training, Wants
from smallest import make_learner, prepare, run, trained

WANTS = Wants(side=32)
SMALLEST = {
    "benchmark.train": 24,
    "benchmark.scored": 16,
    "model.width": 16,
    "model.heads": 2,
    "model.hidden": 16,
    "train.epochs": 1,
    "train.patience": 1,
    "train.batch_size": 8,
    "train.learning_rate": 3e-3,
}
"""A ViLT so small that it takes a few milliseconds a step; its weights are its own."""
OWN = {
    "replay": {"replay.every": 1},
    "mir": {"mir.candidates": 8, "mir.size": 4},
    "coda-prompt": {"train.weight_decay": 0},
}
CLASSES = ("ease", "er-ace", "gdumb", "icarl", "ranpac", "simplecil", "slda", "wa")
REFUSED = {
    **dict.fromkeys(CLASSES, "one class for each example, but task 'vqav2' has none"),
    "mntdp": "modular network",
    "rpsnet": "modular network",
}
"""VQAv2 has several answers that are right to a degree, and ViLT is one network, not many modules."""

COST = dict.fromkeys(("steps", "seconds", "examples_forward", "examples_backward", "memory_bytes", "parameters"), 0)


def request(algorithm="finetune", order=None, model="vilt-tiny", **settings):
    named = {name.replace("__", "."): value for name, value in settings.items()}
    scratch = {"vilt-tiny": ("weights",), "vault-tiny": ("weights", "bert")}.get(model, ())
    chosen = SMALLEST | {f"model.{name}": "" for name in scratch}
    return Request(
        "climb", algorithm, model, scale="tiny", order=order, settings=chosen | OWN.get(algorithm, {}) | named
    )


def test_stages_heads_and_training_follow_table_4():
    setup = Climb(scale="tiny").setup(WANTS)
    assert [stage.name for stage in setup.stream.stages] == list(TASKS)
    assert {name: task.head for name, task in setup.tasks.items()} == {name: name for name in TASKS}, "one head each"
    assert [task.reads.kind for task in setup.tasks.values()] == ["classify", "classify", "classify", "choose"]
    assert setup.tasks["nlvr2"].reads.images == setup.inputs.images == 2
    for row in table("climb", 4):
        found = paper.training(row["task"], "paper")
        printed = row["learning_rate"], row["weight_decay"], row["adam_epsilon"], row["epochs"], row["batch_size"]
        assert (
            found.learning_rate,
            found.weight_decay,
            found.epsilon,
            found.epochs,
            found.batch_size,
        ) == printed
        assert (found.optimiser, found.schedule, found.warmup, found.betas) == ("adamw", "linear", 0.1, (0.9, 0.98))
        assert found.patience == found.epochs, "model selection by validation data"


def test_every_stage_is_chosen_by_validation_data_and_tested_on_other():
    setup = Climb(scale="tiny").setup(WANTS)
    for stage in setup.stream.stages:
        (validation,) = stage.validation
        assert (validation.name, validation.split) == (stage.name, "validation")
        (test,) = (e for e in setup.protocol.evaluations if e.name == stage.name and e.split == "test")
        ids = [set(part.tolist()) for part in (stage.train, validation.ids, test.ids)]
        assert sum(map(len, ids)) == len(set().union(*ids))


def test_what_a_batch_of_each_task_holds():
    setup = Climb(scale="tiny").setup(WANTS)
    shapes = {}
    for stage in setup.stream.stages:
        (part,) = setup.data.fetch(stage.train[:3], torch.device("cpu")).parts
        assert part.task == stage.name
        shapes[stage.name] = (part.inputs["image"].shape[1:], part.inputs["text"].shape[1:-1], part.targets.shape[1:])
    one, two = (3, 32, 32), (2, 3, 32, 32)
    assert shapes == {
        "vqav2": (one, (), (2, 10)),
        "nlvr2": (two, (), ()),
        "snli-ve": (one, (), ()),
        "vcr": (one, (4,), ()),
    }


def test_a_task_alone_is_the_task_of_the_sequence():
    whole, alone = (Climb(scale="tiny", order=order).setup(WANTS) for order in ("", "vcr"))
    first, last = alone.stream.stages[0], whole.stream.stages[-1]
    assert list(alone.tasks) == ["vcr"]
    assert first.training == last.training
    assert alone.data.targets(first.train).tolist() == whole.data.targets(last.train).tolist()
    one, other = (s.data.fetch(stage.train, "cpu").parts[0] for s, stage in ((alone, first), (whole, last)))
    assert all(torch.equal(one.inputs[name], other.inputs[name]) for name in ("image", "text", "text_length"))


def test_vcr_qar_is_learned_where_an_order_names_it_and_nowhere_else(tmp_path):
    store = Store(tmp_path)
    asked = request("er", order="vcr>vcr-qar", benchmark__scored=40)
    direct = Climb(order="vcr>vcr-qar").needs("er")
    assert dict(direct["direct/vcr-qar"].change) == {"algorithm": "finetune", "order": "vcr-qar"}
    record = run(prepare(asked), store)
    directs = {name: run(prepare(request(order=name, benchmark__scored=40)), store) for name in ("vcr", "vcr-qar")}
    others = {f"direct/{name}": other.scores for name, other in directs.items()}
    assert {score.name for score in record.scores} == {"vcr", "vcr-qar"}
    assert record.chance == {"vcr": 0.25, "vcr-qar": 0.25}
    after, alone = (
        next(s.score for s in log if (s.name, s.split, s.stage) == ("vcr-qar", "test", stage))
        for log, stage in ((record.scores, 2), (others["direct/vcr-qar"], 1))
    )
    assert record.summary["vcr-qar"] == after
    share = Climb.shares(record.scores, others)["knowledge_transfer"]["vcr-qar"]
    assert (share.change, share.base) == pytest.approx((after - alone, alone - 0.25))
    assert "vcr-qar" in shown_measures([record, directs["vcr"]])
    assert "vcr-qar" not in shown_measures([directs["vcr"]]), "other runs' tables have no column for it"
    runs = RunsAtScale([record, *directs.values()])
    assert all("vcr-qar" not in sheet(number, runs).columns for number in ("8", "9a", "9b")), (
        "the paper has no such task"
    )


def test_the_extra_task_trains_and_starts_low_shot_runs_like_the_task_it_resembles():
    assert all(paper.training("vcr-qar", scale) == paper.training("vcr", scale) for scale in ("tiny", "paper"))
    whole = Climb(scale="tiny", order="vcr-qar>vcr>nlvr2").setup(WANTS)
    assert [len(stage.train) for stage in whole.stream.stages[:2]] == [160, 160]
    assert Climb(order="vcr>vcr-qar").reads() == ("vcr",)
    few = {
        each.task
        for name in Climb(order="vcr>vcr-qar", downstream=True).needs("er")
        if (each := LowShotRun.parse(name))
    }
    assert "imdb" in few
    assert "vcr-qar" not in few, "low-shot runs learn the paper's tasks"
    joined = Climb(order="vcr-qar").joined([Climb(order="vcr-qar"), Climb(order="nlvr2")])
    assert joined.order == "nlvr2>vcr-qar"


def test_the_direct_runs_are_needed_once_by_all():
    needs = Climb(scale="tiny").needs("ewc")
    assert {name: dict(need.change) for name, need in needs.items()} == {
        f"direct/{name}": {"algorithm": "finetune", "order": name} for name in TASKS
    }
    assert all(need.after is None for need in needs.values())
    assert Climb(order="vcr").needs("finetune") == {}, "it is the direct run itself"
    assert set(Climb(order="vcr").needs("ewc")) == {"direct/vcr"}
    assert dict(Climb(joint=True).needs("finetune")["joint"].change) == {"algorithm": "joint"}


def test_the_direct_runs_of_stages_that_are_not_learned_are_not_needed():
    def needed(stages):
        asked = replace(request("ewc", benchmark__joint=True), stages=stages)
        plan = graph([asked], read=False)
        return set(plan.needs[plan.wanted[0]])

    assert needed(1) == {"direct/vqav2"}
    assert needed(2) == {"direct/vqav2", "direct/nlvr2", "joint"}
    assert needed(9) == needed(None) == {"joint", *(f"direct/{name}" for name in TASKS)}


def made(name, order, matrix, stages=None):
    """A record with these scores on 1000 test examples of each task of the order, after each stage."""
    scores = [
        Score(stage, 10 * stage, task, "test", 1000, score)
        for stage, row in enumerate(matrix)
        for task, score in zip(order.split(">"), row, strict=True)
    ]
    config = {"benchmark": {"name": "climb", "order": order}} | ({"stages": stages} if stages else {})
    return Record(name, config, {}, {}, {}, tuple(scores), {})


def completed(record, order, store):
    """The record with its measures against direct runs: 0.6 of VQAv2, 0.7 of NLVR2."""
    for task, score in (("vqav2", 0.6), ("nlvr2", 0.7)):
        store.folder(task).path.mkdir(parents=True, exist_ok=True)
        value = made(task, task, [[0.0], [score]]).to_json() | {"cost": COST}
        value["config"] |= {"model": {"name": "vilt"}, "algorithms": [], "transforms": [], "training": [{}], "seed": 0}
        write_json(store.folder(task).path / "record.json", value)
    store.folder(record.id).path.mkdir(exist_ok=True)
    return complete(record, Climb(order=order), {"direct/vqav2": "vqav2", "direct/nlvr2": "nlvr2"}, store).summary


def test_of_a_run_of_the_first_stages_only_their_tasks_count(tmp_path):
    order, before = "vqav2>nlvr2>vcr", [0.0, 0.5, 0.2]
    found = completed(made("a", order, [before, [0.5, 0.55, 0.2], [0.2, 0.75, 0.3]], 2), order, Store(tmp_path))
    assert {name: found[name] for name in TASKS if name in found} == {"vqav2": 0.2, "nlvr2": 0.75}
    assert found["final_accuracy"] == pytest.approx((0.2 + 0.75) / 2)
    assert found["knowledge_transfer"] == pytest.approx(100 * (0.5 + 0.75 - 0.6 - 0.7) / (0.6 + 0.7 - 0.5))
    assert found["forgetting_transfer"] == pytest.approx(100 * 0.3 / 0.5)
    assert found["backward_transfer"] == pytest.approx(-0.3)
    assert found["forward_transfer"] == pytest.approx(0.05)
    joint = completed(made("b", order, [before, [0.5, 0.8, 0.3]], 2), order, Store(tmp_path))
    assert joint["final_accuracy"] == pytest.approx((0.5 + 0.8) / 2)
    assert joint["knowledge_transfer"] == pytest.approx(100 * (0.5 + 0.8 - 0.6 - 0.7) / (0.6 + 0.7 - 0.5))
    assert joint["forgetting_transfer"] is None


def test_a_run_of_the_first_stages_has_their_measures_before_anything_it_needs(tmp_path):
    record = run(prepare(replace(request(order="snli-ve>nlvr2"), stages=1)), Store(tmp_path))
    assert {s.name for s in record.scores} == {"snli-ve", "nlvr2"}, "all are scored"
    assert record.summary["final_accuracy"] == record.summary["snli-ve"]
    assert "nlvr2" not in record.summary


def test_what_else_is_asked_for_makes_no_other_run():
    ids = [
        prepare(request(order=order, **settings)).config.id
        for order, settings in (
            (None, {}),
            ("1", {"benchmark__joint": True}),
            (None, {"benchmark__downstream": True}),
            (None, {"benchmark__single_task": True}),
        )
    ]
    assert len(set(ids)) == 1
    assert prepare(request(order="2")).config.id != ids[0]


def test_presets_are_the_papers_and_rescaled_where_all_is_small():
    replay, ewc, bottom = (paper.preset("vilt", name, "paper") for name in ("replay", "ewc", "frozen-bottom"))
    assert (replay["replay.share"], replay["replay.every"], replay["replay.mode"]) == (0.01, 100, "separate")
    assert (ewc["ewc.strength"], ewc["ewc.half"], ewc["ewc.past"]) == (100, False, "one")
    assert bottom == {"frozen-bottom.k": 9}
    for scale in ("paper", "small", "tiny"):
        assert paper.preset("vilt", "adapters", scale)["adapters.activation"] == "gelu"
    assert set(paper.preset("vilt-tiny", "ewc+replay", "small")) == {*ewc, *replay}
    checked = resolve(Request("climb", "er", scale="tiny"))
    assert checked.algorithms[0].mode == "separate"
    given = resolve(Request("climb", "er", scale="tiny", settings={"replay.mode": "joint", "replay.share": 0.5}))
    assert (given.algorithms[0].mode, given.algorithms[0].share) == ("joint", 0.5)


def test_the_fisher_of_the_preset_is_of_one_percent_of_a_task_however_large():
    """4,338 of VQAv2's training examples, and not as many as an algorithm takes where nobody says."""
    checked = resolve(Request("climb", "ewc", "vilt", scale="paper", data="."))
    (ewc,) = checked.algorithms
    stage = Stage("vqav2", np.arange(433_757), Training())
    assert len(some_of(stage, ewc.share, ewc.most, seed=0)) == 4338
    (own,) = resolve(Request("climb", "ewc", "vilt", scale="paper", data=".", settings={"ewc.most": 50})).algorithms
    assert len(some_of(stage, own.share, own.most, seed=0)) == 50, "what a user says comes first"


def test_one_command_has_transfer_complete(tmp_path):
    store = Store(tmp_path)
    ready = prepare(request(order="snli-ve>nlvr2", train__learning_rate=1e-2))
    record = run(ready, store)
    directs = {
        f"direct/{name}": run(prepare(request(order=name, train__learning_rate=1e-2)), store).scores
        for name in ("snli-ve", "nlvr2")
    }
    first = {(s.split, s.stage): s.score for s in record.scores if s.name == "snli-ve"}
    alone = {(s.split, s.stage): s.score for s in directs["direct/snli-ve"]}
    assert all(alone[key] == first[key] for key in alone), "the first task of a sequence is the direct run, bit for bit"
    assert "not clearly above chance" in Climb.relative(record.scores, directs)["knowledge_transfer"].reason
    found = Climb.relative(_of_many(record.scores), {name: _of_many(scores) for name, scores in directs.items()})
    (test,) = (s.score for s in directs["direct/nlvr2"] if s.split == "test" and s.stage == 1)
    after = next(s.score for s in record.scores if s.name == "nlvr2" and s.split == "test" and s.stage == 2)
    there = test + alone["test", 1] - 1 / 2 - 1 / 3
    if there > 0:
        assert found["knowledge_transfer"] == pytest.approx(100 * (after - test) / there)
    else:
        assert "above chance" in found["knowledge_transfer"].reason


def test_called_from_python_a_run_has_all_that_its_measures_need(tmp_path):
    asked = vars(request(order="snli-ve>nlvr2"))
    asked["algorithms"] = asked.pop("algorithm")
    asked.pop("objects")
    record = holdfast.run(**asked, out=tmp_path)
    assert list(record.others) == ["direct/snli-ve", "direct/nlvr2"]
    assert all(Store(tmp_path).folder(run).status() == "done" for run in record.others.values())
    assert "direct run" not in record.reasons.get("knowledge_transfer", "")
    alone = holdfast.run(**asked, out=tmp_path / "alone", needs=False)
    assert (alone.id, alone.others, alone.scores) == (record.id, {}, record.scores)
    assert "needs the direct runs" in alone.reasons["knowledge_transfer"]


def _of_many(scores):
    """The same scores as if they were of very many examples: none is in doubt."""
    return [replace(score, count=10**9) for score in scores]


@pytest.mark.parametrize("name", sorted([*registry.PLAIN, *registry.ALGORITHMS, *registry.TRANSFORMS]))
def test_every_algorithm_runs_or_is_refused_in_a_sentence(name):
    ready = prepare(request(name))
    if name in REFUSED:
        with pytest.raises(UserError, match=REFUSED[name]) as refusal:
            trained(ready)
        assert "\n" not in str(refusal.value)
        return
    learner, log = trained(ready)
    scores = {(s.stage, s.split, s.name): s.score for s in log.scores}
    stages = len(ready.setup.stream.stages)
    assert len(scores) == (stages + 1) * 2 * 4
    assert all(0 <= score <= 1 for score in scores.values())
    assert all(torch.isfinite(value).all() for value in learner.model.state_dict().values())
    if name in ("adapters", "lora", "frozen-encoder"):
        for stage, task in enumerate(TASKS, 1):
            kept = {scores[later, "test", task] for later in range(stage, 5)}
            assert len(kept) == 1, "nothing is forgotten, to the last bit"


@pytest.mark.parametrize("model", ["uniter-tiny", "vault-tiny"])
def test_other_models_learn_all_tasks(model):
    ready = prepare(request("finetune", model=model))
    if model == "uniter-tiny":
        assert isinstance(ready.setup.data.tables[0].inputs["regions"], Shared)
        assert ready.setup.inputs.image is None
    learner, log = trained(ready)
    assert len(log.scores) == 5 * 2 * 4
    assert learner.model.encoder.width == 16


def test_models_that_cannot_read_or_see_are_refused():
    with pytest.raises(UserError, match="feature maps"):
        prepare(Request("climb", model="san", scale="tiny"))


def test_pictures_may_stay_files(monkeypatch):
    monkeypatch.setattr(paper, "fit", lambda side, scale: {"shorter": 24, "longest": 40, "decode": False})
    setup = Climb(scale="tiny", train=12, scored=8).setup(Wants(side=24))
    assert setup.inputs.padded
    assert setup.inputs.image == (3, 40, 40)
    ready = prepare(request(order="vcr>snli-ve", benchmark__train=8, benchmark__scored=8))
    learner = make_learner(ready)
    for stage in ready.setup.stream.stages:
        batch = learner.fetch(stage.train[:2])
        sizes = batch.parts[0].inputs["image_size"]
        assert sizes.shape == (2, 2)
        assert np.all(sizes.max(1).values.numpy() <= 40)
        assert torch.isfinite(learner.loss(batch, learner.outputs(batch)))


def test_calibration_tells_whether_a_dataset_is_learned(tmp_path):
    asked = SMALLEST | {"model.weights": "", "train.learning_rate": 0.0}
    cases = (
        CalibrationCase("snli_ve", "climb", "snli-ve", order="snli-ve", settings=asked, low=0.1, high=0.9),
        CalibrationCase("none", "climb", "vcr", order="nothing", settings=asked),
        CalibrationCase("another", "no such benchmark", "score"),
    )
    found = list(calibration(Store(tmp_path), "tiny", cases=cases))
    assert [each.dataset for each in found] == ["snli_ve", "none"], "what is not there yet is left out"
    assert found[0].chance == pytest.approx(1 / 3)
    assert found[0].score in {n / 16 for n in range(17)}
    assert found[0].within is (0.1 <= found[0].score <= 0.9)
    assert (found[1].score, found[1].within) == (None, None)
    assert "unknown task 'nothing'" in found[1].reason
    assert {case.dataset for case in all_cases()} >= {"vqav2", "nlvr2", "snli_ve", "vcr", "clevr, wh", "imdb", "piqa"}
