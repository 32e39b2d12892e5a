"""How many threads PyTorch computes with: a sum over several threads is rounded in another order than over one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with so many threads; the caller's own number returns at the end.

    >>> before = torch.get_num_threads()
    >>> with threads(2):
    ...     torch.get_num_threads()
    2
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def own_process() -> None:
    """Set PyTorch's inter-op pool to one thread. PyTorch allows this once, so only our own processes do it."""
    with suppress(RuntimeError):  # it was set, or used, before
        torch.set_num_interop_threads(1)
