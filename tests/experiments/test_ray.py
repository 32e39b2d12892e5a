"""A real Ray cluster on this machine: the same records as one process makes, and a kill costs nothing but time."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from holdfast.errors import UserError
from holdfast.experiments.local import Here, Options
from holdfast.experiments.plan import graph
from holdfast.experiments.ray import Cluster, RunResources, _ray
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from smallest import request

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]  # Ray's own


def long(algorithm="replay", seed=0):
    return replace(request(algorithm, train__epochs=40), seed=seed)


def results(store, plan):
    folders = [store.folder(name) for name in plan.configs]
    return [(folder.record().scores, folder.weights.read_bytes()) for folder in folders]


def holders(store):
    """The processes that work on runs now."""
    texts = [holder for folder in store.runs() if (holder := folder.holder()) is not None]
    return [int(text.split()[1]) for text in texts if text.startswith("process ")]


class Asks:
    """Called again and again while a plan is carried out: does something once, when a checkpoint is there."""

    def __init__(self, store, act):
        self.store, self.act, self.acted = store, act, False

    def __call__(self):
        ready = any(folder.holder() and any(folder.checkpoints.glob("*")) for folder in self.store.runs())
        if not self.acted and ready and (found := holders(self.store)):
            self.acted = True
            return self.act(found[0])
        return False


def test_ray_makes_the_records_of_one_process_though_it_is_stopped_and_a_worker_is_killed(tmp_path):
    plan = graph([long(), long("finetune"), long(seed=1)])
    one, store = Store(tmp_path / "one"), Store(tmp_path / "ray")
    carry_out(plan, one, Here(one, Options(), Setups()))
    with Cluster(store, Options(save_steps=5), share=RunResources(cpus=1)) as cluster:
        assert cluster.ray.util.get_node_ip_address() == "127.0.0.1", "seen by no other machine"
        stopped = carry_out(plan, store, cluster, stopping=Asks(store, lambda pid: True))
        assert stopped.stopped
        assert not stopped.failed()
        assert any(folder.status() == "stopped" for folder in store.runs()), "saved"
        told = []
        killing = Asks(store, lambda pid: os.kill(pid, signal.SIGKILL))
        result = carry_out(
            plan,
            store,
            cluster,
            stopping=killing,
            told=lambda node, outcome, again: told.append((outcome.status, again)),
        )
    assert killing.acted
    assert ("died", True) in told
    assert max(result.tries.values()) == 2
    assert not result.failed()
    assert results(store, plan) == results(one, plan)


HELD = """
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.algorithms.base import Algorithm


@dataclass
class Held(Algorithm):
    def after(self, learner, batch):
        if Path("hold").exists():
            time.sleep(0.1)
"""
"""Fine-tuning that is slow for as long as a file says so: no machine is too quick to kill its driver."""


@pytest.mark.slow
def test_the_driver_killed_and_started_again_goes_on(tmp_path):
    (tmp_path / "mine.py").write_text(HELD)
    (tmp_path / "hold").touch()
    (tmp_path / "plan.toml").write_text(
        '[[experiment]]\nalgorithms = ["replay+mine.py:Held", "mine.py:Held"]\nscale = "tiny"\n'
        'set = {"train.epochs" = 60}\n'
    )
    words = [sys.executable, "-m", "holdfast", "plan", "plan.toml"]
    ray = [*words, "--engine", "ray", "--save-seconds", "0.2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    driver = subprocess.Popen(ray, cwd=tmp_path, env=environment)
    store, end = Store(tmp_path / "runs"), time.monotonic() + 200
    while not any(store.path.glob("*/checkpoints/*.safetensors")):
        assert time.monotonic() < end
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    while holders(store):  # Ray ends the workers of a driver that is gone
        assert time.monotonic() < end
        time.sleep(0.1)
    (tmp_path / "hold").unlink()
    assert any(folder.status() == "stopped" for folder in store.runs())
    subprocess.run(ray, cwd=tmp_path, env=environment, check=True)
    subprocess.run([*words, "--out", "whole"], cwd=tmp_path, env=environment, check=True)
    assert len(store.runs()) == 2
    for folder in store.runs():
        assert folder.record().scores == Store(tmp_path / "whole").folder(folder.id).record().scores


def test_a_run_that_was_called_back_is_stopped_whatever_ray_makes_of_it(tmp_path, monkeypatch):
    """Where Ctrl-C is ignored, as in a shell's background, Ray raises a TypeError of its own in a task."""
    ray = _ray(alone=True)

    class Failing:
        exceptions = ray.exceptions

        def __init__(self, alone): ...
        def init(self, **named): ...
        def shutdown(self): ...
        def remote(self, **named):
            return lambda task: task

        def wait(self, tasks, **named):
            return tasks, []

        def get(self, task):
            raise {
                "raised": ray.exceptions.RayTaskError("task", "", TypeError()),
                "killed": ray.exceptions.WorkerCrashedError(),
            }[task]

        def cancel(self, task, **named): ...

    monkeypatch.setattr("holdfast.experiments.ray._ray", Failing)
    with Cluster(Store(tmp_path), Options()) as cluster:
        seen = []
        for stops in (False, True):
            cluster.running = {"raised": "a", "killed": "b"}
            if stops:
                cluster.stop()
            seen.append([outcome.status for outcome in cluster.wait(0)])
    assert seen == [["died", "died"], ["stopped", "died"]]


def test_what_no_node_has_is_refused_in_a_sentence(tmp_path, monkeypatch):
    class Small:
        def __init__(self, alone): ...
        def init(self, **named): ...
        def shutdown(self): ...
        def remote(self, **named):
            return lambda task: task

        def cluster_resources(self):
            return {"CPU": 2.0}

    monkeypatch.setattr("holdfast.experiments.ray._ray", Small)
    with (
        Cluster(Store(tmp_path), Options(), share=RunResources(gpus=1)) as cluster,
        pytest.raises(UserError, match="1 GPUs"),
    ):
        carry_out(graph([request()]), Store(tmp_path), cluster)
