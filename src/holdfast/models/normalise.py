"""Batch normalisation over a batch that several ranks share: the same result for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class SharedBatch:
    """A batch of which this rank has some rows: how to sum over all of it, and the weight of each row here."""

    total: Callable[[Tensor], Tensor]
    weights: Tensor | None


@contextmanager
def shared_batch(
    layers: Iterable[BatchNorm], total: Callable[[Tensor], Tensor], weights: Tensor | None = None
) -> Iterator[None]:
    """Let layers normalise over a batch whose sums `total` gives; a padding row weighs 0."""
    layers, batch = tuple(layers), SharedBatch(total, weights)
    for layer in layers:
        layer.shared = batch
    try:
        yield
    finally:
        for layer in layers:
            layer.shared = None


class BatchNorm(nn.BatchNorm2d):
    """PyTorch's own layer; within `shared_batch`, it takes the mean and variance over the rows of all ranks.

    >>> layer, rows = BatchNorm(1), torch.tensor([0.0, 2.0, 9.0]).view(3, 1, 1, 1)
    >>> with shared_batch([layer], lambda own: own, weights=torch.tensor([1.0, 1.0, 0.0])):
    ...     layer(rows).flatten().round().tolist()[:2]
    [-1.0, 1.0]
    """

    shared: SharedBatch | None = None
    """The batch that this layer has rows of; None: all of it is here."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape; in training, the running statistics move."""
        shared = self.shared
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
