"""The public interface: what `import holdfast` has, and that none of it costs anything before it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import registry
from holdfast.api import RunWords, Words
from holdfast.experiments.request import Request
from holdfast.settings import fields
from processes import environment

TYPES = {
    "Task", "Stage", "Stream", "Training", "Learner", "Algorithm", "Memory", "Benchmark", "Measure", "Model", "Between",
    "Tracker", "Record", "Runs", "UserError", "RunError",
}  # fmt: skip
FUNCTIONS = {"run", "plan", "train", "evaluate", "load", "report"}
ROOMS = {"algorithms", "memory", "models", "metrics", "papers", "streams", "tasks"}


def test_it_has_what_it_promises_and_nothing_else():
    assert set(holdfast.__all__) == TYPES | FUNCTIONS | ROOMS | {"__version__"} == set(dir(holdfast))
    assert all(isinstance(getattr(holdfast, name), type) for name in TYPES)
    assert all(callable(getattr(holdfast, name)) for name in FUNCTIONS)
    assert all(getattr(holdfast, name).__doc__ for name in {*TYPES, *FUNCTIONS, *ROOMS})
    for room in (getattr(holdfast, name) for name in ROOMS):
        assert dir(room) == sorted(room.__all__)
        assert all(hasattr(room, name) for name in dir(room))
    with pytest.raises(AttributeError, match="no attribute 'traim'"):
        _ = holdfast.traim


@pytest.mark.parametrize(("room", "kind"), [("algorithms", "algorithm"), ("models", "model")])
def test_its_rooms_have_every_built_in_class(room, kind):
    module = getattr(holdfast, room)
    found = {each for name in dir(module) if isinstance(each := getattr(module, name), type)}
    built_in = {entry.load() for entry in registry.entries(kind).values() if entry.origin == "built-in" and entry.place}
    made_of = {"Finetune", "Attachable", "Encoder", "Network", "TransformerBlock", "Wants"}
    assert {each for each in built_in if isinstance(each, type)} == {
        each for each in found if each.__name__ not in made_of
    }
    with pytest.raises(AttributeError, match=f"holdfast.{room}' has no attribute 'Replya'"):
        _ = module.Replya


@pytest.mark.parametrize("module", [holdfast, holdfast.algorithms, holdfast.models])
def test_what_type_checkers_see_is_what_there_is(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert set(seen) | {"UserError", "RunError", "__version__"} >= set(module.__all__)
    for name, place in seen.items():
        assert getattr(module, name) is getattr(sys.modules[place], name)


def test_it_is_there_at_once_and_torch_comes_with_the_first_use():
    code = (
        "import sys, holdfast; dir(holdfast); dir(holdfast.models); holdfast.UserError; holdfast.Stage; holdfast.run\n"
        "assert 'torch' not in sys.modules; holdfast.algorithms.Finetune; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)


def test_the_words_of_its_functions_are_those_of_a_request():
    named = {"benchmark", "algorithm", "model", "seed", "objects"}
    assert set(Words.__annotations__) == set(fields(Request)) - named
    import inspect

    keywords = set(inspect.signature(holdfast.run).parameters) - {"benchmark", "algorithms", "seeds", "words"}
    assert set(RunWords.__annotations__) == set(Words.__annotations__) | keywords


SCRIPT = """
import holdfast as hf

class Mine(hf.Algorithm): ...

reveal_type(hf.run("patterns", "er"))
reveal_type(hf.run("patterns", hf.algorithms.Replay(capacity=3), seed=1, settings={"train.epochs": 1}))
reveal_type(hf.run("patterns", Mine(), seeds=2))
reveal_type(hf.run("patterns", [Mine(), (hf.algorithms.EWC(), "er")], jobs=2))
reveal_type(hf.train(None, "patterns").model)
hf.run("patterns", "er", sede=1)
hf.algorithms.Replay(capacitty=1)
"""


@pytest.mark.slow
def test_it_is_typed(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = [sys.executable, "-m", "mypy", "--strict", "script.py"]
    told = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False).stdout
    kinds = [line.partition("Revealed type is ")[2].strip('"') for line in told.splitlines() if "Revealed" in line]
    record, runs = "holdfast.experiments.store.Record", "holdfast.reports.runs.Runs"
    assert kinds == [record, record, runs, runs, "holdfast.models.base.Network"]
    assert 'Unexpected keyword argument "capacitty"' in told
    assert "script.py:12: error" in told, "run() takes no 'sede'"
