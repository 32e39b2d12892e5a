"""The local engine: one run after another in this process, or several at once in worker processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from holdfast.engine.ranks import Ranks
from holdfast.engine.watch import Watch
from holdfast.errors import RunError, Stopped, UserError
from holdfast.experiments import warm
from holdfast.experiments.carried import pack
from holdfast.experiments.config import Config, unpacked
from holdfast.experiments.remote import Remote
from holdfast.experiments.runner import run
from holdfast.experiments.schedule import Engine, Outcome
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from holdfast.experiments.trackers import Tracker, check_trackers


@dataclass(frozen=True)
class Options:
    """How runs are executed: nothing that affects a result."""

    device: str = "cpu"
    save_steps: int | None = None
    save_seconds: float = 60.0
    compiled: bool = False
    trackers: tuple[str | Tracker, ...] = ()
    remote: str = ""
    """The address of the store that the folder is a copy of; empty if the folder is the store."""

    def __post_init__(self) -> None:
        check_trackers(self.trackers)


def attempt(
    config: Config,
    store: Store,
    options: Options,
    setups: Setups,
    watch: Watch | None = None,
    waiting: Callable[[str], None] = lambda holder: None,
    ranks: Ranks | None = None,
) -> Outcome:
    """Try a run once, whatever the outcome."""
    if not options.remote:
        return _attempt(config, store, options, setups, watch, waiting, ranks)
    try:
        remote, watch = Remote(options.remote), watch or Watch()
        with remote.lock(config.id, waiting, lambda: watch.stopping):
            remote.fetch(config, store)
            outcome = _attempt(config, store, options, setups, watch, waiting, ranks)
            remote.up(config.id, store)
    except Stopped:
        return Outcome(config.id, "stopped")
    except (RunError, UserError) as error:
        return Outcome(config.id, "failed", str(error))
    return outcome


def attempt_packed(
    run: str, packed: bytes, store: Store, options: Options, setups: Setups, watch: Watch | None = None
) -> Outcome:
    """Try a run once that another process planned."""
    try:
        config = unpacked(packed)
    except UserError as error:
        return Outcome(run, "refused", str(error), error=error)
    return attempt(config, store, options, setups, watch)


def _attempt(
    config: Config,
    store: Store,
    options: Options,
    setups: Setups,
    watch: Watch | None,
    waiting: Callable[[str], None],
    ranks: Ranks | None,
) -> Outcome:
    began = time.monotonic()
    try:
        run(
            config,
            setups.of(config),
            store,
            device=options.device,
            every_steps=options.save_steps,
            every_seconds=options.save_seconds,
            watch=watch,
            waiting=waiting,
            ranks=ranks,
            compiled=options.compiled,
            trackers=options.trackers,
        )
    except Stopped:
        return Outcome(config.id, "stopped")
    except KeyboardInterrupt:
        if watch is None or not watch.stopping:
            raise
        return Outcome(config.id, "stopped")
    except UserError as error:
        return Outcome(config.id, "refused", str(error), error=error)
    except RunError as error:
        return Outcome(config.id, "broken", str(error), error=error)
    except Exception as error:
        folder = store.folder(config.id).path
        reason = f"{type(error).__name__}: {error} (traceback in {folder}/failure.txt)"
        return Outcome(config.id, "failed", reason, error=error)
    return Outcome(config.id, "done", seconds=time.monotonic() - began)


class Here(Engine):
    """Runs in this process, one after another. `watch` returns the object that follows each of them."""

    places = 1

    def __init__(
        self,
        store: Store,
        options: Options,
        setups: Setups,
        watch: Callable[[Config], AbstractContextManager[Watch]] = lambda config: nullcontext(Watch()),
        waiting: Callable[[str], None] = lambda holder: None,
        ranks: Ranks | None = None,
    ) -> None:
        self.store, self.options, self.setups = store, options, setups
        self.watch, self.waiting, self.ranks = watch, waiting, ranks
        self.ended: list[Outcome] = []

    def begin(self, config: Config) -> None:
        """Execute the run."""
        with self.watch(config) as watch:
            done = attempt(config, self.store, self.options, self.setups, watch, self.waiting, self.ranks)
            self.ended.append(done)

    def wait(self, seconds: float) -> Iterable[Outcome]:
        """The outcome of the run."""
        ended, self.ended = self.ended, []
        return ended

    def stop(self) -> None:
        """Do nothing: no run is active when this is called."""

    def runs(self) -> list[str]:
        """None, for the same reason."""
        return []


class Workers(Engine):
    """Runs in worker processes: as many as cores, or as GPUs, of which each has its own.

    Workers are reused. One that dies is replaced: its run is reported as died, and may resume from its
    checkpoint. They are forked from a server that has imported everything and done nothing else, so that a new one
    starts at once. Use as a context manager; workers end with it.
    """

    def __init__(self, store: Store, options: Options, places: int | None = None) -> None:
        self.store = store
        self.devices = devices(options.device, places)
        self.options, self.places = options, len(self.devices)
        self.context = warm.server()  # it imports while the caller plans
        self.idle: list[_Worker] = []
        self.busy: dict[Connection, tuple[_Worker, str]] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in [*self.idle, *(worker for worker, _ in self.busy.values())]:
            worker.end()
        self.idle, self.busy = [], {}

    def begin(self, config: Config) -> None:
        """Assign the run to a worker."""
        worker = self.idle.pop() if self.idle else self._worker()
        self.busy[worker.connection] = worker, config.id
        with suppress(OSError):  # it died while it was idle: `wait` finds out
            worker.connection.send((config.id, config.packed()))

    def wait(self, seconds: float) -> Iterable[Outcome]:
        """The outcomes that workers report, and those of workers that died."""
        for connection in wait(list(self.busy), seconds):
            assert isinstance(connection, Connection)
            worker, run = self.busy.pop(connection)
            try:
                outcome: Outcome = connection.recv()
            except (EOFError, OSError):
                self.devices.append(worker.device)
                yield Outcome(run, "died", f"its process was ended {worker.end()}")
                continue
            self.idle.append(worker)
            yield outcome

    def stop(self) -> None:
        """Ask all workers to save and stop."""
        for worker, _ in self.busy.values():
            with suppress(OSError):
                worker.connection.send(None)

    def runs(self) -> list[str]:
        """The runs that workers are executing."""
        return [run for _, run in self.busy.values()]

    def _worker(self) -> _Worker:
        from holdfast.experiments.worker import work

        device = self.devices.pop()
        ours, theirs = self.context.Pipe()
        options = replace(self.options, device=device)
        job = theirs, self.store.path.absolute(), pack(options), Path.cwd()
        process = self.context.Process(target=work, args=job, daemon=True)
        with warm.main_unseen():
            process.start()
        theirs.close()
        return _Worker(ours, process, device)


@dataclass(frozen=True)
class _Worker:
    connection: Connection
    process: BaseProcess
    device: str

    def end(self) -> str:
        """End the process, and return how it ended."""
        self.connection.close()
        self.process.join(2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        status = self.process.exitcode or 0
        return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


def devices(name: str, places: int | None = None, threads: int = 1) -> list[str]:
    """The device of each process: every GPU once, or the CPU as often as its cores suffice for `threads`.

    >>> devices("cpu", 3)
    ['cpu', 'cpu', 'cpu']
    """
    count = torch.cuda.device_count()
    if name == "cpu" or (name == "auto" and not count):
        return ["cpu"] * (places or max(len(os.sched_getaffinity(0)) // threads, 1))
    if name in ("auto", "cuda"):
        return [f"cuda:{place % count}" for place in range(places or count)]
    return [name] * (places or 1)
