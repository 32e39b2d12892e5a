"""Power cuts, errors of the disk and changed inputs: short versions of `faults.py` and `inputs.py`."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from damage import faults, inputs, power
from damage.shim import Operation, compiler
from processes import environment

needs_a_compiler = pytest.mark.skipif(not compiler(), reason="the shim needs Linux and a C compiler")


def rows(program, *words):
    """What a program of this folder prints."""
    command = [sys.executable, Path(__file__).with_name(program), *words]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_faults(*words):
    for row in rows("faults.py", *words):
        assert row["ended"].keys() <= {faults.SAME, faults.REFUSED, "told"}, row
        assert faults.REFUSED not in row["ended"], f"each run of this program goes on: {row}"


def check_inputs(*words):
    for row in rows("inputs.py", *words):
        assert row["read elsewhere"] == []
        for kind, ended in row["ended"].items():
            assert ended.keys() <= {inputs.ANEW, inputs.REFUSED, inputs.SAME}, (row["case"], kind, ended)


@needs_a_compiler
@pytest.mark.thorough
def test_a_run_goes_on_after_power_cuts():
    check_faults("--run", "patterns", "--only", "power", "--points", "3")


@needs_a_compiler
@pytest.mark.slow
@pytest.mark.parametrize("run", faults.COMMANDS)
def test_a_run_goes_on_after_power_cuts_and_errors_anywhere(run):
    check_faults("--run", run, "--points", "60")


@needs_a_compiler
@pytest.mark.slow
@pytest.mark.parametrize("case", inputs.CASES)
def test_no_file_that_is_read_changes_scores_without_the_id(case):
    check_inputs("--case", case, "--files", "5", "--times", "4")


# The model of a disk


def disk(*operations):
    return power.replayed([Operation(*each) for each in operations], Path("/d"))


def test_what_was_synced_is_certain_and_nothing_else():
    found = disk(
        ("create", "/d/a"),
        ("write", "/d/a", "", 0, b"one"),
        ("sync", "/d/a"),
        ("sync", "/d"),
        ("write", "/d/a", "", 3, b" two"),
        ("create", "/d/b"),
    )
    assert found.as_it_is() == {"/d": None, "/d/a": b"one two", "/d/b": b""}
    assert found.after_a_cut(None) == {"/d": None, "/d/a": b"one"}
    random = np.random.default_rng(0)
    after = [found.after_a_cut(random) for _ in range(99)]
    assert {each["/d/a"] for each in after} >= {b"one", b"one two", b"one \0\0\0", b"on"}
    assert {"/d/b" in each for each in after} == {True, False}


def test_a_name_is_synced_with_its_folder_and_bytes_with_their_file():
    written = (("create", "/d/.a"), ("write", "/d/.a", "", 0, b"new"))
    renamed = ("rename", "/d/.a", "/d/a")
    assert disk(*written, renamed, ("sync", "/d")).after_a_cut(None)["/d/a"] == b"", "a name without its bytes"
    assert disk(*written, ("sync", "/d/.a"), renamed).after_a_cut(None) == {"/d": None}
    assert disk(*written, ("sync", "/d/.a"), renamed, ("sync", "/d")).after_a_cut(None)["/d/a"] == b"new"


def test_what_lies_in_a_folder_that_is_lost_is_lost():
    inner = (("folder", "/d/f"), ("create", "/d/f/a"), ("sync", "/d/f/a"), ("sync", "/d/f"))
    assert disk(*inner).after_a_cut(None) == {"/d": None}
    assert disk(*inner, ("sync", "/d")).after_a_cut(None) == {"/d": None, "/d/f": None, "/d/f/a": b""}
    moved = ("rename", "/d/f", "/d/g")
    assert disk(*inner, ("sync", "/d"), moved, ("sync", "/d")).after_a_cut(None).keys() == {"/d", "/d/g", "/d/g/a"}
