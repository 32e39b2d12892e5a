import shlex
from dataclasses import replace

import pytest

import holdfast
from holdfast.algorithms.replay import Replay
from holdfast.cli.run import parse_settings
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.plan import graph
from holdfast.experiments.planfile import from_tables, read_plan
from holdfast.experiments.request import Request, settings_for
from holdfast.experiments.store import algorithm_of
from smallest import prepare

TINY = {"benchmark.stages": 2}


def ids(*requests):
    return [prepare(request).config.id for request in requests]


def tiny(algorithm="finetune", seed=0, **more):
    return Request("patterns", algorithm, scale="tiny", seed=seed, settings=TINY | more)


def test_the_id_is_the_hash_of_what_decides_the_result():
    one, same, alias, explicit, seed, setting = ids(
        tiny(), tiny(), tiny("seqft"), tiny(**{"train.epochs": "10"}), tiny(seed=1), tiny(**{"train.epochs": "3"})
    )
    assert one == same == alias == explicit
    assert len({one, seed, setting}) == 3
    assert len(one) == 12


def test_each_papers_name_for_a_thing_is_understood():
    for word, name in [("naive", "finetune"), ("vanilla", "finetune"), ("multitask", "joint"), ("ER", "replay")]:
        assert resolve(tiny(word)).title == name


