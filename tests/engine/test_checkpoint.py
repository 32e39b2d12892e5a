import json
import logging
import math
import resource
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open

from holdfast.engine.checkpoint import Checkpoints, read, write
from holdfast.errors import RunError


def test_a_tree_comes_back_as_it_was(tmp_path):
    tied = torch.randn(3, 2)
    state = {
        "numbers": [1, 2.5, -math.inf, 2**127 + 1, None, True, "text"],
        "tensors": {
            "a": tied,
            "b": tied,
            "view": torch.arange(10)[2:5],
            "scalar": torch.tensor(3.0),
            "none": torch.zeros(0),
        },
        "half": torch.randn(4).to(torch.bfloat16),
        "across": torch.randn(3, 4).t(),
        "array": np.arange(5, dtype=np.int64),
        "empty": {},
    }
    write(tmp_path / "x.safetensors", state)
    found = read(tmp_path / "x.safetensors")
    assert found["numbers"] == state["numbers"]
    for name, value in state["tensors"].items():
        assert torch.equal(found["tensors"][name], value)
        assert found["tensors"][name].dtype == value.dtype
    assert torch.equal(found["half"], state["half"])
    assert torch.equal(found["across"], state["across"])
    assert isinstance(found["array"], np.ndarray)
    assert found["array"].tolist() == [0, 1, 2, 3, 4]
    assert found["empty"] == {}


@pytest.mark.parametrize("digits", [*range(1, 64, 8)])
def test_what_is_read_lies_where_any_new_tensor_does(digits, tmp_path):
    """A matrix product at another address, which changes with the length of the header, may add in another order."""
    state = {"seconds": "1" * digits, "left": torch.rand(3, 8, 33).double(), "odd": torch.ones(3), "rows": np.ones(5)}
    write(tmp_path / "x.safetensors", state)
    found = read(tmp_path / "x.safetensors")
    addresses = [found["left"].data_ptr(), found["odd"].data_ptr(), found["rows"].ctypes.data]
    assert [each % 64 for each in addresses] == [torch.empty(9).data_ptr() % 64] * 3 == [0] * 3


def test_a_file_is_plain_safetensors_with_json_in_its_header_and_tied_weights_once(tmp_path):
    tied = torch.randn(1000)
    write(tmp_path / "x.safetensors", {"a": tied, "b": tied, "n": 3})
    with safe_open(tmp_path / "x.safetensors", framework="np") as file:
        assert list(file.keys()) == ["a"]
        assert json.loads(file.metadata()["state"])["dict"]["n"] == 3
    assert (tmp_path / "x.safetensors").stat().st_size < 1.5 * 4000


def test_an_object_is_refused_rather_than_pickled(tmp_path):
    with pytest.raises(AssertionError, match="'thing' cannot be saved"):
        write(tmp_path / "x.safetensors", {"thing": object()})


def test_the_last_two_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2, 30):
        checkpoints.save(step, {"step": step})
    assert [int(p.stem) for p in sorted(tmp_path.iterdir())] == [2, 30]
    assert Checkpoints(tmp_path).load() == {"step": 30}


@pytest.mark.parametrize("left", [0, 7, 100, -1])
def test_one_that_is_cut_short_is_passed_over_for_the_one_before(tmp_path, caplog, left):
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2):
        checkpoints.save(step, {"step": step, "weights": torch.randn(100)})
    newest = max(tmp_path.iterdir())
    newest.write_bytes(newest.read_bytes()[:left])
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert Checkpoints(tmp_path).load()["step"] == 1
    (line,) = caplog.messages
    assert str(newest) in line
    assert "resuming from 0000000001.safetensors" in line


def test_where_none_can_be_read_a_sentence_says_what_to_delete(tmp_path):
    Checkpoints(tmp_path).save(1, {"step": 1})
    (only,) = tmp_path.iterdir()
    only.write_bytes(b"x")
    with pytest.raises(RunError, match=f"no checkpoint is intact.*delete {tmp_path}"):
        Checkpoints(tmp_path).load()


def test_what_a_killed_writer_left_is_removed_and_not_read(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"step": 1})
    (tmp_path / ".0000000002.safetensors.writing").write_bytes(b"half of it")
    (tmp_path / ".tmpKeEyqf").write_bytes(b"as safetensors itself names it")
    assert Checkpoints(tmp_path).load() == {"step": 1}
    assert len(list(tmp_path.iterdir())) == 1


FULL = """
import resource, sys, torch
from pathlib import Path
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import RunError
checkpoints = Checkpoints(Path(sys.argv[1]))
checkpoints.save(1, {"step": 1, "weights": torch.zeros(10)})
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))  # from here on, the system refuses larger files
try:
    checkpoints.save(2, {"step": 2, "weights": torch.zeros(10000)})
except RunError as error:
    print(error)
"""


def test_a_disk_that_takes_no_more_gives_one_sentence_and_the_previous_one_still_loads(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert "could not write the checkpoint of step 2" in done.stdout
    assert "the checkpoint of step 1 is kept" in done.stdout
    assert "run the same command again" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["0000000001.safetensors"]
    assert Checkpoints(tmp_path).load()["step"] == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000


def test_due_by_steps_and_by_seconds(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    checkpoints = Checkpoints(tmp_path, every_steps=10, every_seconds=60)
    assert not checkpoints.due(9)
    assert checkpoints.due(10)
    checkpoints.save(10, {})
    assert not checkpoints.due(19)
    now = 61.0
    assert checkpoints.due(11)
