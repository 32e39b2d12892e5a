"""A worker process: it has imported everything, and executes one run after another for its parent process."""

from __future__ import annotations

import _thread
import os
import queue
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from holdfast.data.threads import own_process
from holdfast.engine.stopping import can_save
from holdfast.engine.watch import Watch
from holdfast.experiments.carried import unpack
from holdfast.experiments.local import Options, attempt_packed
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store

Job = tuple[str, bytes]


def work(connection: Connection, store: Path, packed_options: bytes, folder: Path) -> None:
    """Execute runs as they arrive, until the other end is closed; file names are relative to `folder`."""
    own_process()
    os.chdir(folder)
    options: Options = unpack(packed_options)
    # Ctrl-C, or a termination of all processes, reaches the parent, which asks its workers to save and stop. They also
    # end when the parent does: see `_listen`.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    watch, jobs, setups = Watch(), queue.SimpleQueue[Job](), Setups()
    threading.Thread(target=_listen, args=(connection, jobs, watch), daemon=True).start()
    while True:
        run, packed = jobs.get()
        connection.send(attempt_packed(run, packed, Store(store), options, setups, watch))


def _listen(connection: Connection, jobs: queue.SimpleQueue[Job], watch: Watch) -> None:
    """Accept jobs, and None as a request to stop. If the other end is gone, exit at once: checkpoints are intact."""
    while True:
        try:
            job: Job | None = connection.recv()
        except (EOFError, OSError):
            os._exit(0)
        if job is None:
            watch.stopping = True
            if not can_save():
                _thread.interrupt_main(signal.SIGUSR1)
        else:
            jobs.put(job)
