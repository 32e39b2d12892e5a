"""Worker processes. They start quickly, since nothing here imports torch, and end with their parent process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.errors import RunError

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

P = ParamSpec("P")
R = TypeVar("R")
ALONE = 150
"""How many calls a crew carries out in its own process before it starts others, which takes half a second."""
AHEAD = 256
"""How many calls may wait for a process: a longer queue would only take memory."""
unfinished: Synchronized[int] | None = None
"""How many jobs a command that runs several at once has yet to finish: it sets this in each of their processes."""


@contextmanager
def working(workers: int, died: str) -> Iterator[ProcessPoolExecutor]:
    """Worker processes within a context. Any error ends them at once; if one of them dies, the error says `died`."""
    pool = worker_pool(workers)
    try:
        yield pool
    except BrokenProcessPool:
        raise RunError(died) from None
    except BaseException:
        for process in list(pool._processes.values()):  # they ignore Ctrl-C, and would finish their current calls
            process.terminate()
        raise
    finally:
        pool.shutdown()


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Worker processes that are ready to run our own functions.

    Spawned, not forked: a fork would copy the locks of any threads that the caller's libraries are running. A spawned
    process would run the user's script again unless the script is guarded by `if __name__ == "__main__":`. Our
    functions never need the script, so it is hidden from the workers, and scripts need no guard.
    """
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=end_with_parent)
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        for _ in range(workers):  # a task starts a process if none is idle, and none becomes idle within microseconds
            pool.submit(int)
    finally:
        main.pop("__spec__")
        main |= hidden
    return pool


def end_with_parent() -> None:
    """End this worker with its parent; otherwise it would wait for work for ever, since the workers hold the queue
    open.
    """
    import holdfast.seldom  # noqa: F401

    def wait() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # such a request reaches the parent, which ends its workers


def core_is_free() -> bool:
    """Whether the jobs of this command leave a core idle."""
    return unfinished is None or unfinished.value < cores()


def may_spawn() -> bool:
    """Whether this process may start workers: a worker that ends with its parent may not."""
    return not multiprocessing.current_process().daemon


class Crew:
    """Calls functions in worker processes, once enough calls make starting them worthwhile and a core is free.

    >>> with crew("a process ended early") as call:
    ...     call(max, 3, 4).result(), list(call.map(max, [(1, 2), (4, 3)]))
    (4, [2, 4])
    """

    def __init__(self, start: Callable[[], ProcessPoolExecutor]) -> None:
        self._start, self._alone = start, ALONE if may_spawn() and cores() > 1 else float("inf")
        self._pool: ProcessPoolExecutor | None = None
        self._made = 0
        self._pending = deque[Future[Any]]()

    def __call__(self, function: Callable[P, R], *args: P.args, **named: P.kwargs) -> Future[R]:
        """Call a module's function; calls may be executed in a different order."""
        self._made += 1
        if self._made <= self._alone or (self._pool is None and not core_is_free()):
            done = Future[R]()
            done.set_result(function(*args, **named))
            return done
        self._pool = self._pool or self._start()
        while len(self._pending) >= AHEAD or (self._pending and self._pending[0].done()):
            self._pending.popleft().result()
        future = self._pool.submit(function, *args, **named)
        self._pending.append(future)
        return future

    def map(self, function: Callable[..., R], calls: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """The results of calls in the order of their arguments, which are consumed while earlier calls are executed."""
        waiting = deque[Future[R]]()
        for args in calls:
            waiting.append(self(function, *args))
            if len(waiting) >= AHEAD:
                yield waiting.popleft().result()
        for future in waiting:
            yield future.result()

    def finish(self) -> None:
        """Wait for all calls; raise the first error."""
        while self._pending:
            self._pending.popleft().result()


@contextmanager
def crew(died: str) -> Iterator[Crew]:
    """A crew whose calls are all executed by the end of the context: the one that is already open, or a new one.

    `died` is the error message if one of its processes dies.
    """
    if _OPEN:
        yield _OPEN[-1]
        _OPEN[-1].finish()
        return
    with ExitStack() as stack:
        _OPEN.append(Crew(lambda: stack.enter_context(working(cores(), died))))
        stack.callback(_OPEN.clear)
        yield _OPEN[-1]
        _OPEN[-1].finish()


_OPEN: list[Crew] = []


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))
