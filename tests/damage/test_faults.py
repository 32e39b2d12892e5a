"""Power cuts, errors of the disk and changed inputs: short versions of `faults.py` and `inputs.py`."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from damage import faults, inputs, power
from damage.shim import Operation, compiler, read_log
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


def test_what_was_written_past_the_shim_is_known_once_it_is_closed_and_certain_once_all_is_synced():
    made = (("create", "/d/a"), ("write", "/d/a", "", 0, b"head"), ("content", "/d/a", "", 0, b"head and body"))
    assert disk(*made).as_it_is() == {"/d": None, "/d/a": b"head and body"}
    assert disk(*made).after_a_cut(None) == {"/d": None}
    assert disk(*made, ("sync all", "/d")).after_a_cut(None) == {"/d": None, "/d/a": b"head and body"}


@needs_a_compiler
def test_mapped_memory_and_buffers_of_the_c_library_are_traced(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(TRACED)
    (tmp_path / "there").mkdir()
    command = [sys.executable, program, tmp_path / "there"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "True\n"


def test_the_number_of_a_file_that_is_gone_may_become_that_of_another(tmp_path):
    lines = ("create /d/a 7 0", "create /d/b 8 0", "rename /d/b /d/a 0", "folder /d/c - 0", "sync /d/c 7 0")
    lines += ("remove /d/a - 0", "folder /d/e - 0", "sync /d/e 8 0")
    text = "".join("\t".join([*line.replace("-", "").split(" "), "0"]) + "\n" for line in lines)
    (tmp_path / "log").write_text(text)
    assert [each.what for each in read_log(tmp_path / "log")] == [line.split()[0] for line in lines]


TRACED = """
import sys
from pathlib import Path
from damage.shim import child, read_log, start_again
start_again()
import numpy as np
from damage import power

folder = Path(sys.argv[1])

def work():
    np.save(folder / "saved.npy", np.arange(1000))
    mapped = np.lib.format.open_memmap(folder / "mapped.npy", "w+", np.int64, (1000,))
    mapped[:] = 7
    del mapped

child(work, folder, folder.with_name("log"))
disk = power.replayed((each for each in read_log(folder.with_name("log")) if each.what != "read"), folder)
print(disk.as_it_is() == {str(folder): None, **{str(path): path.read_bytes() for path in folder.iterdir()}})
"""


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
