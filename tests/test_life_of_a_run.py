"""The way from a command to its table, as docs/design.md draws it, and how often data is set up on it."""

import importlib
import re
from functools import wraps
from pathlib import Path

from cli.inside import inside
from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.cli import app
from holdfast.experiments import local

PAGE = Path(__file__).parents[1] / "docs" / "design.md"
QUICK = ["--set", "benchmark.train=16", "--set", "benchmark.scored=16", "--set", "train.epochs=1"]


def hops():
    """The functions that the page names, in its order."""
    guide = PAGE.read_text(encoding="utf-8").partition("## The life of a run")[2].partition("\n## ")[0]
    return re.findall(r"^\d\. .*?`([\w/]+\.py):([\w.]+)`", guide, re.M)


def watched(monkeypatch, calls, path, name):
    """Note each call of a function where the modules that use it find it."""
    module = importlib.import_module(f"holdfast.{path.removesuffix('.py').replace('/', '.')}")
    owner, _, attribute = name.rpartition(".")
    holder = getattr(module, owner) if owner else module
    real = getattr(holder, attribute)

    @wraps(real)
    def call(*given, **named):
        calls.append(f"{path}:{name}")
        return real(*given, **named)

    monkeypatch.setattr(holder, attribute, call)
    for command in app.registered_commands:
        if command.callback is real:
            monkeypatch.setattr(command, "callback", call)
    if not owner:
        for other in list(importlib.sys.modules.values()):
            if getattr(other, "__name__", "").startswith("holdfast") and getattr(other, attribute, None) is real:
                monkeypatch.setattr(other, attribute, call)


def test_a_command_reaches_its_table_in_the_hops_that_the_guide_names(tmp_path, monkeypatch):
    named, calls, setups = hops(), [], []
    assert 0 < len(named) <= 8
    for path, name in named:
        watched(monkeypatch, calls, path, name)
    real = Climb.setup
    monkeypatch.setattr(Climb, "setup", lambda self, wants: setups.append(1) or real(self, wants))
    done = inside("run", "climb", "-a", "er", "--scale", "tiny", "-j", "1", *QUICK, "--out", "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(dict.fromkeys(calls)) == [f"{path}:{name}" for path, name in named]
    assert len(list((tmp_path / "runs").iterdir())) == 5, "the run, and the direct run of each task"
    assert len(setups) == 1, "for all five"


def test_a_worker_sets_shared_data_up_once(tmp_path, monkeypatch):
    """In a worker's place: configurations that come packed, one after another."""
    from holdfast.experiments.plan import graph
    from holdfast.experiments.request import Request
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store

    settings = {"benchmark.train": 16, "benchmark.scored": 16, "train.epochs": 1}
    plan = graph([Request("climb", "er", scale="tiny", settings=settings)])
    packed = [(run, config.packed()) for run, config in plan.configs.items()]
    setups, real, worker = [], Climb.setup, Setups()
    monkeypatch.setattr(Climb, "setup", lambda self, wants: setups.append(1) or real(self, wants))
    for run, config in packed:
        outcome = local.attempt_packed(run, config, Store(tmp_path), local.Options(), worker)
        assert outcome.status == "done", outcome.reason
    assert len(setups) == 1
