"""Scripts of the user's own: their classes reach workers, ranks and Ray, and an edit of them is another run."""

import io
import json
import runpy
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

import holdfast as hf
from cli.inside import inside
from holdfast.experiments.carry import carry
from holdfast.experiments.local import Options
from holdfast.experiments.objects import requests
from holdfast.experiments.plan import graph
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from processes import environment

pytestmark = pytest.mark.thorough  # starts processes

SCRIPT = """
from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Annotated

import mine

import holdfast as hf

print("begun")
FACTOR = 0.5


def scaled(value):
    return FACTOR * value


@dataclass
class Decay(hf.Algorithm):
    strength: Annotated[float, hf.Between(0)] = 0.01

    def loss(self, learner, batch, outputs):
        return scaled(self.strength) * mine.norm(learner)


class Steps(hf.Tracker):
    def open(self, folder):
        self.path, self.count = folder / "steps.txt", 0

    def step(self, stage_step, loss):
        self.count += 1

    def close(self):
        self.path.write_text(str(self.count))


methods = [Decay(strength=0.02), mine.Halved, (Decay(), hf.algorithms.Replay(capacity=64))]
how = json.loads(sys.argv[1])
settings = {"benchmark.stages": 2, "train.epochs": 1}
if how.pop("plan", False):
    print(*hf.plan("patterns", methods, scale="tiny", settings=settings, **how).ids)
else:
    runs = hf.run("patterns", methods, scale="tiny", settings=settings, log=[Steps()], **how)
    print(*(run.id for run in runs))
"""
MINE = """
from dataclasses import dataclass

import holdfast as hf


def norm(learner):
    return sum((p**2).sum() for p in learner.trainable().values())


@dataclass
class Halved(hf.Algorithm):
    def loss(self, learner, batch, outputs):
        return 0.5 * norm(learner)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def here(path, *words):
    """Run a script in this process, as Python does; what it printed."""
    out = io.StringIO()
    argv, before = [str(path), *words], set(sys.modules)
    patches = {"argv": argv, "path": [str(path.parent), *sys.path], "dont_write_bytecode": True}
    with mock.patch.multiple(sys, **patches), chdir(path.parent), redirect_stdout(out):
        runpy.run_path(str(path), run_name="__main__")
    for name in set(sys.modules) - before:  # another process would not have them
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == path.parent and "user" not in name:
            del sys.modules[name]
    return out.getvalue()


def start(folder, *words, **how):
    """Run the script in a process of its own; the ids of its runs, and how often it has begun."""
    command = [sys.executable, *words, "script.py", json.dumps(how)]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    begun, *ids = done.stdout.split()
    return ids, 1 + ids.count(begun), done.stderr


def results(folder, out, ids):
    store = Store(folder / out)
    return [(store.folder(run).record().scores, store.folder(run).weights.read_bytes()) for run in ids]


def test_its_classes_reach_workers_and_ranks_and_the_script_is_not_run_again(folder):
    _, *ids = here(folder / "script.py", json.dumps({"out": "one"})).split()
    workers, begun, told = start(folder, out="workers", jobs=2)
    assert (workers, begun, told) == (ids, 1, "")
    assert results(folder, "workers", ids) == results(folder, "one", ids)
    assert [(folder / "workers" / run / "steps.txt").read_text() for run in ids] == ["6"] * 3
    ranks, begun, _ = start(folder, out="ranks", ranks=2)
    assert (ranks, begun) == (ids, 1)
    records = [Store(folder / "ranks").folder(run).record() for run in ids]
    assert [record.environment["ranks"] for record in records] == [2] * 3
    how = [record.environment for record in records]
    assert [each["command"].partition(" --set")[0] for each in how] == [
        "", "holdfast run patterns --algorithm mine.py:Halved --scale tiny", ""
    ]  # fmt: skip
    assert f"came from {folder}/script.py; run that script again" in how[0]["again"]
    again = inside(*how[1]["command"].split()[1:], "--out", "fresh", "--json", cwd=folder)
    assert json.loads(again.stdout)[0]["id"] == ids[1]


@pytest.mark.slow
def test_torchrun_trains_a_script_on_ranks(folder):
    _, *ids = here(folder / "script.py", json.dumps({"out": "one"})).split()
    words = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29611"]
    told, _, _ = start(folder, *words, out="ranks")
    assert told[-3:] == ids
    assert {Store(folder / "ranks").folder(run).record().environment["ranks"] for run in ids} == {2}


def test_an_edit_of_what_a_class_reaches_is_another_run_and_another_line_is_not(folder):
    def planned(before="", after=""):
        (folder / "script.py").write_text(SCRIPT.replace(before, after))
        return here(folder / "script.py", json.dumps({"plan": True})).split()[1:]

    first = planned()
    changed = {
        "nothing": planned(),
        "another line": planned("import sys\n", "import sys\n\nother = 3\n"),
        "its own code": planned("* mine.norm", "* 2 * mine.norm"),
        "a constant": planned("FACTOR = 0.5", "FACTOR = 0.25"),
        "a function": planned("return FACTOR * value", "return value"),
    }
    (folder / "mine.py").write_text(MINE.replace("p**2", "p**4"))
    changed["a helper"] = planned()
    same = {name: [new == old for new, old in zip(ids, first, strict=True)] for name, ids in changed.items()}
    assert same == {
        "nothing": [True, True, True],
        "another line": [True, True, True],
        "its own code": [False, True, False],
        "a constant": [False, True, False],
        "a function": [False, True, False],
        "a helper": [False, False, False],
    }


def plan_of(*algorithms, **words):
    settings = {"benchmark.stages": 2, "train.epochs": 1}
    return graph(requests("patterns", algorithms, None, (0, 1), scale="tiny", settings=settings, **words))


def test_an_error_in_a_worker_or_a_rank_is_the_same_error_here(tmp_path):
    @dataclass
    class Wrong(hf.Algorithm):
        def check(self, stream):
            pass

        def setup(self, learner):
            raise hf.UserError("nothing will do")

    for how in ({"jobs": 2}, {"ranks": 2}):
        with pytest.raises(hf.UserError, match=r"Wrong, seed \d: nothing will do"):
            hf.run("patterns", Wrong(), seeds=2, scale="tiny", out=tmp_path / "runs", **how)


@pytest.mark.filterwarnings("ignore")
def test_a_class_that_no_process_can_import_reaches_ray(tmp_path):
    from holdfast.experiments.ray import Cluster, RunResources

    @dataclass
    class Local(hf.Algorithm):
        strength: float = 0.02

        def loss(self, learner, batch, outputs):
            return self.strength * sum((p**2).sum() for p in learner.trainable().values())

    plan = plan_of(Local(strength=0.1))
    one, there = Store(tmp_path / "one"), Store(tmp_path / "ray")
    carry(plan, one, Options(), Setups())
    with Cluster(there, Options(), share=RunResources(cpus=1)) as cluster:
        result = carry_out(plan, there, cluster)
    assert not result.failed()
    assert results(tmp_path, "ray", plan.wanted) == results(tmp_path, "one", plan.wanted)


PLAN = """
from dataclasses import dataclass
import holdfast as hf