def test_algorithms_combine_and_transforms_change_the_stream():
    ready = prepare(tiny("cumulative+frozen_bottom+replay"))
    assert algorithm_of(ready.config.content) == "cumulative+frozen-bottom+replay"
    assert [len(stage.train) for stage in ready.setup.stream.stages] == [80, 160]


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (tiny("replya"), "unknown algorithm 'replya': did you mean replay?"),
        (Request("patern"), "unknown benchmark 'patern': did you mean patterns?"),
        (Request(model="perseptron"), "unknown model 'perseptron': did you mean perceptron or modular-perceptron?"),
        (Request(scale="huge"), "patterns.scale is 'huge': there are tiny, small, large"),
        (Request(order="1>2"), "order is '1>2': use forward, reverse, or the numbers 1 to 5"),
        (Request(precision="float61"), "run.precision is 'float61': did you mean float64"),
        (tiny("replay", **{"replay.capcity": "3"}), "replay.capcity is not a setting: did you mean capacity?"),
        (tiny("replay", **{"er.capacity": "0"}), "replay.capacity is 0: it must be at least 1"),
        (
            tiny(**{"replay.capacity": "3"}),
            "replay.capacity sets nothing: replay is not among the algorithms of this run",
        ),
        (
            tiny(**{"trian.epochs": "3"}),
            "trian.epochs sets nothing: 'trian' is not part of this run; did you mean train?",
        ),
        (tiny(**{"train.betas": "1"}), "train.betas is '1': it takes 2 values"),
        (tiny("replay+replay"), "'replay+replay' names one algorithm twice"),
        (tiny("joint+multitask"), "'joint+multitask' names one algorithm twice"),
        (tiny("finetune+replay"), "'finetune' is plain fine-tuning"),
        (tiny(**{"benchmark.seed": "3"}), "benchmark.seed is the run's seed: give it with --seed"),
        (tiny(**{"train.betas": "2,3"}), "train.betas is 2.0: it must be at least 0 and at most 1"),
        (tiny(**{"train.betas": 0.9}), "train.betas is 0.9: it takes 2 values"),
        (Request(seed="x"), "run.seed is 'x': it must be a whole number"),
        (Request(algorithm=None), "run.algorithm is None: it must be text"),
        (Request(seed=0.5), "run.seed is 0.5: it must be a whole number"),
        (Request(seed=True), "run.seed is True: it must be a whole number"),
        (Request(predictions="perhaps"), "run.predictions is 'perhaps': it must be true or false"),
        (Request(scale=["tiny"]), "run.scale is ['tiny']: it must be text"),
        (Request(order=1.0), "run.order is 1.0: it must be text"),
        (Request(stages=dict), "run.stages is the class dict: it must be a whole number"),
        (tiny("replay", **{"replay.capacity": Replay()}), "replay.capacity is an object of the class Replay: it must"),
        (tiny("nowhere.py:Mine"), "the file 'nowhere.py' with the algorithm 'Mine' does not exist"),
        (tiny(**{"train.learning_rate": "inf"}), "Training.learning_rate is inf: it must be finite"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest_right_one(request_, sentence):
    with pytest.raises(UserError) as error:
        prepare(request_)
    assert str(error.value).startswith(sentence)


class Lwf:
    """Somebody's own algorithm: the text of an object could name one of ours."""

    def __str__(self) -> str:
        return "lwf"


@pytest.mark.parametrize("slot", ["benchmark", "algorithms", "model"])
@pytest.mark.parametrize("thing", [Lwf, Lwf(), 7, b"replay", {"replay": 1}])
def test_what_is_neither_a_name_nor_a_part_is_refused(slot, thing, tmp_path):
    with pytest.raises(UserError, match=rf"^{slot.rstrip('s')} is .*: give '"):
        holdfast.run(**{slot: thing}, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("part", ["benchmark", "algorithm", "model"])
@pytest.mark.parametrize("value", [1, {"a": 1}, ["er"]])
def test_what_is_no_name_in_a_table_is_refused(part, value):
    with pytest.raises(UserError, match=f"{part} is .*, and must be text"):
        from_tables({"experiment": [{f"{part}s": [value]}]}, "here")


def test_a_plan_file_may_hold_objects(tmp_path):
    plan = tmp_path / "plan.py"
    plan.write_text(
        "import holdfast as hf\n"
        "def requests(): return hf.plan('patterns', ['finetune', hf.algorithms.Replay(capacity=64)], scale='tiny')\n"
    )
    words = [tiny("finetune"), replace(tiny("replay"), settings={"replay.capacity": 64})]
    words = [replace(each, settings=dict(each.settings) | {"benchmark.stages": 5}) for each in words]
    assert list(graph(read_plan(str(plan))).configs) == list(graph(words).configs)


def test_a_depth_that_the_model_does_not_have_is_named(tmp_path):
    from holdfast.experiments.store import Store
    from smallest import run

    with pytest.raises(UserError, match=r"frozen-bottom.k is 9, but this encoder has 2 layers"):
        run(prepare(tiny("frozen-bottom", **{"frozen-bottom.k": "9"})), Store(tmp_path))


MINE = """
from dataclasses import dataclass
from holdfast.algorithms.base import Algorithm

@dataclass
class Mine(Algorithm):
    rate: float = 0.5
"""


def test_an_algorithm_of_the_users_own_file_is_known_by_its_code_and_not_by_its_place(tmp_path):
    first, second = tmp_path / "random.py", tmp_path / "other.py"  # named like a module that everyone uses
    first.write_text(MINE, encoding="utf-8")
    second.write_text(MINE, encoding="utf-8")
    here, there, set_ = (
        prepare(tiny(f"{p}:Mine", **more)) for p, more in [(first, {}), (second, {}), (first, {"Mine.rate": "2"})]
    )
    assert here.config.id == there.config.id != set_.config.id
    assert set_.algorithms[0].rate == 2.0
    second.write_text(MINE + "# changed\n", encoding="utf-8")
    assert prepare(tiny(f"{second}:Mine")).config.id != here.config.id
    with pytest.raises(UserError, match=r"has no algorithm 'Mime': did you mean Mine"):
        prepare(tiny(f"{first}:Mime"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def broken(:", r"mine\.py, line 1: invalid syntax"),
        ("import os\nimport nowhere_to_be_found", r"mine\.py, line 2: ModuleNotFoundError"),
        (MINE.replace("@dataclass\n", ""), r"Mine must be a dataclass: write @dataclass above it"),
        (MINE.replace(" = 0.5", ""), r"Mine\.rate has no value: set it, or give it a default"),
        (MINE.replace("float = 0.5", "list = ()"), r"Mine\.rate has the type"),
        (MINE.replace("float = 0.5", "int | float = 1"), r"Mine\.rate has the type int \| float"),
    ],
)
def test_a_mistake_in_the_users_own_file_is_told_with_its_place(tmp_path, text, sentence):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    settings = {"Mine.rate": "1"} if "has the type" in sentence else {}
    with pytest.raises(UserError, match=sentence):
        prepare(tiny(f"{path}:Mine", **settings))
    with pytest.raises(UserError, match=r"names no algorithm: write it as mine\.py:Name"):
        prepare(tiny("mine.py"))


@pytest.mark.parametrize(
    "request_",
    [
        Request(),
        Request("patterns", "replay+frozen-bottom", scale="tiny", setting="task", order="2>1", seed=4, predictions=True,
                settings={"benchmark.stages": 2, "replay.size": 7, "train.betas": "0.8,0.9", "model.width": 8}),
        Request("patterns", "joint", precision="float64", settings={"train.epochs": 2}),
    ],
)  # fmt: skip
def test_the_command_of_a_run_repeats_it(request_):
    ready = prepare(request_)
    words = shlex.split(ready.config.request.command())[3:]
    flags = {"--algorithm": "finetune", "--scale": None, "--setting": None, "--order": None, "--seed": "0"}
    settings, predictions = [], False
    flags |= {"--model": None, "--precision": "float32"}
    while words:
        match words.pop(0):
            case "--set":
                settings.append(words.pop(0))
            case "--predictions":
                predictions = True
            case flag:
                flags[flag] = words.pop(0)
    again = Request(
        "patterns",
        flags["--algorithm"],
        flags["--model"],
        flags["--scale"],
        flags["--setting"],
        flags["--order"],
        int(flags["--seed"]),
        flags["--precision"],
        predictions,
        parse_settings(settings),
    )
    assert prepare(again).config.id == ready.config.id


def test_a_setting_goes_to_the_algorithms_that_have_it():
    found = settings_for(["finetune", "replay", "frozen-bottom+er"], {"replay.capacity": 5, "train.epochs": 1})
    assert found["finetune"] == {"train.epochs": 1}
    assert found["replay"] == found["frozen-bottom+er"] == {"replay.capacity": 5, "train.epochs": 1}
    nobody = settings_for(["finetune"], {"replay.capacity": 5})
    assert nobody["finetune"] == {"replay.capacity": 5}, "kept, so that preparing the run refuses it"


def test_a_capacity_takes_the_place_of_a_benchmarks_share():
    own, given = (resolve(Request("climb", word, scale="tiny")).algorithms[0] for word in ("er", "er@50"))
    assert own.share is not None
    assert (given.capacity, given.share, given.memory) == (50, None, own.memory)
    both = resolve(Request("climb", "er@50", scale="tiny", settings={"er.share": 0.5})).algorithms[0]
    assert both.share == 0.5, "what a user says is left alone"


def test_a_setting_that_is_given_twice_must_be_the_same():
    with pytest.raises(UserError, match=r"--scale is tiny and benchmark\.scale small: these are the same setting"):
        resolve(Request("climb", scale="tiny", settings={"benchmark.scale": "small"}))
    assert resolve(Request("climb", scale="tiny", settings={"benchmark.scale": "tiny"})).benchmark.scale == "tiny"
    with pytest.raises(UserError, match=r"replay\.capacity is given as 64 and, as er\.capacity, as 32: give it once"):
        resolve(Request("patterns", "er", settings={"replay.capacity": 64, "er.capacity": 32}))
