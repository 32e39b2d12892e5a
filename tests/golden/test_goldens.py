"""Each built-in part gives what it gave when its version was last raised.

A part alone: `pytest tests/golden -k Mir`.
"""

import importlib
import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from golden.cases import CASES
from golden.goldens import Golden, file_of, measured, part_of, read, verdict
from holdfast import registry
from holdfast.experiments.parts import of_any_data, versions
from holdfast.memory import Memory
from smallest import prepared, trained

GOLDENS = read()


@pytest.mark.filterwarnings("ignore:lwf.on is seen")  # of a head that is new, which is a case as well
@pytest.mark.parametrize("case", CASES)
def test_a_part_behaves_as_when_its_version_was_raised(case):
    told = verdict(case, GOLDENS.get(case), measured(case))
    assert not told, told


def test_no_golden_is_left_of_a_case_that_is_gone():
    assert GOLDENS.keys() <= CASES.keys(), "run `make goldens`"


def test_every_part_has_a_golden():
    parts = set(of_any_data())
    for table in (registry.ALGORITHMS, registry.MODELS, registry.BENCHMARKS):
        for name, entry in table.items():
            found = versions(entry.load())
            assert found, f"{name} has no version"
            parts |= found.keys()
    parts |= {f"transform {name}" for name in registry.TRANSFORMS}
    parts |= versions(*_concrete(Memory)).keys()
    covered = {part for golden in GOLDENS.values() for part in golden.parts}
    assert parts - {"augment none"} <= covered | {part_of(case) for case in CASES}


def _concrete(kind):
    below = [each for child in kind.__subclasses__() for each in _concrete(child)]
    return below if inspect.isabstract(kind) else [kind, *below]


def test_a_change_without_a_new_version_names_the_file():
    then = Golden({"engine": 1, "algorithm Mir": 1}, {"norm": [1.0]})
    told = verdict("algorithm Mir: max", then, replace(then, values={"norm": [1.001]}))
    assert "the behaviour of algorithm Mir changed (max: norm)" in told
    assert "raise `version` in src/holdfast/algorithms/mir.py (or that of engine" in told
    assert told.endswith("then run `make goldens`")
    assert verdict("algorithm Mir: max", then, replace(then, values={"norm": [1.0000001]})) == ""


def test_a_raised_version_asks_for_its_golden():
    then = Golden({"engine": 1, "algorithm Mir": 1}, {"norm": [1.0]})
    told = verdict("algorithm Mir: max", then, replace(then, parts={"engine": 1, "algorithm Mir": 2}))
    assert told == "the golden of algorithm Mir: max is of other versions (algorithm Mir 1 to 2): run `make goldens`"


def test_each_part_has_a_file():
    for part in {part for golden in GOLDENS.values() for part in golden.parts}:
        assert (Path(registry.__file__).parents[2] / file_of(part)).is_file()


@pytest.mark.parametrize("name", registry.ALGORITHMS)
def test_an_algorithm_names_each_memory_that_it_makes(name, monkeypatch):
    made = []
    first = Memory.__init__
    monkeypatch.setattr(Memory, "__init__", lambda self, *given: (made.append(type(self)), first(self, *given))[1])
    ready = prepared(name, train__epochs=1)
    trained(ready)
    assert versions(*made).keys() <= ready.config.parts.keys()


@pytest.mark.parametrize(
    ("constant", "case"),
    [
        ("holdfast.memory.balanced.FLOOR", "memory TargetBalanced: forget"),
        ("holdfast.memory.balanced.SMOOTHING", "memory TargetBalanced: forget"),
        ("holdfast.algorithms.adapter_library.SHRINK", "algorithm AdapterLibrary: default"),
        ("holdfast.data.streams.OFFLINE", "transform offline: stream"),
    ],
)
def test_a_changed_constant_is_noticed(constant, case, monkeypatch):
    module, _, name = constant.rpartition(".")
    monkeypatch.setattr(constant, vars(importlib.import_module(module))[name] * 2)
    assert "raise `" in verdict(case, GOLDENS[case], measured(case))
