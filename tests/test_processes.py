"""What is tested is the tree that the tests lie in, in this process and in those that tests start."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from processes import environment

TESTS = Path(__file__).parent
WHERE = "import importlib.util; print(importlib.util.find_spec('holdfast').origin)"


def test_this_process_imports_this_tree():
    assert Path(holdfast.__file__).is_relative_to(TESTS.parent / "src")


@pytest.mark.parametrize("given", [None, environment()], ids=["inherited", "bare"])
def test_a_process_imports_it_though_nothing_is_installed(given, tmp_path):
    words = [sys.executable, "-S", "-c", WHERE]  # -S: without what is installed
    done = subprocess.run(words, env=given, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == holdfast.__file__
    assert os.environ["PYTHONPATH"].startswith(str(Path(holdfast.__file__).parents[1]))


def test_no_test_starts_a_process_with_an_environment_of_its_own_making():
    own = re.compile(r'"PATH":')  # what every such environment needs
    found = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if own.search(path.read_text())]
    assert sorted(found) == ["processes.py", "test_install.py", "test_processes.py"]  # the second: nothing of the tree
