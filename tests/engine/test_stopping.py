"""A request to stop is heard at once where nothing is lost, and waits where a run can save."""

import os
import signal
import subprocess
import sys
import time
from random import Random

import pytest

from holdfast.engine.stopping import can_save, interruptible, saves
from holdfast.experiments.local import Options, attempt
from holdfast.experiments.runner import Asked
from holdfast.experiments.store import Store
from smallest import prepared

SECONDS = 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_at_once_or_when_it_can_save(number):
    with interruptible() as interrupt:
        with saves():
            os.kill(os.getpid(), number)
            assert interrupt.asked
            assert can_save()
        assert not can_save()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_a_second_ctrl_c_does_not_wait():
    with interruptible(), saves():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_run_that_is_stopped_while_its_data_is_set_up_is_stopped_and_not_failed(tmp_path):
    class Interrupted:
        def of(self, config):
            os.kill(os.getpid(), signal.SIGTERM)

    with interruptible() as interrupt:
        outcome = attempt(prepared().config, Store(tmp_path), Options(), Interrupted(), Asked(interrupt))
    assert outcome.status == "stopped"


DEEP = {"depth": 2000, "width": 16, "heads": 2, "head_width": 8, "hidden": 16, "patch": 6}
"""A model that takes long to build, and a moment to save."""
DEEP_SETTINGS = [word for name, value in DEEP.items() for word in ("--set", f"model.{name}={value}")]
COMMANDS = {
    "preparing": ["run", "clvqa", "--scale", "tiny", "-j", "1"],
    "preparing in workers": ["run", "clvqa", "--scale", "tiny", "-j", "2", "--seeds", "2"],
    "building": ["run", "patterns", "--model", "vit", *DEEP_SETTINGS, "-j", "1"],
    "pre-training": ["pretrain", "vilt-tiny", "--out", "encoder", "--scenes", "600", "--device", "cpu"],
}


def _hear_ctrl_c():
    """What a shell starts in the background ignores Ctrl-C, and so would whatever it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_at_25_random_moments_it_ends_within_five_seconds(name, tmp_path):
    """In the first 20 seconds of a command whose cache is empty."""
    moments, late = Random(name), []
    for number in range(25):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = os.environ | {"HOLDFAST_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *COMMANDS[name]],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_hear_ctrl_c,
        )
        time.sleep(moments.uniform(0, 20))
        sent = signal.SIGINT if number % 2 else signal.SIGTERM
        process.send_signal(sent)
        began = time.monotonic()
        try:
            printed, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            late.append((number, sent, "still there after a minute"))
            continue
        taken = time.monotonic() - began
        if taken > SECONDS or process.returncode not in (0, 130, -sent) or b"Traceback" in printed:
            late.append((number, sent, taken, process.returncode, printed[-2000:].decode()))
    assert late == []
