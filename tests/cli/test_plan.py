"""`holdfast plan`, as a person uses it."""

import json
import subprocess
import sys

import pytest
import typer

from holdfast.cli.plan import plan
from holdfast.errors import UserError
from processes import environment

PLAN = """
[[experiment]]
algorithms = ["finetune", "er", "mine.py:Broken"]
scale = "tiny"
set = {"benchmark.stages" = 2, "train.epochs" = 1, "er.capacity" = 40}
"""
BROKEN = """
from dataclasses import dataclass
from holdfast.algorithms.base import Algorithm
@dataclass
class Broken(Algorithm):
    def after(self, learner, batch):
        raise IndexError("a mistake in the algorithm")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "mine.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_plan_is_told_carried_out_and_ends_with_what_failed_and_how_to_repeat_it(folder, capsys):
    plan("plan.toml", dry_run=True, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["done"], told["runs_of_unknown_cost"]) == (3, 0, 3)
    assert not (folder / "runs").exists(), "nothing is run"

    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "plan", "plan.toml", "--tries", "2"], capture_output=True, text=True,
        env=environment(), check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert "2 of 3 runs are done" in done.stderr
    assert done.stderr.count("tried again: Broken, seed 0: IndexError: a mistake in the algorithm") == 1
    assert (
        "again: holdfast run patterns --algorithm mine.py:Broken --scale tiny --set benchmark.stages=2" in done.stderr
    )
    assert "1 of 3 runs failed; to try them all again: holdfast plan plan.toml --tries 2" in done.stderr

    plan("plan.toml", dry_run=True)
    told = capsys.readouterr().out
    assert "3 runs: 3 requested and 0 that these need." in told
    assert "The cost of 1 of them is unknown: runs has no similar run." in told


def test_a_model_replaces_the_plan_s(folder, capsys):
    (folder / "two.toml").write_text(
        PLAN.replace("[[experiment]]", '[[experiment]]\nmodels = ["perceptron", "vit-tiny"]')
    )
    plan("two.toml", dry_run=True, model="resnet18-tiny", as_json=True)
    assert json.loads(capsys.readouterr().out)["runs"] == 3


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"file": "plan.toml", "engine": "rya"}, r"did you mean ray\?"),
        ({"file": "no.toml"}, "unknown plan 'no.toml'"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(folder, given, sentence):
    with pytest.raises(UserError, match=sentence):
        plan(**given)


def test_a_dry_run_writes_nothing_and_says_what_is_not_known_yet(folder, capsys, monkeypatch):
    """Of the paper's size: its world would take hours to write, and its BERT would have to be downloaded."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(folder / "cache"))
    before = sorted(folder.iterdir())
    with pytest.raises(typer.Exit):
        plan("climb", dry_run=True, scale="paper")
    told = " ".join(capsys.readouterr().out.split())
    assert "1,412 runs: 129 requested and 1,283 that these need." in told
    assert "The data of 1,412 runs was not read, so their ids are not known yet" in told
    assert "Cannot be run: 9 runs, such as direct/vqav2: finetune, seed 0: at the scale 'paper' pictures stay" in told
    with pytest.raises(typer.Exit):
        plan("climb", dry_run=True, scale="paper", as_json=True)
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert len({node["id"] for node in nodes}) == 1412
    assert not any(node["id_is_final"] for node in nodes)
    assert all((node["command"] is None) == (node["after"] is not None) for node in nodes), "it would name its start"
    assert sorted(folder.iterdir()) == before

    plan("plan.toml", dry_run=True, as_json=True)
    drawn = json.loads(capsys.readouterr().out)["nodes"]
    assert all(node["id_is_final"] and node["command"] for node in drawn)
