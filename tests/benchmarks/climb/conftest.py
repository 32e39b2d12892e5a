import pytest


@pytest.fixture(scope="session")
def cache(tiny_cache):
    """One cache for all of these tests, in whichever process they run: four worlds are written once."""
    return tiny_cache


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # for so few pictures, a process takes longer to start than to draw
