"""The only file that talks to other ranks. With one rank, nothing here costs anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Ranks:
    """The processes that train one learner together, and this one's place among them."""

    def __init__(self) -> None:
        on = dist.is_available() and dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if on else (0, 1)

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes and prints."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over the ranks; a gradient that no rank has stays None."""
        if self.size > 1:
            self._add_up((p.grad for p in parameters if p.grad is not None), divisor=self.size)

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the ranks."""
        if self.size > 1:
            self._add_up(tensors, divisor=1)

    def total(self, own: Tensor) -> Tensor:
        """The sum of a tensor over the ranks, through which gradients flow back to every rank."""
        found: Tensor = own if self.size == 1 else _Total.apply(own)  # type: ignore[no-untyped-call]
        return found

    def _add_up(self, tensors: Iterable[Tensor], divisor: int) -> None:
        """Replace tensors by their sums over the ranks, divided: one message for each type of number."""
        groups: dict[torch.dtype, list[Tensor]] = {}
        for tensor in tensors:
            groups.setdefault(tensor.dtype, []).append(tensor)
        for group in groups.values():
            flat = torch.cat([tensor.reshape(-1) for tensor in group])
            dist.all_reduce(flat)
            flat /= divisor
            pieces = torch.split(flat, [tensor.numel() for tensor in group])
            torch._foreach_copy_(group, [p.view_as(t) for p, t in zip(pieces, group, strict=True)])

    def gather_rows(self, own: Tensor, total: int) -> Tensor:
        """The rows of all ranks in order, where rank r holds rows r, r + size, r + 2 size, ..."""
        if self.size == 1:
            return own
        longest = -(-total // self.size)
        padded = own.new_zeros((longest, *own.shape[1:]))
        padded[: len(own)] = own
        pieces = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(pieces, padded)
        return torch.stack(pieces, 1).flatten(0, 1)[:total]

    def most(self, *values: float) -> list[float]:
        """The largest of each value over the ranks, by way of the CPU."""
        if self.size == 1:
            return list(values)
        found = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.tolist()

    def agree(self, value: str | None) -> str | None:
        """The first rank's word, on every rank."""
        if self.size == 1:
            return value
        words = [value]
        dist.broadcast_object_list(words, src=0)
        return words[0]

    def wait(self) -> None:
        """Until every rank is here."""
        if self.size > 1:
            dist.barrier()


class _Total(torch.autograd.Function):
    """Each rank's loss depends on the sum, so the gradient of what a rank added is the sum of all of theirs."""

    @staticmethod
    def forward(ctx: object, own: Tensor) -> Tensor:
        found = own.clone()
        dist.all_reduce(found)
        return found

    @staticmethod
    def backward(ctx: object, slope: Tensor) -> Tensor:
        found = slope.clone()
        dist.all_reduce(found)
        return found


def join() -> Ranks:
    """Join the ranks that `torchrun` started, if it did: gloo for the CPU, NCCL for GPUs."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        # A rank that dies is noticed by its closed connection; a rank that waits, for another process's lock say, may.
        dist.init_process_group(backend, timeout=timedelta(days=7))
    return Ranks()


def leave() -> None:
    """Part from the other ranks."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
