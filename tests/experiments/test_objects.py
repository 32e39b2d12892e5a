"""Objects in the place of names: the same runs as words ask for, and code of the user's own wherever it was written."""

import operator
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast import registry
from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.benchmarks.patterns.benchmark import Patterns
from holdfast.experiments.carried import Carried, pack, unpack
from holdfast.experiments.config import resolve, unpacked
from holdfast.experiments.made import made
from holdfast.experiments.objects import requests, word
from holdfast.experiments.rebuilt import recipe_of
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store

SMALL = {"benchmark.stages": 2, "train.epochs": 1}
FACTOR = 2.0


def factor() -> float:
    return FACTOR


@dataclass
class Decay(hf.Algorithm):
    """A class of a module that other processes find."""

    strength: float = 0.01

    def loss(self, learner, batch, outputs):
        return self.strength * sum((p**2).sum() for p in learner.trainable().values())


def asked(benchmark="patterns", algorithms=("finetune",), model=None, seeds=(0,), **words) -> list[Request]:
    return requests(benchmark, list(algorithms), model, seeds, **{"scale": "tiny"} | words)


def one(*given: Any, **words: Any) -> Request:
    (request,) = asked(*given, **words)
    return request


def small(algorithms, out, **more):
    return hf.run("patterns", algorithms, scale="tiny", out=out, **{"settings": SMALL} | more)


# ------------------------------------------------------------------------------------------- objects that have a name


@pytest.mark.parametrize("name", registry.ALGORITHMS)
def test_an_algorithm_as_an_object_is_the_same_run_as_its_word_and_its_command(name):
    kind = registry.ALGORITHMS[name].load()
    request = one(algorithms=[kind()])
    found = resolve(request)
    assert found.algorithms == (kind(),)
    assert found.title == name
    assert found.id == resolve(one(algorithms=[name])).id == resolve(one(algorithms=[kind])).id
    assert found.id == resolve(Request.from_command(request.command())).id


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_model_as_an_object_is_the_same_run_as_its_word_and_its_command(name):
    kind = registry.MODELS[name].load()
    request = one(model=kind())
    assert resolve(request).recipe == kind()
    assert resolve(request).id == resolve(Request.from_command(request.command())).id
    assert resolve(request).id == resolve(one(model=name)).id == resolve(one(model=kind)).id


def test_an_object_says_all_of_its_settings_and_a_name_leaves_them_to_presets():
    kind = hf.algorithms.Replay
    named, given = (resolve(one("climb", [each])).algorithms[0] for each in ("replay", kind(capacity=64)))
    assert named.share is not None, "CLiMB's preset"
    assert given == kind(capacity=64)


def test_a_benchmark_as_an_object_is_the_same_run_as_its_words():
    request = one(Patterns(scale="tiny", stages=3, order="reverse"), scale=None)
    assert (request.scale, request.order, dict(request.settings)) == ("tiny", "reverse", {"benchmark.stages": 3})
    assert resolve(request).id == resolve(one(order="reverse", settings={"benchmark.stages": "3"})).id
    assert resolve(one(Patterns)).id == resolve(one("patterns")).id
    assert resolve(one(Patterns(), seeds=[3], scale=None)).benchmark.seed == 3, "the run's"
    assert resolve(one(Climb(scale="tiny"), scale=None)).id == resolve(one("climb")).id


