import pytest

from holdfast.benchmarks.synthetic import world


@pytest.fixture(autouse=True)
def _own_cache(cache, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(cache))


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One cache for all of these tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def tiny_clevr(_own_cache):
    """The smallest CLEVR of the world, as the benchmark finds it."""
    return world("clevr", "tiny")
