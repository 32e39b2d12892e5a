"""`holdfast watch` from the command line."""

import json
import time

import pytest

from holdfast.experiments.store import Store
from reports.commands import holdfast
from reports.stores import put, record

TOLD = {"stage": "yn", "index": 1, "stages": 2, "step": 30, "steps": 60, "loss": 0.125, "evaluating": "",
        "examples_per_second": 512.0, "done_at_begin": 0.25}  # fmt: skip


def test_what_runs_is_told_with_stage_step_loss_speed_and_time_left(tmp_path):
    put(tmp_path, record(run="aaaaaaaaaaaa"))
    going = put(tmp_path, record(run="bbbbbbbbbbbb", algorithm="ewc", seed=4))
    (going / "record.json").unlink()
    quiet = put(tmp_path, record(run="cccccccccccc"))
    (quiet / "record.json").unlink()
    (quiet / "progress.json").write_text("{")
    now = time.time()
    (going / "progress.json").write_text(json.dumps({**TOLD, "began": now - 100, "updated": now}))
    store = Store(tmp_path)
    with store.folder("bbbbbbbbbbbb").lock(), store.folder("cccccccccccc").lock():
        text = holdfast("watch", tmp_path).stdout
        told = json.loads(holdfast("watch", tmp_path, "--json").stdout)
    line = next(line for line in text.splitlines() if "bbbbbbbbbbbb" in line)
    for word in ("patterns · ewc · seed 4", "yn (2 of 2)", "30 of 60", "0.125", "512", "~0:50", "training"):
        assert word in line
    assert "1 done, 2 running" in text
    assert told["running"][0]["seconds_left"] == pytest.approx(
        50, abs=5
    )  # half of the run took 100 s, a quarter is left
    assert told["running"][1]["doing"] == "beginning"
    assert "Nothing is running." in holdfast("watch", tmp_path).stdout


def test_a_run_that_has_told_nothing_for_long_is_silent(tmp_path):
    going = put(tmp_path, record(run="bbbbbbbbbbbb"))
    (going / "record.json").unlink()
    then = time.time() - 60
    (going / "progress.json").write_text(json.dumps({**TOLD, "began": then - 5, "updated": then, "evaluating": "wh"}))
    with Store(tmp_path).folder("bbbbbbbbbbbb").lock():
        assert "evaluating wh, silent for 6" in holdfast("watch", tmp_path, "--once").stdout
