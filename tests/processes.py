"""Processes that tests start: they import the tree that is being tested, whatever is installed."""

import os
from pathlib import Path


def environment(**more: str) -> dict[str, str]:
    """A bare environment: this tree and the tests' own modules, and one thread."""
    paths = [os.environ["PYTHONPATH"], str(Path(__file__).parent)]  # the first is set by conftest.py
    return {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", **more}
