"""A word becomes a thing in one place: built-in names, what packages announce, files and modules."""

import importlib
import sys
from pathlib import Path

import pytest

from holdfast import registry
from holdfast.errors import UserError
from holdfast.registry import entries, find

MODULE = """
from dataclasses import dataclass
from holdfast import Algorithm

@dataclass
class Mine(Algorithm):
    '''Mine alone.'''

class Plain(Algorithm):
    pass
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package of one module, by writing what an installer writes; give its name, code and entry points."""
    monkeypatch.syspath_prepend(tmp_path)
    names = list[str]()

    def install(name: str, code: str, **groups: str) -> Path:
        names.append(name)
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "RECORD").write_text(f"{name}.py,,\n")
        (info / "top_level.txt").write_text(f"{name}\n")
        points = "".join(f"[holdfast.{group}]\n{line}\n" for group, line in groups.items())
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()
        registry._announced.cache_clear()
        return tmp_path / f"{name}.py"

    yield install
    registry._announced.cache_clear()
    for name in names:
        sys.modules.pop(name, None)


def test_every_built_in_thing_is_found_by_each_of_its_names():
    for kind, known in registry.SLOTS.items():
        for table in known.tables:
            for main, entry in table.items():
                for word in (main, *entry.aliases, main.upper().replace("-", "_")):
                    found = find(word, kind)
                    assert (found.name, found.place, found.origin) == (main, entry.place, "built-in")


def test_a_package_announces_by_metadata_alone_and_is_imported_when_it_is_used(package):
    package("one_pack", MODULE, algorithms="stay = one_pack:Mine")
    entry = find("Stay", "algorithm")
    assert (entry.name, entry.origin) == ("stay", "package one_pack 1.2")
    assert "one_pack" not in sys.modules
    assert entry.load().__name__ == "Mine"
    assert list(entries("algorithm"))[-1] == "stay"


def test_a_broken_package_is_an_error_only_where_it_is_asked_for(package):
    package("broken_pack", "import nothing_of_this_name", algorithms="stay = broken_pack:Mine")
    assert find("replay", "algorithm").load().__name__ == "Replay"
    with pytest.raises(UserError, match=r"'stay' of package broken_pack 1\.2 cannot be imported: ModuleNotFoundError"):
        find("stay", "algorithm").load()
    assert find("stay", "algorithm").origin == "package broken_pack 1.2"


def test_an_entry_point_to_something_else_is_refused_with_what_there_is(package):
    package("other_pack", MODULE, algorithms="stay = other_pack:Mime\nplain = other_pack:Plain")
    with pytest.raises(UserError, match=r"other_pack has no algorithm 'Mime': did you mean Mine\?"):
        find("stay", "algorithm").load()
    with pytest.raises(UserError, match="Plain must be a dataclass: write @dataclass above it"):
        find("plain", "algorithm").load()


@pytest.mark.parametrize("name", ["replay", "ER", "naive", "joint", "mir-max", "frozen-bottom-3"])
def test_a_built_in_name_keeps_its_meaning_and_the_other_is_found_by_its_module(package, name):
    package("same_pack", MODULE, algorithms=f"{name} = same_pack:Mine")
    assert find(registry.row(name)[0], "algorithm").origin == "built-in"
    assert name not in set(entries("algorithm")) - {"replay", "joint"}
    assert entries("algorithm")["same_pack:Mine"].origin == "package same_pack 1.2"
    assert find("same_pack:Mine", "algorithm").load().__name__ == "Mine"


def test_a_family_of_benchmarks_is_not_entered_from_outside(package):
    """Its section of a report would show what it knows nothing of."""
    package("family_pack", MODULE, benchmarks="climb:mine = family_pack:Mine\nmine:climb = family_pack:Mine")
    assert {name for name, entry in entries("benchmark").items() if entry.origin != "built-in"} == {
        "family_pack:Mine",
        "mine:climb",
    }
    with pytest.raises(UserError, match="unknown benchmark 'climb:mine'"):
        find("climb:mine", "benchmark")


def test_a_name_that_two_packages_announce_means_neither(package):
    package("first_pack", MODULE, algorithms="stay = first_pack:Mine")
    package("second_pack", MODULE, algorithms="STAY = second_pack:Mine")
    with pytest.raises(UserError, match=r"announced by package .* \(as .*_pack:Mine\) and package .*: say which one"):
        find("stay", "algorithm")
    assert {"first_pack:Mine", "second_pack:Mine"} <= set(entries("algorithm"))
    assert find("second_pack:Mine", "algorithm").origin == "package second_pack 1.2"


def test_a_file_and_a_module_outside_any_package_say_where_they_are(tmp_path, monkeypatch):
    path = tmp_path / "loose_module.py"
    path.write_text(MODULE)
    assert find(f"{path}:Mine", "algorithm").origin == str(path)
    assert find(f"{path}:Mine", "algorithm").load().__name__ == "Mine"
    monkeypatch.syspath_prepend(tmp_path)
    assert find("loose_module:Mine", "algorithm").origin == str(path)


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        ("mine.py:Mine", "algorithm", "the file 'mine.py' with the algorithm 'Mine' does not exist"),
        ("mine.py", "benchmark", "'mine.py' names no benchmark: write it as mine.py:Name"),
        ("vilt-tinny", "model", r"unknown model 'vilt-tinny': did you mean vilt-tiny"),
        ("no_such.module:Net", "model", r"no module 'no_such.module' and no model 'no_such.module:Net' exist"),
        ("json.decoder:JSONDecoder", "model", r"'JSONDecoder', which does not extend holdfast.Model"),
        ("json.nothing:Net", "model", "'Net' of .*json.* cannot be imported: ModuleNotFoundError"),
        ("cfst:cgqaa", "benchmark", r"unknown benchmark 'cfst:cgqaa': did you mean cfst:cgqa"),
        ("same.py:replay", "algorithm", "same.py:replay has the name of a built-in algorithm"),
        ("sst", "dataset", r"unknown dataset 'sst': did you mean sst2"),
        ("Newest", "memory", "unknown memory 'Newest': there are reservoir, per-task"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest_names(word, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "same.py").touch()
    with pytest.raises(UserError, match=message):
        find(word, kind).load()


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        (
            "algorithm",
            "from holdfast.algorithms.replay import Replay as Mine",
            "has no algorithm 'Mine': there are none",
        ),
        ("algorithm", "Mine = 3", "has no algorithm 'Mine': there are none"),
        ("benchmark", "class Mine(Benchmark): pass", "Mine does not define setup"),
        ("benchmark", "{body}", r"must be a dataclass: write @dataclass\(frozen=True\) above it"),
        (
            "model",
            "class Mine(Model):\n    def encoder(self, inputs): pass",
            "Mine must be a dataclass: write @dataclass",
        ),
        ("dataset", "class Mine(Dataset): pass", "has no dataset 'Mine': there are none"),
        ("task", "class Mine(Task): pass", "Mine does not define forward and losses and predictions and score"),
    ],
)
def test_a_file_without_the_right_thing_says_what_is_missing(tmp_path, kind, code, message):
    body = "class Mine(Benchmark):\n    def setup(self, wants): pass\n    @staticmethod\n    def summary(scores): pass"
    lines = ["from dataclasses import dataclass", "from holdfast.benchmarks.base import Benchmark"]
    lines += ["from holdfast.models.base import Model", "from holdfast.datasets.base import Dataset"]
    lines += ["from holdfast.types import Task", code.format(body=body)]
    (tmp_path / "own.py").write_text("\n".join(lines))
    with pytest.raises(UserError, match=message):
        find(f"{tmp_path}/own.py:Mine", kind).load()
