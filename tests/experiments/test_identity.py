"""A run's id covers what decides its result: our parts by version, other code and weights by what they are."""

import copy
import importlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from holdfast import registry
from holdfast.data import augment, decoding, streams, text
from holdfast.engine import optimiser
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.parts import of_any_data, versions
from holdfast.experiments.request import Request
from holdfast.foreign import identity
from holdfast.memory import PerTask, Reservoir
from holdfast.models.vilt import Vilt
from holdfast.registry import Entry
from smallest import prepare, prepared

MINE = """
from dataclasses import dataclass
from holdfast.algorithms.base import Algorithm
{imports}

@dataclass
class Mine(Algorithm):
    def said(self):
        return {value}
"""


def mine(folder: Path, imports: str = "import helper", value: str = "helper.VALUE", **files: str) -> str:
    """Write a file, with others beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(MINE.format(imports=imports, value=value))
    for name, content in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return f"{folder}/mine.py:Mine"


def run(word: str) -> tuple[str, object]:
    """The id of a run with an algorithm from a file, and what the algorithm says."""
    ready = prepare(Request("patterns", word, scale="tiny"))
    return ready.config.id, ready.algorithms[0].said()


def test_an_edited_helper_is_a_new_run_and_is_executed(tmp_path):
    """In the same process, within the same second, and with a file of the same size."""
    word = mine(tmp_path, helper="VALUE = 1")
    first = run(word)
    assert run(word) == first
    (tmp_path / "helper.py").write_text("VALUE = 2")
    second = run(word)
    assert (first[1], second[1]) == (1, 2)
    assert first[0] != second[0]
    (tmp_path / "helper.py").write_text("VALUE = 1")
    assert run(word) == first


def test_what_a_file_once_took_does_not_count(tmp_path):
    first = run(mine(tmp_path, "", "1"))
    assert run(mine(tmp_path, "from holdfast.memory import Reservoir", "1"))[0] != first[0]
    assert run(mine(tmp_path, "", "1")) == first


def test_a_file_next_to_it_that_nothing_imports_does_not_count(tmp_path):
    word = mine(tmp_path, helper="VALUE = 1", other="VALUE = 1")
    first = run(word)
    (tmp_path / "other.py").write_text("VALUE = 2")
    assert run(word) == first


@pytest.mark.parametrize(
    ("imports", "value", "edited", "said"),
    [
        ("import deep.er.inner as inner", "inner.VALUE", "deep/er/inner", 2),
        ("import deep.er.inner", "deep.er.inner.VALUE", "deep/er/inner", 2),
        ("from deep.er import inner", "inner.VALUE", "deep/er/inner", 2),
        ("from deep import VALUE", "VALUE", "deep/er/inner", 2),
        ("from deep.er.inner import *", "VALUE", "deep/__init__", 1),
        ("from deep import er", "1", "deep/er/__init__", 1),
        ("from .helper import VALUE", "VALUE", "helper", 2),
        ("from spaces.inner import VALUE", "VALUE", "spaces/inner", 2),
        ("import importlib", "1", "", 1),
    ],
)
def test_what_counts_is_followed_through_packages(tmp_path, imports, value, edited, said):
    files = {
        "helper": "VALUE = 1",
        "deep/__init__": "from .er.inner import VALUE",
        "deep/er/__init__": "",
        "deep/er/inner": "VALUE = 1",
        "spaces/inner": "VALUE = 1",
    }
    word = mine(tmp_path, imports, value, **files)
    first = run(word)
    assert first[1] == 1
    path = tmp_path / f"{edited or 'nothing'}.py"
    path.write_text(f"{files.get(edited)}\nVALUE = 2\n")
    second = run(word)
    assert (second[0] != first[0]) == bool(edited)
    assert second[1] == said


def test_an_import_within_a_function_counts_and_finds_its_own_helper(tmp_path):
    """Whatever was loaded in between from another folder."""
    lazy = "(lambda: __import__('helper').VALUE)()"
    late = "\ndef late():\n    import helper\n    return helper.VALUE"
    first = mine(tmp_path / "a", imports=late, value="late()", helper="VALUE = 'a'")
    second = mine(tmp_path / "b", imports=late, value="late()", helper="VALUE = 'b'")
    third = mine(tmp_path / "c", imports="", value=lazy, helper="VALUE = 'c'")
    ready = [prepare(Request("patterns", word, scale="tiny")) for word in (first, second, third)]
    assert [each.algorithms[0].said() for each in ready] == ["a", "b", "c"]
    (tmp_path / "a/helper.py").write_text("VALUE = 'd'")
    assert run(first)[0] != ready[0].config.id
    assert run(first)[1] == "d"
    assert ready[1].algorithms[0].said() == "b"
    assert "helper" not in sys.modules


def test_a_module_that_is_imported_by_a_computed_name_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    name = "holdfast_test_computed"
    load = "import importlib\nfound = importlib.import_module('holdfast_test_' + 'computed')"
    word = mine(tmp_path, load, "found.VALUE", **{name: "VALUE = 1"})
    try:
        first = run(word)
        (tmp_path / f"{name}.py").write_text("VALUE = 33")
        importlib.invalidate_caches()
        second = run(word)
    finally:
        sys.modules.pop(name, None)
    assert first[0] != second[0]
    assert (first[1], second[1]) == (1, 33)


def test_a_helper_hides_neither_python_nor_a_package_that_is_not_below(tmp_path):
    word = mine(tmp_path, "import random, json", "random.Random(3).random() < 2", random="VALUE = 1")
    assert run(word)[1] is True


def test_a_mistake_in_a_helper_is_told_with_its_place(tmp_path):
    word = mine(tmp_path, helper="VALUE = (")
    with pytest.raises(UserError, match=r"helper\.py, line 1"):
        resolve(Request("patterns", word, scale="tiny"))
    (tmp_path / "helper.py").write_text("VALUE = nothing")
    with pytest.raises(UserError, match=r"mine\.py, line 4: NameError: name 'nothing'"):
        resolve(Request("patterns", word, scale="tiny"))
    (tmp_path / "helper.py").write_text("VALUE = 5")
    assert run(word)[1] == 5


@pytest.mark.parametrize(
    ("imports", "value", "part"),
    [
        ("from holdfast.memory import Reservoir", "Reservoir(3, 0)", "memory Reservoir"),
        ("import holdfast.memory", "holdfast.memory.Reservoir(3, 0)", "memory Reservoir"),
        ("from holdfast import memory as kept", "kept.Reservoir(3, 0)", "memory Reservoir"),
        ("from holdfast.algorithms.ewc import EWC as Algorithm", "1", "algorithm EWC"),
        ("from helper import Reservoir", "Reservoir(3, 0)", "memory Reservoir"),
    ],
)
def test_a_users_algorithm_counts_the_built_in_parts_that_it_takes(tmp_path, imports, value, part, monkeypatch):
    word = mine(tmp_path, imports, value, helper="from holdfast.memory import Reservoir")
    first = prepare(Request("patterns", word, scale="tiny")).config
    assert first.parts[part] == 1
    kind = Reservoir if "memory" in part else registry.ALGORITHMS["ewc"].load()
    monkeypatch.setattr(kind, "version", 2)
    assert prepare(Request("patterns", word, scale="tiny")).config.id != first.id


def test_a_helper_of_ours_without_a_version_counts_by_its_file(tmp_path, monkeypatch):
    word = mine(tmp_path, "from holdfast.algorithms.rows import weighted", "1")
    first = prepare(Request("patterns", word, scale="tiny")).config
    original = Path.read_bytes
    edited = lambda self: original(self) + (b"# edited" if self.name == "rows.py" else b"")  # noqa: E731
    monkeypatch.setattr(Path, "read_bytes", edited)
    assert prepare(Request("patterns", word, scale="tiny")).config.id != first.id


# ------------------------------------------------------------------------------------------------- built-in parts


def test_only_the_parts_that_a_run_uses_are_in_its_id():
    parts = prepared("replay").config.parts
    assert set(parts) == {
        "engine", "optimiser adamw", "benchmark Patterns", "task Classify", "model Perceptron", "head ClassifyHead",
        "algorithm Replay", "memory Reservoir",
    }  # fmt: skip
    found = prepared("replay", replay__memory="per-task", train__augment="flip").config.parts
    assert found.keys() - parts.keys() == {"memory PerTask", "augment flip"}
    assert "memory Reservoir" not in found
    assert prepared("joint").config.parts["transform joint"] == 1


@pytest.mark.parametrize(
    ("place", "name", "algorithm"),
    [
        (registry.ALGORITHMS["mir"].load(), "version", "mir"),
        (registry.ALGORITHMS["lwf"].load(), "version", "rpsnet"),
        (Reservoir, "version", "mir"),
        (registry.MODELS["perceptron"].load(), "version", "mir"),
        (registry.BENCHMARKS["patterns"].load(), "version", "mir"),
        (importlib.import_module("holdfast.tasks").Classify, "version", "mir"),
        (importlib.import_module("holdfast.models.heads").ClassifyHead, "version", "mir"),
        (importlib.import_module("holdfast.engine"), "VERSION", "mir"),
        (optimiser, "VERSION", "mir"),
        (streams, "VERSION", "joint"),
    ],
)
def test_a_raised_version_is_a_new_run(place, name, algorithm, monkeypatch):
    first = prepared(algorithm).config.id
    assert prepared(algorithm).config.id == first
    monkeypatch.setattr(place, name, getattr(place, name) + 1)
    assert prepared(algorithm).config.id != first


def test_a_version_that_a_run_does_not_use_leaves_its_id(monkeypatch):
    first = prepared("replay").config.id
    for place in (PerTask, Vilt, registry.ALGORITHMS["ewc"].load()):
        monkeypatch.setattr(place, "version", 2)
    for place in (augment, decoding, streams, text):
        monkeypatch.setattr(place, "VERSION", 2)
    assert prepared("replay").config.id == first


def test_readers_and_word_pieces_count():
    found = prepare(Request("climb", scale="tiny", order="snli-ve")).config.parts
    assert found["tokenizer"] == of_any_data()["tokenizer"]
    assert found["task Classify"] == found["model Vilt"] == 1
    assert versions(Vilt) == {"model Vilt": 1}


def test_the_version_of_a_reader_counts(monkeypatch):
    module = importlib.import_module("holdfast.datasets.snli_ve")
    asked = Request("climb", scale="tiny", order="snli-ve")
    monkeypatch.setattr(module, "VERSION", 7, raising=False)
    assert prepare(asked).config.parts["reader snli_ve"] == 7


# ------------------------------------------------------------------------------------- what is registered in a process


PLUGIN = """
from dataclasses import dataclass
from holdfast.algorithms.base import Algorithm
from holdfast.benchmarks.patterns.benchmark import Patterns
from holdfast.models.perceptron import Perceptron
from .constants import STRENGTH