def test_finetuning_and_combinations():
    kinds = hf.algorithms
    for given, text in [
        (kinds.Finetune(), "finetune"),
        (kinds.Finetune, "finetune"),
        ((kinds.EWC, "er"), "ewc+er"),
        (("joint", kinds.Replay), "joint+replay"),
        ("ewc+replay", "ewc+replay"),
    ]:
        assert one(algorithms=[given]).algorithm == text
    both = resolve(one(algorithms=[(kinds.EWC(strength=3.0), kinds.Replay(capacity=7))]))
    assert (both.algorithms[0].strength, both.algorithms[1].capacity) == (3.0, 7)
    with pytest.raises(hf.UserError, match="plain fine-tuning: there is nothing to combine"):
        resolve(one(algorithms=[(kinds.Finetune(), kinds.Replay())]))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"algorithms": [hf.algorithms.EWC()], "settings": {"ewc.strength": 3}}, "ewc.strength is 3 in settings, and "),
        ({"benchmark": Patterns(scale="large")}, "scale is 'tiny', and the benchmark was given with 'large'"),
        ({"benchmark": Patterns(seed=3)}, "the seed of a benchmark is the run's"),
        ({"algorithms": [hf.Algorithm()]}, "algorithm is an object of the class Algorithm: give 'replay'"),
        ({"algorithms": [Patterns()]}, "algorithm is an object of the class Patterns: give 'replay'"),
        ({"algorithms": [["er", "ewc"]]}, "algorithm is ['er', 'ewc']: give 'replay'"),
        ({"model": 3}, "model"),
        ({"settings": {3: 4}}, "settings is an object of the class dict: give a dictionary"),
        ({"algorithms": [hf.algorithms.Replay(capacity=0)]}, "replay.capacity is 0: it must be at least 1"),
    ],
)  # fmt: skip
def test_mistakes_are_named(given, sentence):
    with pytest.raises(hf.UserError) as error:
        resolve(one(**given))
    assert str(error.value).startswith(sentence)


def test_the_users_own_classes_must_be_dataclasses():
    class Plain(hf.Algorithm):
        pass

    @dataclass
    class Thawed(hf.Benchmark):
        def setup(self, wants):
            raise AssertionError

        summary = Patterns.summary

    class Half(hf.Benchmark):
        pass

    for given, sentence in [
        (
            {"algorithms": [Plain()]},
            "Plain must be a dataclass, whose fields are its settings: write @dataclass above it",
        ),
        ({"benchmark": Thawed()}, r"Thawed must be a dataclass, .* write @dataclass\(frozen=True\) above it"),
        ({"benchmark": Half}, "Half does not define setup"),
    ]:
        with pytest.raises(hf.UserError, match=sentence):
            one(**given)


# ---------------------------------------------------------------------------------------------- the user's own classes


