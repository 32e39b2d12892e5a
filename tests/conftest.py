import pytest
import torch

torch.set_num_threads(1)  # two processes of two threads each on two cores are many times slower than one each


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)
