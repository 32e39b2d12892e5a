"""Stopping on request: immediately if nothing is lost, otherwise as soon as the run can save."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_saving = 0
"""How many callers of `saves` there are in this process."""


@dataclass
class Interrupt:
    """Whether someone asked the command to stop."""

    asked: bool = False


@contextmanager
def saves() -> Iterator[None]:
    """Within this context, a request to stop waits until the code that checks `Interrupt.asked` saves and stops.

    Elsewhere, as while data is set up or a model is built, the request raises KeyboardInterrupt.
    """
    global _saving
    _saving += 1
    try:
        yield
    finally:
        _saving -= 1


def can_save() -> bool:
    """Whether a request to stop should wait."""
    return _saving > 0


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Let Ctrl-C, or a termination, ask for a stop: see `saves`. A second Ctrl-C always stops at once."""
    interrupt = Interrupt()

    def ask(number: int, frame: FrameType | None) -> None:
        again, interrupt.asked = interrupt.asked, True
        if not can_save() or (again and number == signal.SIGINT):
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set by Python