def strength():
    return STRENGTH

@dataclass
class Held(Algorithm):
    def said(self):
        return strength()

@dataclass(frozen=True)
class Wider(Perceptron):
    depth: int = 3

@dataclass(frozen=True)
class Mine(Patterns):
    noise: float = 0.2
"""
KINDS = [
    (registry.ALGORITHMS, "Held", Request("patterns", "theirs", scale="tiny")),
    (registry.MODELS, "Wider", Request("patterns", model="theirs", scale="tiny")),
    (registry.BENCHMARKS, "Mine", Request("theirs", scale="tiny")),
]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package that is imported, and how to import it anew."""
    folder = tmp_path / "holdfast_test_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "constants.py").write_text("STRENGTH = 1")
    (folder / "parts.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        for name in [name for name in sys.modules if name.startswith(folder.name)]:
            del sys.modules[name]
        importlib.invalidate_caches()

    yield folder, forget
    forget()


@pytest.mark.parametrize(("table", "kind", "asked"), KINDS)
def test_edited_code_of_what_was_registered_is_a_new_run(plugin, table, kind, asked, monkeypatch):
    folder, forget = plugin
    monkeypatch.setitem(table, "theirs", Entry(f"{folder.name}.parts:{kind}", "theirs"))
    first = prepare(asked).config
    forget()
    assert prepare(asked).config.id == first.id
    code = [
        each
        for each in (first.content["benchmark"], first.content["model"], *first.content["algorithms"])
        if "code" in each
    ]
    assert len(code) == 1
    assert "without_file" not in code[0]
    (folder / "constants.py").write_text("STRENGTH = 2")
    stale = prepare(asked).config.id  # the file was edited, and what runs is the old code
    forget()
    new = prepare(asked).config.id
    assert first.id not in (stale, new)
    assert kind != "Held" or stale != new, "only this one has a use for what was edited"


@pytest.mark.parametrize(("table", "kind", "asked"), KINDS)
def test_what_is_replaced_in_memory_is_a_new_run(plugin, table, kind, asked, monkeypatch):
    folder, _ = plugin
    monkeypatch.setitem(table, "theirs", Entry(f"{folder.name}.parts:{kind}", "theirs"))
    first = prepare(asked).config.id
    loaded = getattr(sys.modules[f"{folder.name}.parts"], kind)
    monkeypatch.setattr(loaded, "note", lambda self: 1, raising=False)
    second = prepare(asked).config.id
    monkeypatch.setattr(loaded, "note", lambda self: 2, raising=False)
    assert len({first, second, prepare(asked).config.id}) == 3


def test_what_extends_a_part_of_ours_counts_its_version(plugin, monkeypatch):
    folder, _ = plugin
    monkeypatch.setitem(registry.MODELS, "theirs", Entry(f"{folder.name}.parts:Wider", "theirs"))
    asked = Request("patterns", model="theirs", scale="tiny")
    first = prepare(asked).config
    assert first.parts["model Perceptron"] == 1
    monkeypatch.setattr(registry.MODELS["perceptron"].load(), "version", 2)
    assert prepare(asked).config.id != first.id


def test_what_was_typed_into_a_shell_counts_by_what_it_does(monkeypatch):
    shell = type(sys)("holdfast_test_shell")
    monkeypatch.setitem(sys.modules, shell.__name__, shell)
    monkeypatch.setitem(registry.ALGORITHMS, "typed", Entry(f"{shell.__name__}:Mine", "typed"))
    ids = []
    for limit, value in ((3, "LIMIT"), (4, "LIMIT"), (4, "LIMIT + 1"), (3, "LIMIT")):
        exec(MINE.format(imports=f"LIMIT = {limit}", value=value), vars(shell))
        config = prepare(Request("patterns", "typed", scale="tiny")).config
        assert config.content["algorithms"][0]["without_file"] is True
        ids.append(config.id)
    assert ids[3] == ids[0]
    assert len(set(ids)) == 3


def test_a_class_of_ours_has_no_hash_of_its_code():
    assert all("code" not in each for each in prepared("replay").config.content["algorithms"])
    assert "code" not in prepared().config.content["model"]


# ------------------------------------------------------------------------------------------------------------ weights


def test_each_file_of_the_weights_that_is_loaded_counts(tmp_path):
    shipped = Path(registry.__file__).parent / "models/shipped/vilt-tiny"
    folder = Path(shutil.copytree(shipped, tmp_path / "weights"))

    def source() -> str:
        return Vilt(weights=str(folder)).source()

    first, name = source(), folder / "config.json"
    name.write_text(name.read_text().replace('"layer_norm_eps": 1e-12', '"layer_norm_eps": 1e-5'))
    second = source()
    (folder / "vocab.txt").write_text((folder / "vocab.txt").read_text().replace("\nthe\n", "\neht\n"))
    third = source()
    (folder / "README.md").write_text("a note")
    assert source() == third
    assert len({first, second, third}) == 3


def test_a_class_of_a_package_is_the_same_after_it_was_copied_and_used(tmp_path, monkeypatch):
    """A worker finds the same id for each of several runs, whatever `copy` and lazy imports left in between."""
    monkeypatch.syspath_prepend(tmp_path)
    late = "\n    def begin(self, learner, stage):\n        return holdfast.Algorithm"
    code = MINE.format(imports="import holdfast", value=1) + late
    (tmp_path / "holdfast_test_copied.py").write_text(code)
    monkeypatch.delitem(vars(holdfast), "Algorithm", raising=False)
    try:
        kind = registry.find("holdfast_test_copied:Mine", "algorithm").load()
        first = identity(kind)
        copy.deepcopy(kind())
        assert "__slotnames__" in vars(kind)
        assert identity(kind) == first
        monkeypatch.setitem(vars(holdfast), "Algorithm", holdfast.Algorithm)
        assert identity(kind) == first
    finally:
        sys.modules.pop("holdfast_test_copied", None)


@pytest.mark.parametrize("edited", ["bench", "kinds", "net", "keeper", "reader", "mine"])
def test_an_edit_of_any_file_is_a_new_run(tmp_path, edited):
    """Of a benchmark, its task kind, a model, a memory, a reader, and an algorithm, each in a file of its own."""
    for name, code in OWN.items():
        (tmp_path / f"{name}.py").write_text(code.format(folder=tmp_path))
    asked = Request(
        f"{tmp_path}/bench.py:Own",
        f"{tmp_path}/mine.py:Mine+replay",
        f"{tmp_path}/net.py:Net",
        settings={"replay.memory": f"{tmp_path}/keeper.py:Newest", "replay.capacity": 40},
    )
    first = prepare(asked).config
    assert prepare(asked).config.id == first.id
    path = tmp_path / f"{edited}.py"
    path.write_text(path.read_text() + "\nMORE = 1\n")
    second = prepare(asked).config
    assert second.id != first.id
    assert str(tmp_path) not in json.dumps(second.content)
    shutil.move(tmp_path / "keeper.py", tmp_path / "moved.py")
    moved = replace(asked, settings={**asked.settings, "replay.memory": f"{tmp_path}/moved.py:Newest"})
    assert prepare(moved).config.id == second.id


OWN = {
    "mine": MINE.format(imports="", value=1),
    "bench": """
from dataclasses import dataclass
import numpy as np
from holdfast.benchmarks.base import Benchmark
from holdfast.benchmarks.stages import in_stages
from kinds import Own as Kind

@dataclass(frozen=True)
class Own(Benchmark):
    def reads(self):
        return ("{folder}/reader.py:FILES",)

    def setup(self, wants):
        rows = np.zeros((40, 4, 4), np.uint8), np.arange(40) % 2
        task = Kind("own", head="own", outputs=2, chance=0.5)
        return in_stages({{name: {{"train": rows, "test": rows}} for name in "ab"}}, task)
""",
    "kinds": """
from dataclasses import dataclass
from holdfast.tasks import OneRight
from holdfast.types import Head

@dataclass(frozen=True)
class Own(OneRight):
    name: str
    head: str
    outputs: int
    chance: float

    @property
    def reads(self):
        return Head("classify", self.outputs)
""",
    "net": """
from dataclasses import dataclass
from holdfast.models.base import Model
from holdfast.models.perceptron import Perceptron

@dataclass(frozen=True)
class Net(Model):
    def encoder(self, inputs):
        return Perceptron(width=4).encoder(inputs)
""",
    "keeper": """
from holdfast.memory import Reservoir, Memory

class Newest(Memory):
    def __init__(self, capacity, seed):
        super().__init__(seed)

    def add(self, ids):
        self.ids = ids
""",
    "reader": """
from holdfast.datasets.base import Dataset

def read(folder, split, reading):
    yield from ()

FILES = Dataset("files", ("train",), read)
""",
}
