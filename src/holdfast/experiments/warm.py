"""The server that worker processes are forked from: it imports everything once, while its parent goes on."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context, forkserver, get_context, resource_tracker
from typing import Any


def server() -> context.ForkServerContext:
    """Start the server, once, and return where to start processes.

    This module imports no torch, so that a command can start the server before it imports torch itself.
    """
    workers = get_context("forkserver")
    workers.set_forkserver_preload(["holdfast.seldom", "holdfast.experiments.worker"])
    resource_tracker.ensure_running()  # otherwise it would unblock the signals
    with main_unseen(), _deaf():
        forkserver.ensure_running()
    return workers


@contextmanager
def main_unseen() -> Iterator[None]:
    """Start processes without running the user's script again: they need nothing from it."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.pop("__spec__")
        main |= hidden


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that ignore Ctrl-C and a termination of the group: they are asked to stop instead."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
