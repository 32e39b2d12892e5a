"""Sums and means over ranks, with another rank that is played by the test."""

import pytest
import torch
from torch import nn

from holdfast.engine import ranks as module
from holdfast.engine.ranks import Averaging, Ranks


class Arrives:
    """A message whose answer is there."""

    def wait(self):
        pass


def one_of_two(monkeypatch, theirs):
    """A rank of two; what the other one sends, message by message."""
    ranks, messages = Ranks(), iter(theirs)
    ranks.size = 2

    def all_reduce(flat, async_op):
        flat += next(messages)
        return Arrives()

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
    averaging = Averaging(ranks, [used, unused])
    averaging.begin()
    used.grad = torch.tensor([3.0, 5.0])
    averaging.end()
    assert used.grad.tolist() == [2.0, 4.0]
    assert unused.grad is None


def test_one_rank_sends_nothing(monkeypatch):
    monkeypatch.setattr(module.dist, "all_reduce", lambda flat, async_op: pytest.fail("there is nobody to send to"))
    value = torch.ones(2)
    Ranks().sum([value])
    assert value.tolist() == [1.0, 1.0]
    weight = nn.Parameter(torch.ones(2))
    averaging = Averaging(Ranks(), [weight])
    averaging.begin()
    weight.sum().backward()
    averaging.end()
    assert weight.grad.tolist() == [1.0, 1.0]


class Twin:
    """Another rank whose gradients are three times ours: the mean is twice ours. Notes what is sent, and when."""

    def __init__(self, monkeypatch):
        self.sizes, self.received, self.during = [], 0, 0
        self.ranks = Ranks()
        self.ranks.size = 2
        monkeypatch.setattr(module, "BUCKET", 8)  # two numbers of float32
        monkeypatch.setattr(module.dist, "all_reduce", self.send)

    def send(self, flat, async_op):
        assert async_op, "nobody waits"
        self.sizes.append(len(flat))
        flat += 3 * flat
        return self

    def wait(self):
        self.received += 1

    def backward(self, averaging, *losses):
        """A backward pass for each loss, of which the last is averaged; what was sent before its end."""
        self.sizes, self.received = [], 0
        for loss in losses:
            if loss is losses[-1]:
                averaging.begin()
            loss.backward()
        assert self.received == 0
        early = len(self.sizes)
        averaging.end()
        assert self.received == len(self.sizes)
        return early


def test_buckets_are_sent_while_the_pass_goes_on_and_the_last_parameters_first(monkeypatch):
    twin = Twin(monkeypatch)
    first, second, third = (nn.Parameter(torch.ones(size)) for size in (1, 2, 3))
    averaging = Averaging(twin.ranks, [first, second, third])

    def check(*losses, early, sizes):
        for parameter in (first, second, third):
            parameter.grad = None
        assert (twin.backward(averaging, *losses), twin.sizes) == (early, sizes)

    def chain(a=1.0, b=1.0, c=1.0):
        """Each parameter's gradient is its factor; the last one's is made first."""
        return (c * third).sum() + (b * second).sum() + (a * first).sum()

    check(chain(), early=0, sizes=[3, 2, 1])  # nothing is known of the pass yet
    assert (first.grad[0], second.grad[0], third.grad[0]) == (2, 2, 2)
    check(chain(a=5.0), early=3, sizes=[3, 2, 1])
    assert (first.grad[0], second.grad[0], third.grad[0]) == (10, 2, 2)
    check((7 * first).sum() + second.sum(), early=0, sizes=[2, 1])  # the first bucket is missing: all wait for it
    assert (first.grad[0], second.grad[0], third.grad) == (14, 2, None)
    check(chain(), early=2, sizes=[2, 1, 3])  # what the last pass did not use is sent at the end
    assert (first.grad[0], second.grad[0], third.grad[0]) == (2, 2, 2)
    check(chain(), chain(a=0.5), early=3, sizes=[3, 2, 1])  # two pieces, and one message for both
    assert (first.grad[0], second.grad[0], third.grad[0]) == (3, 4, 4)
    averaging.close()
    check(chain(), early=0, sizes=[3, 2, 1])


def test_gradients_that_fill_one_bucket_need_no_hooks(monkeypatch):
    twin = Twin(monkeypatch)
    weight = nn.Parameter(torch.ones(2))
    averaging = Averaging(twin.ranks, [weight])
    for _ in range(2):
        weight.grad = None
        assert twin.backward(averaging, weight.sum()) == 0
        assert (twin.sizes, weight.grad.tolist()) == ([2], [2.0, 2.0])
