"""The number of PyTorch's threads, and how a process that computes keeps its memory.

A sum over several threads is rounded in a different order than over one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

MOST_MAPPED, TRIM_ABOVE, GROW_BY = -4, -1, -2
"""The numbers of glibc's settings for `mallopt`."""


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
    with suppress(RuntimeError):  # it was already set or used
        torch.set_num_interop_threads(1)
    reuse_memory()


def reuse_memory() -> None:
    """Keep freed memory for the next tensors, if the C library is glibc.

    By default it returns each block above 32 MB to the system, and the next one comes back page by page, filled with
    zeros: for photographs in batches of 32, that takes longer than computing.
    """
    with suppress(AttributeError, OSError):
        setting = ctypes.CDLL(None).mallopt
        setting(MOST_MAPPED, 0)
        setting(TRIM_ABOVE, 2**31 - 1)
        setting(GROW_BY, 1 << 26)
