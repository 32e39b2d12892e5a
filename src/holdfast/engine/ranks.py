"""The only file that communicates with other ranks. With one rank, it has no cost."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

T = TypeVar("T", bound=Tensor)
BUCKET = 8 << 20
"""How many bytes of gradients are sent together: 2 to 16 MiB take about the same time over gloo."""


class Ranks:
    """The processes that train one learner together, and the rank of this process among them."""

    def __init__(self) -> None:
        on = dist.is_available() and dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if on else (0, 1)

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes and prints."""
        return self.rank == 0

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the ranks."""
        if self.size > 1:
            for message in [_Message(group) for group in _groups(tensors)]:
                message.receive(divisor=1)

    def total(self, own: Tensor) -> Tensor:
        """The sum of a tensor over the ranks, through which gradients flow back to every rank."""
        found: Tensor = own if self.size == 1 else _Total.apply(own)  # type: ignore[no-untyped-call]
        return found

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
        """The maximum of each value over the ranks, computed on the CPU."""
        if self.size == 1:
            return list(values)
        found = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.tolist()

    def agree(self, value: str | None) -> str | None:
        """The first rank's value, on every rank."""
        if self.size == 1:
            return value
        words = [value]
        dist.broadcast_object_list(words, src=0)
        return words[0]

    def wait(self) -> None:
        """Wait until every rank has arrived."""
        if self.size > 1:
            dist.barrier()


class Averaging:
    """Replaces each gradient by its mean over the ranks, if possible while the backward pass is still running.

    Gradients travel in buckets, those of the last layers first, each as soon as the pass has produced all of its
    contents. A bucket holds what the last pass used, so that every rank sends the same buckets in the same order,
    regardless of the order in which its gradients arrive; what only this pass uses is sent at the end, and a gradient
    that no rank has remains None.
    """

    def __init__(self, ranks: Ranks, parameters: Iterable[nn.Parameter]) -> None:
        self._ranks, self._parameters = ranks.size, tuple(reversed(tuple(parameters)))
        self._used: list[int] = []
        self._buckets: list[list[nn.Parameter]] = []
        self._place: dict[nn.Parameter, int] = {}
        self._sent: list[_Message] = []
        self._missing: list[int] = []
        many = ranks.size > 1 and sum(p.nbytes for p in self._parameters) > BUCKET  # otherwise one message is enough
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._made)  # type: ignore[no-untyped-call]
            for parameter in self._parameters
            if many
        ]

    def close(self) -> None:
        """Stop observing the parameters."""
        for hook in self._hooks:
            hook.remove()

    def begin(self) -> None:
        """Mark the start of the backward pass after which gradients are complete."""
        if self._hooks:
            self._missing = [len(bucket) for bucket in self._buckets]

    def _made(self, parameter: Tensor) -> None:
        """Handle a gradient that the pass has produced: send the buckets that are full, in order."""
        if self._missing and (place := self._place.get(parameter)) is not None:  # type: ignore[call-overload]
            self._missing[place] -= 1
            while len(self._sent) < len(self._missing) and self._missing[len(self._sent)] == 0:
                self._send(self._buckets[len(self._sent)])

    def end(self) -> None:
        """Mark the end of the pass: send the rest, and wait for everything."""
        if self._ranks == 1:
            return
        gone = {parameter for bucket in self._buckets[: len(self._sent)] for parameter in bucket}
        used = [parameter for parameter in self._parameters if parameter.grad is not None]
        for bucket in _groups((parameter for parameter in used if parameter not in gone), BUCKET):
            self._send(bucket)
        for message in self._sent:
            message.receive(divisor=self._ranks)
        self._sent, self._missing = [], []
        if self._hooks and self._used != (numbers := [id(parameter) for parameter in used]):
            self._used, self._buckets = numbers, _groups(used, BUCKET)
            self._place = {parameter: place for place, bucket in enumerate(self._buckets) for parameter in bucket}

    def _send(self, bucket: Iterable[nn.Parameter]) -> None:
        self._sent.append(_Message([p.grad for p in bucket if p.grad is not None]))


class _Message:
    """Tensors of the same type, sent in one piece to be replaced by their sums over the ranks."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors
        self.flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self.work = dist.all_reduce(self.flat, async_op=True)

    def receive(self, divisor: int) -> None:
        """Replace the tensors by their sums, divided by `divisor`."""
        self.work.wait()
        self.flat /= divisor
        pieces = torch.split(self.flat, [tensor.numel() for tensor in self.tensors])
        torch._foreach_copy_(self.tensors, [p.view_as(t) for p, t in zip(pieces, self.tensors, strict=True)])


def _groups(tensors: Iterable[T], most: float = float("inf")) -> list[list[T]]:
    """Tensors grouped by type, in order; a group is full once it has `most` bytes."""
    done: list[list[T]] = []
    filling: dict[torch.dtype, tuple[list[T], int]] = {}
    for tensor in tensors:
        group, size = filling.get(tensor.dtype, ([], 0))
        group.append(tensor)
        filling[tensor.dtype] = group, size + tensor.nbytes
        if size + tensor.nbytes >= most:
            done.append(filling.pop(tensor.dtype)[0])
    return [*done, *(group for group, _ in filling.values())]


class _Total(torch.autograd.Function):
    """Each rank's loss depends on the sum, so the gradient of one rank's summand is the sum of all ranks' gradients."""

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
        # A dead rank is noticed by its closed connection; a rank that waits, say for another process's lock, may do so.
        dist.init_process_group(backend, timeout=timedelta(days=7))
    return Ranks()


def leave() -> None:
    """Disconnect from the other ranks."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
