import os

import pytest
import torch

torch.set_num_threads(1)  # two processes of two threads each on two cores are many times slower than one each


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory):
    """One cache for all tests that only read the world's datasets at `tiny`, in whichever process they run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny-cache"
