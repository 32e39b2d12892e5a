"""The number of PyTorch's threads: a sum over several threads is rounded in a different order than over one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with `count` threads; the caller's own number is restored at the end.

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
    """Set PyTorch's inter-op pool to one thread. PyTorch allows this only once, so only our own processes do it."""
    with suppress(RuntimeError):  # it was already set, or used
        torch.set_num_interop_threads(1)
