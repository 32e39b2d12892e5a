"""`holdfast.run`: the same runs as the command, and errors that a program can catch."""

import signal

import pytest

import holdfast
from holdfast.experiments.local import Here, Options
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import Outcome, carry_out, finish
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store

SMALL = {"benchmark.stages": 2, "train.epochs": 2}
MINE = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
from holdfast import Algorithm

@dataclass
class Broken(Algorithm):
    def loss(self, learner, batch, outputs):
        raise ZeroDivisionError("by hand")

@dataclass
class Pressed(Algorithm):
    flag: str = ""
    steps: int = 0

    def after(self, learner, batch):
        self.steps += 1
        if self.steps == 4 and Path(self.flag).exists():
            Path(self.flag).unlink()
            os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def small(algorithm, tmp_path, **more):
    settings = SMALL | more.pop("settings", {})
    return holdfast.run("patterns", algorithm, scale="tiny", settings=settings, **{"out": tmp_path / "runs"} | more)


def test_the_record_is_that_of_the_command_and_nothing_is_printed(tmp_path, capfd):
    record = small("replay", tmp_path)
    assert capfd.readouterr() == ("", "")
    plan = graph([Request("patterns", "replay", scale="tiny", settings=SMALL)])
    store = Store(tmp_path / "other")
    carry_out(plan, store, Here(store, Options(), Setups()))
    same = finish(plan, plan.wanted[0], store)
    assert (record.id, record.scores, record.summary) == (same.id, same.scores, same.summary)
    assert small("replay", tmp_path).to_json() == record.to_json(), "a run that is done is not run again"


def test_what_an_algorithm_raises_is_a_run_error_with_its_cause(tmp_path, mine):
    with pytest.raises(holdfast.RunError, match=r"^ZeroDivisionError: by hand \(traceback in ") as error:
        small(f"{mine}:Broken", tmp_path)
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert error.value.__cause__.__traceback__ is not None


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"device": None}, "unknown device None"),
        ({"start": "0123456789ab@1"}, "0123456789ab"),
        ({"settings": {"replay.capacity": 0}}, "replay.capacity is 0"),
        ({"out": None}, "the store is None: give the path of a folder"),
        ({"sede": 1}, "run() takes no 'sede': did you mean seed"),
    ],
)
def test_mistakes_are_user_errors(tmp_path, asked, sentence):
    with pytest.raises(holdfast.UserError) as error:
        small("replay", tmp_path, **asked)
    assert sentence in str(error.value)


def test_a_store_that_cannot_be_made_is_a_user_error(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(holdfast.UserError, match="cannot be created"):
        small("finetune", tmp_path)


def test_ctrl_c_saves_and_the_same_call_goes_on_to_the_same_bits(tmp_path, mine):
    flag = tmp_path / "flag"
    asked = {"settings": {"Pressed.flag": str(flag)}}
    whole = small(f"{mine}:Pressed", tmp_path / "whole", **asked)
    handler = signal.getsignal(signal.SIGINT)
    flag.touch()
    with pytest.raises(KeyboardInterrupt, match="repeat the same call to resume"):
        small(f"{mine}:Pressed", tmp_path, **asked)
    assert signal.getsignal(signal.SIGINT) is handler
    folder = tmp_path / "runs" / whole.id
    assert any((folder / "checkpoints").iterdir())
    again = small(f"{mine}:Pressed", tmp_path, **asked)
    assert again.scores == whole.scores
    assert again.cost["steps"] == whole.cost["steps"]


def test_an_error_stays_in_its_process():
    import pickle

    outcome = Outcome("0", "failed", "why", error=ValueError(lambda: None))  # no pickle takes it
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert pickle.loads(pickle.dumps(outcome)).error is None
