"""Plans as files: the runs they list, and the errors they raise."""

import pytest

from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.cost import expected, lines
from holdfast.experiments.local import Here, Options
from holdfast.experiments.plan import graph
from holdfast.experiments.planfile import changed, read_plan, shipped
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store

TWO = """
title = "two experiments"

[[experiment]]
benchmarks = ["patterns"]
algorithms = ["finetune", "er", "ewc+er"]
orders = ["forward", "reverse"]
settings = ["class", "task"]
scale = "tiny"
seeds = 2

[experiment.set]
"benchmark.stages" = 2
"er.capacity" = [40, 80]
"train.betas" = [[0.9, 0.99]]

[[experiment]]
algorithm = "joint"
scale = "tiny"
seeds = [5]
stages = 1
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="plan.toml"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_every_combination_is_asked_for_once(file):
    requests = read_plan(file(TWO))
    assert len(requests) == 2 * 2 * 2 * (1 + 2 + 2) + 1, "orders x settings x seeds x (finetune has no capacity)"
    assert all(resolve(request) for request in requests)
    own = [r for r in requests if r.algorithm == "ewc+er" and r.order == "reverse" and r.setting == "task"]
    assert {(r.settings["er.capacity"], r.seed) for r in own} == {(40, 0), (40, 1), (80, 0), (80, 1)}
    assert own[0].settings["train.betas"] == [0.9, 0.99]
    assert requests[-1] == Request("patterns", "joint", scale="tiny", seed=5, stages=1)
    shorter = changed(read_plan(file(TWO), "small"), seeds=1)
    assert {(r.scale, r.seed) for r in shorter} == {("small", 0)}
    assert len(shorter) == 2 * 2 * 5 + 1


def test_at_the_papers_scale_what_is_the_papers_own_takes_the_place_of_the_rest(file):
    path = file(
        "[[experiment]]\nmodels = ['vilt-tiny']\nalgorithms = ['er']\n"
        "set = {'er.capacity' = [40, 80], 'train.epochs' = 3}\n"
        "[experiment.paper]\nmodel = 'vilt'\nset = {'er.capacity' = [1000]}\n"
    )
    assert [(r.model, r.scale, dict(r.settings)) for r in read_plan(path, "paper")] == [
        ("vilt", "paper", {"er.capacity": 1000, "train.epochs": 3})
    ]
    assert {(r.model, r.scale, r.settings["er.capacity"]) for r in read_plan(path)} == {
        ("vilt-tiny", None, 40),
        ("vilt-tiny", None, 80),
    }


def test_a_python_file_gives_requests(file):
    path = file(
        "from holdfast.experiments.request import Request\ndef requests():\n    yield Request(seed=3)\n", "p.py"
    )
    assert read_plan(path) == [Request(seed=3)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[experiment]\n", "is not valid TOML"),
        ("", "describes no experiment"),
        ("[[experiment]]\nalgoritms = ['er']", "'algoritms' is not a key of an experiment: did you mean algorithm"),
        ("[[experiments]]\n", "has 'experiments': did you mean experiment"),
        ("[[experiment]]\nseeds = 'three'", "give the number of seeds, or a list of them"),
        ("[[experiment]]\nseeds = true", "give the number of seeds, or a list of them"),
        ("[[experiment]]\nalgorithms = []", "a list of a plan is empty"),
        ("[[experiment]]\nset = {'train.epochs' = []}", "a list of a plan is empty"),
        ("[[experiment]]\nscales = ['tiny', 'paper']\n[experiment.paper]\nseeds = 2", "has one scale"),
        ("[[experiment]]\nset = {epochs = 3}", "write settings as"),
        ("[[experiment]]\nmodel = 'a'\nmodels = ['b']", "both 'models' and 'model'"),
    ],
)
def test_a_mistake_in_a_file_is_told_in_a_sentence(file, text, sentence):
    with pytest.raises(UserError, match=sentence):
        read_plan(file(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", r"has no function requests\(\)"),
        ("def requests():\n    return [3]\n", r"requests\(\) does not return plans"),
        ("def requests():\n    return 1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_a_mistake_in_a_python_plan_is_told_in_a_sentence(file, text, sentence):
    with pytest.raises(UserError, match=sentence):
        read_plan(file(text, "p.py"))


def test_a_plan_that_is_not_there_is_told():
    with pytest.raises(UserError, match=r"unknown plan 'clvqaa': .* did you mean clvqa"):
        read_plan("clvqaa")


@pytest.mark.parametrize("name", shipped())
def test_every_recipe_asks_for_runs_that_can_be_asked_for(name):
    for scale in (None, "tiny", "paper"):
        requests = changed(read_plan(name, scale), seeds=1)
        assert requests
        for request in requests:
            resolve(request)


def test_the_cost_is_the_median_of_like_runs(tmp_path):
    small = {"benchmark.stages": 2, "train.epochs": 1}
    store = Store(tmp_path)
    plan = graph([Request("patterns", scale="tiny", seed=seed, settings=small) for seed in range(3)])
    carry_out(plan, store, Here(store, Options(), Setups()))
    seconds = sorted(store.folder(name).record().cost["seconds"] for name in plan.configs)
    kind = ("patterns", "tiny", "perceptron", "finetune")
    assert expected(store) == {kind: seconds[1]}
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "record.json").write_text("{}")
    more = [Request("patterns", word, scale="tiny", settings=small) for word in ("finetune", "seqft", "joint")]
    found = lines(graph([*more, Request("patterns", scale="tiny", seed=9, settings=small)]), store)
    assert [(line.kind, line.runs, line.done, line.seconds) for line in found] == [
        (kind, 2, 1, seconds[1]),
        (("patterns", "tiny", "perceptron", "joint"), 1, 0, None),
    ]
