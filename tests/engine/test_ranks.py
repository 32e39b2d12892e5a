"""Sums and means over ranks, with another rank that is played by the test."""

import pytest
import torch
from torch import nn

from holdfast.engine import ranks as module
from holdfast.engine.ranks import Ranks


def one_of_two(monkeypatch, theirs):
    """A rank of two; what the other one sends, message by message."""
    ranks, messages = Ranks(), iter(theirs)
    ranks.size = 2

    def all_reduce(flat):
        flat += next(messages)

    monkeypatch.setattr(module.dist, "all_reduce", all_reduce)
    return ranks, messages


def test_tensors_become_their_sums_in_one_message_a_type(monkeypatch):
    other = [torch.tensor([10.0, 20.0, 30.0, 40.0, 7.0], dtype=torch.float64), torch.tensor([0.5])]
    ranks, left = one_of_two(monkeypatch, other)
    matrix, small = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64).T, torch.tensor([0.25])
    count = torch.tensor(3.0, dtype=torch.float64)
    ranks.sum([matrix, small, count])
    assert matrix.tolist() == [[11.0, 23.0], [32.0, 44.0]]
    assert small.tolist() == [0.75]
    assert count.item() == 10
    assert next(left, None) is None


def test_gradients_become_their_means_and_none_stays_none(monkeypatch):
    ranks, _ = one_of_two(monkeypatch, [torch.tensor([1.0, 3.0])])
    used, unused = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    used.grad = torch.tensor([3.0, 5.0])
    ranks.average_gradients([used, unused])
    assert used.grad.tolist() == [2.0, 4.0]
    assert unused.grad is None


def test_one_rank_sends_nothing(monkeypatch):
    monkeypatch.setattr(module.dist, "all_reduce", lambda flat: pytest.fail("there is nobody to send to"))
    value = torch.ones(2)
    Ranks().sum([value])
    assert value.tolist() == [1.0, 1.0]
