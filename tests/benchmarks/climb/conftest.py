import os

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One cache for all of these tests, in whichever process they run: four worlds are written once."""
    base = tmp_path_factory.getbasetemp()
    return base.parent / "climb-cache" if "PYTEST_XDIST_WORKER" in os.environ else base / "climb-cache"


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # for so few pictures, a process takes longer to start than to draw
