"""Batch normalisation over a batch that several ranks share: a row is normalised alike, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Shared:
    """A batch of which this rank has some rows: how a sum over all of it is taken, and what each row here weighs."""

    total: Callable[[Tensor], Tensor]
    weights: Tensor | None


@contextmanager
def shared_batch(total: Callable[[Tensor], Tensor], weights: Tensor | None = None) -> Iterator[None]:
    """What is normalised within is part of a batch whose sums `total` gives; a padding row weighs 0."""
    before, BatchNorm.shared = BatchNorm.shared, Shared(total, weights)
    try:
        yield
    finally:
        BatchNorm.shared = before


class BatchNorm(nn.BatchNorm2d):
    """PyTorch's own where a batch is on one rank; within `shared_batch`, by the mean and variance of all its rows.

    >>> layer, rows = BatchNorm(1), torch.tensor([0.0, 2.0, 9.0]).view(3, 1, 1, 1)
    >>> with shared_batch(lambda own: own, weights=torch.tensor([1.0, 1.0, 0.0])):
    ...     layer(rows).flatten().round().tolist()[:2]
    [-1.0, 1.0]
    """

    shared: ClassVar[Shared | None] = None
    """The batch that all layers have rows of. Of the class, not of a layer: a compiler can read it, and so can layers
    that an algorithm adds."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape; in training, the running statistics move."""
        shared = BatchNorm.shared
        if shared is None or not self.training:
            return super().forward(x)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        found = x.to(self.weight.dtype)  # sums of many numbers, whatever autocast wants
        weights = found.new_ones(len(x)) if shared.weights is None else shared.weights.to(found)
        weights = weights.view(-1, 1, 1, 1)
        count = weights.sum().view(1) * (x.shape[-2] * x.shape[-1])
        sums = shared.total(torch.cat([(weights * found).sum((0, 2, 3)), count]))
        mean, count = sums[:-1] / sums[-1], sums[-1]
        centred = found - mean[:, None, None]
        variance = shared.total((weights * centred.square()).sum((0, 2, 3))) / count
        with torch.no_grad():
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean.detach(), self.momentum)
            self.running_var.lerp_(variance.detach() * count / (count - 1).clamp(min=1), self.momentum)
        scale = self.weight * (variance + self.eps).rsqrt()
        return (centred * scale[:, None, None] + self.bias[:, None, None]).to(x.dtype)
