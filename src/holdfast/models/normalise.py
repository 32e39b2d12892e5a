"""Batch normalisation over a batch that several ranks share: the same result for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


@dataclass(frozen=True)
class SharedBatch:
    """A batch of which this rank has some rows: how to sum over all ranks, and the weight of each row here."""

    total: Callable[[Tensor], Tensor]
    weights: Tensor | None


@contextmanager
def shared_batch(
    layers: Iterable[SharesBatch], total: Callable[[Tensor], Tensor], weights: Tensor | None = None
) -> Iterator[None]:
    """Let layers normalise over a batch whose sums `total` returns; a padding row has weight 0."""
    layers, batch = tuple(layers), SharedBatch(total, weights)
    for layer in layers:
        layer.shared = batch
    try:
        yield
    finally:
        for layer in layers:
            layer.shared = None


class SharesBatch(_BatchNorm):
    """PyTorch's own layer; within `shared_batch`, it takes the mean and variance over the rows of all ranks.

    >>> layer, rows = BatchNorm(1), torch.tensor([0.0, 2.0, 9.0]).view(3, 1, 1, 1)
    >>> with shared_batch([layer], lambda own: own, weights=torch.tensor([1.0, 1.0, 0.0])):
    ...     layer(rows).flatten().round().tolist()[:2]
    [-1.0, 1.0]
    """

    shared: SharedBatch | None = None
    """The batch of which this layer has some rows; None if it has all."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise; in training, update the running statistics."""
        shared, one = self.shared, self.training and x.numel() == x.shape[1]
        if shared is None or not self.training:
            return self._as_known(x) if one else super().forward(x)
        found = (
            x if self.weight is None else x.to(self.weight.dtype)
        )  # long sums need full precision, even under autocast
        weights = found.new_ones(len(x)) if shared.weights is None else shared.weights.to(found)
        if len(weights) < len(x):  # an example has several images or choices here
            weights = weights.repeat_interleave(len(x) // len(weights))
        weights = weights.view(-1, *[1] * (x.ndim - 1))
        over, places = (0, *range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
        count = weights.sum().view(1) * x.shape[2:].numel()
        sums = shared.total(torch.cat([(weights * found).sum(over), count]))
        if one and sums[-1] <= 1:
            return self._as_known(x)
        mean, count = sums[:-1] / sums[-1], sums[-1]
        centred = found - mean.view(places)
        variance = shared.total((weights * centred.square()).sum(over)) / count
        self._follow(mean.detach(), variance.detach() * count / (count - 1).clamp(min=1))
        scale = (variance + self.eps).rsqrt() if self.weight is None else self.weight * (variance + self.eps).rsqrt()
        out = centred * scale.view(places)
        return (out if self.bias is None else out + self.bias.view(places)).to(x.dtype)

    def _as_known(self, x: Tensor) -> Tensor:
        """Normalise a last batch of one row, which has no variance, as in evaluation, and update nothing."""
        return functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running statistics, if there are any."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        self.running_var.lerp_(variance.to(self.running_var), share)


class BatchNorm(SharesBatch, nn.BatchNorm2d):
    """Over feature maps (rows, channels, height, width)."""


class BatchNormOverRows(SharesBatch, nn.BatchNorm1d):
    """Over (rows, channels), or (rows, channels, length)."""


class BatchNormOverVolumes(SharesBatch, nn.BatchNorm3d):
    """Over (rows, channels, depth, height, width)."""


SHARING: dict[type, type[SharesBatch]] = {
    nn.BatchNorm1d: BatchNormOverRows,
    nn.BatchNorm2d: BatchNorm,
    nn.BatchNorm3d: BatchNormOverVolumes,
}


def share_batches(module: nn.Module) -> None:
    """Let PyTorch's own layers in a module share a batch among ranks; on one rank they compute the same as before."""
    for each in module.modules():
        each.__class__ = SHARING.get(type(each), type(each))
