"""Worker processes: the same records as one process makes, and a kill costs nothing but time."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest
import torch

from holdfast.experiments.local import Here, Options, Workers
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from processes import environment
from smallest import THREADED, request

pytestmark = pytest.mark.thorough  # starts processes


def results(store, plan):
    """All scores and weights of a plan's runs."""
    folders = [store.folder(name) for name in plan.configs]
    return [(folder.record().scores, folder.weights.read_bytes()) for folder in folders]


def long(algorithm="replay", seed=0):
    return replace(request(algorithm, train__epochs=40), seed=seed)


def test_workers_make_the_records_of_one_process_even_when_one_is_killed(tmp_path):
    plan = graph([long(), long("finetune"), long(seed=1)])
    one, many = Store(tmp_path / "one"), Store(tmp_path / "many")
    carry_out(plan, one, Here(one, Options(), Setups()))
    killed = []

    def kill_one_in_the_middle():
        running = [worker.process.pid for worker, _ in engine.busy.values()]
        if not killed and running and any(many.path.glob("*/checkpoints/*.safetensors")):
            os.kill(running[0], signal.SIGKILL)
            killed.append(running[0])
        return False

    told = []
    with Workers(many, Options(save_steps=5), 2) as engine:
        result = carry_out(
            plan,
            many,
            engine,
            stopping=kill_one_in_the_middle,
            told=lambda node, outcome, again: told.append((outcome.status, outcome.reason, again)),
        )
        processes = [worker.process for worker in engine.idle]
    assert killed
    assert ("died", "its process was ended by SIGKILL", True) in told
    assert sorted(result.tries.values()) == [1, 1, 2]
    assert not result.failed()
    assert results(many, plan) == results(one, plan)
    assert not any(process.is_alive() for process in processes), "no process is left behind"


def test_the_number_of_workers_and_of_the_callers_threads_change_no_bit(tmp_path):
    plan, before = graph([THREADED, replace(THREADED, seed=1)]), torch.get_num_threads()
    here, alone, side_by_side = (Store(tmp_path / name) for name in ("here", "alone", "side by side"))
    torch.set_num_threads(2)
    try:
        carry_out(plan, here, Here(here, Options(), Setups()))
        for store, places in ((alone, 1), (side_by_side, 2)):
            with Workers(store, Options(), places) as engine:
                carry_out(plan, store, engine)
    finally:
        torch.set_num_threads(before)
    assert results(here, plan) == results(alone, plan) == results(side_by_side, plan)


def test_a_run_whose_process_always_dies_fails_after_its_tries_and_the_others_are_done(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "from dataclasses import dataclass\n"
        "from holdfast.algorithms.base import Algorithm\n"
        "@dataclass\n"
        "class Deadly(Algorithm):\n"
        "    def after(self, learner, batch):\n"
        "        os._exit(3)\n"
    )
    plan = graph([replace(request(), algorithm=f"{tmp_path}/mine.py:Deadly"), request("replay")])
    store = Store(tmp_path / "store")
    with Workers(store, Options(), 2) as engine:
        result = carry_out(plan, store, engine, tries=2)
    (failed,) = result.failed()
    assert (failed.status, failed.reason) == ("died", "its process was ended with status 3")
    assert result.tries[failed.id] == 2
    assert store.folder(plan.asked()[1].id).status() == "done"


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_the_driver_killed_or_asked_to_stop_and_started_again_goes_on(tmp_path, number):
    words = [sys.executable, "-m", "holdfast", "run", "patterns", "-a", "replay,finetune", "-j", "2"]
    words += ["--scale", "tiny", "--set", "train.epochs=30", "--save-steps", "9", "--json"]
    store, end = Store(tmp_path / "runs"), time.monotonic() + 200

    def wait_until(condition):
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.02)

    driver = subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=-1, stderr=-1, text=True, start_new_session=True
    )
    wait_until(lambda: any(folder.holder() and any(folder.checkpoints.glob("*")) for folder in store.runs()))
    if number == signal.SIGKILL:
        driver.kill()
    else:  # to all of its processes, as a terminal and `timeout` send it
        os.killpg(driver.pid, number)
    _, errors = driver.communicate()
    if number != signal.SIGKILL:
        assert driver.returncode == 130
        assert errors.strip() == "stopped and saved in runs: run the same command to resume"
    wait_until(lambda: not any(folder.holder() for folder in store.runs()))  # its workers end with it
    assert any(folder.status() == "stopped" for folder in store.runs())
    again = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    settings = {"train.epochs": 30}
    plan = graph([Request("patterns", word, scale="tiny", settings=settings) for word in ("replay", "finetune")])
    whole = Store(tmp_path / "whole")
    carry_out(plan, whole, Here(whole, Options(), Setups()))
    expected = [[asdict(s) for s in whole.folder(name).record().scores] for name in plan.configs]
    assert [record["scores"] for record in json.loads(again.stdout)] == expected
