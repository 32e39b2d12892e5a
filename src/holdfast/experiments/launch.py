"""Several ranks on this machine: one process each, but one exit status and one error message."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from types import FrameType

GRACE = 10.0
"""The seconds that other ranks have to stop by themselves after one has failed."""


def launch(ranks: int, words: Sequence[str]) -> int:
    """Run `python WORDS` once for each rank; return the first rank's exit status, or 1 if another rank died."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Each rank trains with `--threads`; this is for everything else it does.
    shared = {"OMP_NUM_THREADS": "1", **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with tempfile.TemporaryFile() as errors:  # the other ranks print what the first one prints
        processes = [
            subprocess.Popen(
                [sys.executable, *words],
                env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)},
                stderr=None if rank == 0 else errors,
                stdout=None if rank == 0 else subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C reaches them once, through here
            )
            for rank in range(ranks)
        ]

        def forward(number: int, frame: FrameType | None) -> None:
            for process in processes:
                if process.poll() is None:
                    process.send_signal(number)

        heard = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.signal(number, forward) for number in heard}
        try:
            failed = _wait(processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()
            for number, handler in before.items():
                signal.signal(number, handler)
        if (failed and processes[failed].returncode < 0) or processes[0].returncode < 0:
            dead = failed or 0
            name = signal.Signals(-processes[dead].returncode).name if processes[dead].returncode < 0 else "an error"
            print(f"holdfast: rank {dead} was stopped by {name}: run the same command to resume", file=sys.stderr)
            return 1
        if failed and processes[0].returncode == 0:
            errors.seek(0)
            sys.stderr.write(errors.read().decode(errors="replace"))
            return 1
        return processes[0].returncode


def _wait(processes: list[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all ranks; after one fails, wait only briefly for the others. Return the first that failed."""
    failed, deadline = None, float("inf")
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        for rank, process in enumerate(processes):
            if failed is None and process.poll() not in (None, 0):
                failed, deadline = rank, time.monotonic() + GRACE
        time.sleep(0.02)
    for rank, process in enumerate(processes):
        if failed is None and process.poll() not in (None, 0):
            failed = rank
    return failed