@dataclass
class Decay(hf.Algorithm):
    strength: float = 0.02

    def loss(self, learner, batch, outputs):
        return self.strength * sum((p**2).sum() for p in learner.trainable().values())

def requests():
    settings = {"benchmark.stages": 2, "train.epochs": 1}
    return hf.plan("patterns", [Decay(strength=0.1), "finetune"], scale="tiny", settings=settings)
"""


def test_a_plan_file_may_define_what_it_runs(tmp_path):
    (tmp_path / "plan.py").write_text(PLAN)
    assert inside("plan", "plan.py", "-j", "2", cwd=tmp_path).returncode == 0
    runs = hf.load(tmp_path / "runs")
    assert sorted(run.algorithm for run in runs) == ["Decay", "finetune"]
    (own,) = runs.where(algorithm="Decay")
    assert "plan.py:Decay" in own.command


# The same few lines on every benchmark: nothing beyond the algorithm itself, and public names alone
OWN = """
from dataclasses import dataclass
import holdfast as hf

@dataclass
class Own(hf.Algorithm):
    strength: float = 0.001

    def loss(self, learner, batch, outputs):
        return self.strength * sum((p**2).sum() for p in learner.trainable().values())
"""
RUN = """
runs = hf.run({benchmark!r}, [Own(), hf.algorithms.Finetune()], scale="tiny", jobs=2, {more})
print(len(runs))
"""


@pytest.mark.parametrize(
    ("benchmark", "more"),
    [
        ("clvqa", "needs=False, settings={'train.epochs': 1}"),
        pytest.param("climb", "order='snli-ve', needs=False, settings={'train.epochs': 1}", marks=pytest.mark.slow),
        pytest.param("cfst:cgqa", "stages=1, settings={'train.epochs': 1}", marks=pytest.mark.slow),
        pytest.param("viscoll:coco", "", marks=pytest.mark.slow),
    ],
)
def test_an_algorithm_of_the_users_own_on_every_benchmark(benchmark, more, tmp_path):
    (tmp_path / "own.py").write_text(OWN + RUN.format(benchmark=benchmark, more=more))
    assert here(tmp_path / "own.py").split() == ["2"]
    (record,) = (run.record for run in hf.load(tmp_path / "runs") if run.algorithm == "Own")
    assert all(value is None or value == value for value in record.summary.values())
