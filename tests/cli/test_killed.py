"""Real processes, really killed: the run that goes on ends as the one that was never interrupted."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

RUN = ["run", "patterns", "--algorithm", "replay", "--scale", "tiny", "--save-steps", "3"]
RUN += ["--set", "benchmark.stages=3", "--set", "train.batch_size=8", "--set", "train.epochs=4"]
RUN += ["--set", "train.patience=2", "--budget", "flops=4e8"]  # a sixth of the steps is left out
STEPS = 10
"""In an epoch: 80 examples a stage."""


class Zygote:
    """Starts commands in processes of their own, at once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pid = folder, 0
        self.logs: dict[int, Path] = {}
        script = Path(__file__).with_name("zygote.py")
        self.process = subprocess.Popen([sys.executable, script], stdin=-1, stdout=-1, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def start(self, argv: list[str]) -> int:
        log = self.folder / f"output-{len(self.logs)}.txt"
        log.touch()
        self.pid = self._ask({"argv": argv, "log": str(log)})
        self.logs[self.pid] = log
        return self.pid

    def wait(self, pid: int = 0) -> int:
        """The exit status of a process, by default the latest; that of a killed one is minus the signal."""
        return self._ask({"wait": pid or self.pid})

    def output(self, pid: int = 0) -> str:
        return self.logs[pid or self.pid].read_text(encoding="utf-8")

    def _ask(self, order: dict) -> int:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.process.stdin.close()
    zygote.process.wait(10)
    zygote.process.stdout.close()


def results(store: Path) -> dict[str, bytes | list]:
    """The weights and scores of the only run of a store, to the last bit."""
    (run,) = [path for path in store.iterdir() if path.is_dir()]
    record = json.loads((run / "record.json").read_text(encoding="utf-8"))
    return {
        "weights": (run / "model.safetensors").read_bytes(),
        "log": (run / "scores.jsonl").read_bytes(),
        "scores": record["scores"],
        "summary": record["summary"],
        "cost": {name: value for name, value in record["cost"].items() if name != "seconds"},
        "spent": record["spent"],
    }


def wait_for(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(zygote, tmp_path_factory):
    """An uninterrupted run, and how long it trained."""
    store = tmp_path_factory.mktemp("whole")
    zygote.start([*RUN, "--out", str(store)])
    assert zygote.wait() == 0, zygote.output()
    (record,) = store.glob("*/record.json")
    assert results(store)["cost"]["skipped"] > 0
    return results(store), json.loads(record.read_text(encoding="utf-8"))["cost"]["seconds"]


def test_killed_at_ten_random_points_it_ends_with_the_same_weights_and_scores(zygote, whole, tmp_path):
    expected, seconds = whole
    chance, killed = random.Random(0), 0
    for attempt in range(40):
        store = tmp_path / str(attempt)
        argv = [*RUN, "--out", str(store)]
        for again in range(1 + attempt % 2):  # every other run is killed a second time
            pid = zygote.start(argv)
            if not again:
                wait_for(lambda store=store: any(store.glob("*/checkpoints/*.safetensors")))
            time.sleep(chance.uniform(0, seconds))
            with suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(pid, signal.SIGKILL)
            zygote.wait()
            killed += not any(store.glob("*/record.json"))
        zygote.start(argv)
        assert zygote.wait() == 0, zygote.output()
        assert results(store) == expected
        if killed >= 10:
            return
    raise AssertionError(f"only {killed} runs were killed before their end")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves_says_so_and_goes_on_later(zygote, whole, tmp_path, number):
    argv = [word for word in RUN if word not in ("--save-steps", "3")] + ["--out", str(tmp_path)]
    pid = zygote.start(argv)
    wait_for(lambda: any(tmp_path.glob("*/checkpoints/*.safetensors")))  # the one after the first evaluation
    os.kill(pid, number)
    assert zygote.wait() == 130
    assert "stopped and saved" in zygote.output()
    assert "run the same command to resume" in zygote.output()
    assert "Traceback" not in zygote.output()
    assert any(tmp_path.glob("*/checkpoints/*.safetensors"))
    zygote.start(argv)
    assert zygote.wait() == 0, zygote.output()
    assert results(tmp_path) == whole[0]


def test_of_two_processes_that_start_the_same_run_one_works_and_the_other_waits(zygote, tmp_path):
    store = tmp_path / "store"
    argv = [*RUN, "--set", "train.epochs=20", "--set", "train.patience=none", "--out", str(store)]
    first = zygote.start(argv)
    wait_for(lambda: any(store.glob("*/checkpoints/*.safetensors")))
    second = zygote.start(argv)
    assert (zygote.wait(first), zygote.wait(second)) == (0, 0), zygote.output(first) + zygote.output(second)
    assert f"is being worked on by process {first}" in zygote.output(second)
    assert "is being worked on" not in zygote.output(first)
    assert results(store)["cost"]["steps"] == 3 * 20 * STEPS, "trained once"