def test_a_class_of_a_file_beside_the_script_is_the_run_of_its_file(tmp_path, monkeypatch):
    (tmp_path / "near.py").write_text(
        "from dataclasses import dataclass\nimport holdfast as hf\nimport near_helper\n"
        "@dataclass\nclass Near(hf.Algorithm):\n    rate: float = 0.5\n"
        "    def after(self, learner, batch):\n        near_helper.note()\n"
    )
    (tmp_path / "near_helper.py").write_text("def note():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    try:
        from near import Near

        request = one(algorithms=[Near(rate=2.0)])
        assert request.algorithm == f"{tmp_path}/near.py:Near"
        assert request.command()
        first = resolve(request).id
        assert first == resolve(one(algorithms=[f"{tmp_path}/near.py:Near"], settings={"Near.rate": 2})).id
        (tmp_path / "near_helper.py").write_text("def note():\n    return 2\n")
        stale = one(algorithms=[Near(rate=2.0)])
        assert not stale.command(), "the file holds other code than the object"
        for name in ("near", "near_helper"):
            sys.modules.pop(name, None)
        from near import Near as Newer

        assert one(algorithms=[Newer(rate=2.0)]).command()
        assert len({first, resolve(stale).id, resolve(one(algorithms=[Newer(rate=2.0)])).id}) == 3
    finally:
        for name in ("near", "near_helper"):
            sys.modules.pop(name, None)


def local(body: str, **names: Any) -> Any:
    """A class as a shell makes it, with what its code refers to."""
    shell = type(sys)("holdfast_test_shell")
    sys.modules[shell.__name__] = shell
    code = "from dataclasses import dataclass\nimport holdfast as hf\n@dataclass\nclass Mine(hf.Algorithm):\n"
    vars(shell).update(names)
    exec(f"{code}    rate: float = 0.5\n    def after(self, learner, batch):\n        {body}\n", vars(shell))
    return shell.Mine


def identity_of(kind: Any) -> str:
    return resolve(one(algorithms=[kind()])).id


def test_a_class_of_a_shell_counts_by_what_its_code_reaches_and_by_nothing_else():
    first = identity_of(local("factor()", factor=factor))
    assert identity_of(local("factor()", factor=factor)) == first
    assert identity_of(local("factor()", factor=factor, other=3, more=hf.algorithms.Replay)) == first
    assert identity_of(local("factor( ); factor()", factor=factor)) != first
    assert identity_of(local("factor()", factor=lambda: 2)) != first


def test_a_helper_of_the_users_own_counts_for_a_class_of_a_shell(monkeypatch):
    first = identity_of(local("factor()", factor=factor))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert identity_of(local("factor()", factor=factor)) != first


class Slope:
    """An object of a class of the user's own."""

    bend = 2.0

    def __init__(self, rate):
        self.rate = rate

    def at(self, x):
        return self.rate * x * self.bend


@dataclass(frozen=True)
class Options:
    rate: float
    folder: Path = Path("weights")


def scaled_net(scale):
    net = torch.nn.Linear(2, 1)
    with torch.no_grad():
        net.weight.fill_(scale)
        net.bias.zero_()
    return net


@pytest.mark.parametrize(
    "make",
    [
        Slope,
        Options,
        lambda rate: Options(1.0, Path(f"weights-{rate}")),
        lambda rate: SimpleNamespace(rate=rate),
        lambda rate: {"nested": [Slope(rate)]},
        lambda rate: Slope(rate).at,
        lambda rate: torch.relu if rate > 1 else torch.tanh,
        lambda rate: np.sin if rate > 1 else np.cos,
        lambda rate: torch.float32 if rate > 1 else torch.float64,
        lambda rate: np.ones(2, np.float32 if rate > 1 else np.float64),
        lambda rate: torch.full((2,), rate, dtype=torch.bfloat16),
        lambda rate: operator.itemgetter(int(2 * rate)),
        lambda rate: deque([rate]),
        lambda rate: MappingProxyType({"rate": rate}),
        scaled_net,
    ],
)
def test_what_an_object_holds_that_its_code_reaches_counts(make):
    first, again, other = (identity_of(local("thing", thing=make(rate))) for rate in (0.5, 0.5, 1.5))
    assert first == again
    assert first != other


def test_the_code_of_an_object_that_its_code_reaches_counts(monkeypatch):
    first = identity_of(local("thing", thing=Slope(1.0)))
    monkeypatch.setattr(Slope, "bend", 3.0)
    assert identity_of(local("thing", thing=Slope(1.0))) != first


def test_an_open_file_that_its_code_reaches_does_no_harm(tmp_path):
    with (tmp_path / "log").open("w") as log:
        lock = threading.Lock()
        assert identity_of(local("log, lock", log=log, lock=lock)) == identity_of(
            local("log, lock", log=log, lock=lock)
        )


def test_a_built_in_part_that_its_code_reaches_counts_by_its_version(monkeypatch):
    kinds = [local("hf.algorithms.Replay"), local("kind", kind=hf.algorithms.Replay), local("pass")]
    before = [resolve(one(algorithms=[kind])) for kind in kinds]
    assert ["algorithm Replay" in each.parts for each in before] == [True, True, False]
    monkeypatch.setattr(hf.algorithms.Replay, "version", 2)
    after = [resolve(one(algorithms=[kind])) for kind in kinds]
    assert [a.id == b.id for a, b in zip(before, after, strict=True)] == [False, False, True]


def test_a_class_of_a_shell_runs_and_its_record_says_that_no_command_repeats_it(tmp_path, capsys):
    kind = local("pass")
    given = kind(rate=0.25)
    record = small(given, tmp_path)
    assert record.algorithm == "Mine"
    (said,) = record.config["algorithms"]
    assert said == {"name": "Mine", "code": said["code"], "without_file": True, "rate": 0.25}
    assert record.environment["command"] == ""
    assert "no command repeats this run: the algorithm Mine came from" in record.environment["again"]
    assert made(Store(tmp_path)) == set()
    (run,) = hf.load(tmp_path)
    assert (run.status, run.command) == ("done", "")
    assert "run it again" in Store(tmp_path).folder(record.id).again()
    assert recipe_of(record) is not None
    from holdfast.cli.listing import show

    show(record.id, tmp_path)
    assert "again: no command repeats this run" in capsys.readouterr().out
    assert hf.report(tmp_path, tmp_path / "report").is_file()


def test_an_object_is_never_changed_and_every_seed_has_a_fresh_copy(tmp_path):
    @dataclass
    class Counts(hf.Algorithm):
        start: int = 0

        def __post_init__(self):
            self.steps = self.start

        def after(self, learner, batch):
            self.steps += 1

        def memory_bytes(self, learner):
            return self.steps

    given = Counts(start=2)
    given.steps = 1000  # what it is beside its settings plays no part
    runs = small([given, Counts], tmp_path, seeds=2)
    assert vars(given) == {"start": 2, "steps": 1000}
    assert [record.cost["memory_bytes"] - record.cost["steps"] for record in runs.records] == [2, 2, 0, 0]
    assert [(run.algorithm, run.seed) for run in runs] == [("Counts", 0), ("Counts", 1)] * 2
    assert small(given, tmp_path, seed=1).id == runs[1].id


def test_an_object_with_fields_that_no_setting_can_be_counts_by_what_they_hold(tmp_path):
    @dataclass
    class Held(hf.Algorithm):
        mask: Any = None
        rate: float = 0.5

        def after(self, learner, batch):
            self.mask += 1

        def memory_bytes(self, learner):
            return int(self.mask.sum())

    mask = np.zeros(3)
    first, other = Held(mask), Held(np.ones(3))
    ids = [resolve(one(algorithms=[each])).id for each in (first, Held(np.zeros(3)), other, Held(np.zeros(3), 0.25))]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    record = small(first, tmp_path)
    assert mask.sum() == 0
    assert record.cost["memory_bytes"] == 3 * record.cost["steps"]
    changed = resolve(one(algorithms=[first], settings={"Held.rate": 0.25}))
    assert (changed.id, first.rate) == (ids[3], 0.5)
    with pytest.raises(hf.UserError, match=r"Held\.mask holds an object of the class object, which a run's id cannot"):
        resolve(one(algorithms=[Held(object())]))
    with pytest.raises(hf.UserError, match="are two things of the same name"):
        asked(algorithms=[first, other])


def test_the_record_of_a_name_is_the_run_of_its_command(tmp_path):
    record = small(hf.algorithms.Replay(capacity=40), tmp_path)
    again = resolve(Request.from_command(record.environment["command"]))
    assert again.algorithms[0].capacity == 40
    from holdfast.experiments.setups import Setups

    assert Setups().settle(again).id == record.id


# --------------------------------------------------------------------------------------------------- on its way


def test_what_is_packed_is_the_same_run_where_it_arrives():
    kind = local("factor()", factor=factor)
    for request in (one(algorithms=[(kind(), hf.algorithms.Replay(capacity=3))]), one(algorithms=["er"])):
        config = resolve(request)
        assert unpacked(config.packed()).id == config.id


def test_what_cannot_be_sent_is_said():
    with pytest.raises(hf.UserError, match=r"cannot be sent to another process .* with jobs=1"):
        pack(threading.Lock())


def test_other_code_is_not_taken_for_what_was_packed(tmp_path):
    (tmp_path / "held.py").write_text(
        "from dataclasses import dataclass, field\nfrom typing import Any\nimport holdfast as hf\n"
        "@dataclass\nclass Held(hf.Algorithm):\n    mask: Any = None\n"
    )
    from holdfast.usercode import load

    kind = load(tmp_path / "held.py").module.Held
    assert word("algorithm", kind(3)).text == f"{tmp_path}/held.py:Held"
    held = word("algorithm", kind([3]))
    assert isinstance(held.objects["Held"], Carried), "a list is no setting"
    packed = pack(held)
    assert unpack(packed).objects["Held"].value.mask == [3]
    with (tmp_path / "held.py").open("a") as file:
        file.write("# edited\n")
    del sys.modules[kind.__module__]  # another process has never had it
    with pytest.raises(hf.UserError, match="its code may have changed since"):
        unpack(packed)


def test_a_file_that_runs_something_where_it_is_loaded_is_told_what_to_write(tmp_path):
    (tmp_path / "script.py").write_text(
        "from dataclasses import dataclass\nimport holdfast as hf\n"
        "@dataclass\nclass Mine(hf.Algorithm):\n    rate: float = 0.5\n\nhf.run('patterns', Mine())\n"
    )
    with pytest.raises(hf.UserError, match=r"script\.py, line 7: this calls holdfast\.run .*'__main__'"):
        small(f"{tmp_path}/script.py:Mine", tmp_path / "runs")


# --------------------------------------------------------------------------------- plans, trackers, and no store at all


def test_a_plan_shows_its_runs_and_carries_them_out(tmp_path):
    plan = hf.plan("patterns", ["finetune", Decay()], scale="tiny", settings=SMALL, seeds=[3, 5], out=tmp_path)
    assert not list(tmp_path.iterdir())
    assert str(plan).splitlines()[0] == f"4 runs in {tmp_path}, 0 of them done"
    assert "Decay, seed 5" in str(plan)
    first = hf.run("patterns", scale="tiny", settings=SMALL, seed=3, out=tmp_path)
    assert plan.done == {first.id}
    runs = plan.run()
    assert [run.id for run in runs] == list(plan.ids)
    assert plan.done == set(plan.ids)


class Sees(hf.Tracker):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def open(self, folder):
        self.heard.append(folder.name)

    def step(self, stage_step, loss):
        self.heard.append(stage_step)

    def score(self, score):
        self.heard.append(score)

    def close(self):
        self.heard.append("closed")


def test_a_tracker_of_the_users_own_hears_of_every_run(tmp_path):
    sees = Sees()
    runs = small(["finetune", "er"], tmp_path, log=[sees])
    ids = [word for word in sees.heard if isinstance(word, str)]
    assert ids == [runs[0].id, "closed", runs[1].id, "closed"]
    assert [each for each in sees.heard if not isinstance(each, str | int)] == [
        score for record in runs.records for score in record.scores
    ]
    with pytest.raises(hf.UserError, match=r"log holds 3: give names .* or objects of holdfast.Tracker"):
        small("finetune", tmp_path, log=3)


def test_training_without_a_store_ends_with_the_weights_and_scores_of_the_run(tmp_path):
    given = hf.algorithms.Replay(capacity=64)
    record, sees = small(given, tmp_path), Sees()
    learner = hf.train(None, "patterns", given, scale="tiny", settings=SMALL, log=[sees])
    from safetensors.torch import load_file

    kept = load_file(tmp_path / record.id / "model.safetensors")
    assert all(torch.equal(kept[name], value) for name, value in learner.model.state_dict().items())
    assert [each for each in sees.heard if not isinstance(each, int | str)] == list(record.scores)
    alone = hf.train(None, "patterns", [given], scale="tiny", settings=SMALL)
    assert all(torch.equal(kept[name], value) for name, value in alone.model.state_dict().items())
    last = {score.name: score.score for score in record.scores[-4:] if score.split == "test"}
    assert hf.evaluate(learner, "patterns", scale="tiny", settings={"benchmark.stages": 2}) == last
    with pytest.raises(hf.UserError, match="was not trained for the tasks of this stream: it has no head"):
        hf.evaluate(learner, Patterns(setting="task", scale="tiny"))


def test_a_frozen_module_stays_in_evaluation_mode_after_an_evaluation():
    learner = hf.train("modular-perceptron", "patterns", "frozen-encoder", scale="tiny", settings=SMALL)
    hf.evaluate(learner, "patterns", scale="tiny", settings={"benchmark.stages": 2})
    assert not learner.model.encoder.training
