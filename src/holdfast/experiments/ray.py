"""The Ray engine: runs as tasks of a Ray cluster, at a given address or started locally for them.

The store is a folder that every node sees, or is remote and copied (see `remote`). Ray assigns each run its CPUs,
GPUs and memory, and reports when a worker or a node is lost; the run then resumes elsewhere, from its checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import chdir, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.data.threads import own_process
from holdfast.engine.stopping import interruptible
from holdfast.errors import RunError, UserError, missing_extra
from holdfast.experiments.carried import pack, unpack
from holdfast.experiments.config import Config
from holdfast.experiments.local import Options, attempt_packed
from holdfast.experiments.remote import local_copy
from holdfast.experiments.runner import Asked
from holdfast.experiments.schedule import Engine, Outcome
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store

AHEAD = 2
"""The number of runs submitted to Ray beyond its capacity, so that no slot waits for the driver."""


@dataclass(frozen=True)
class RunResources:
    """The resources of each run: CPUs, GPUs (a fraction shares one) and gigabytes of memory."""

    cpus: float = 1
    gpus: float = 0
    memory: float = 0


class Cluster(Engine):
    """Runs on a Ray cluster. Use as a context manager, which ends what it has started."""

    def __init__(self, store: Store, options: Options, address: str = "", share: RunResources | None = None) -> None:
        self.ray, self.share = _ray(alone=not address), share or RunResources()
        self.store = Path(store.path).absolute()
        self.options = replace(options, device=_device(options.device, self.share))
        self.running: dict[Any, str] = {}
        self._called_back: set[Any] = set()
        try:
            if address:
                self.ray.init(address=address, log_to_driver=False, configure_logging=False)
            else:
                self.ray.init(
                    include_dashboard=False, log_to_driver=False, configure_logging=False, _node_ip_address="127.0.0.1"
                )
        except (ConnectionError, RuntimeError, ValueError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RunError(f"no Ray cluster at {address or 'this machine'}: {first}") from error
        self.task = self.ray.remote(max_retries=0, **self._asked())(_carry_out)

    @property
    def places(self) -> int:  # type: ignore[override]
        """How many runs are submitted at once: nodes may come and go."""
        have, rooms = self.ray.cluster_resources(), []
        for name, each in (("CPU", self.share.cpus), ("GPU", self.share.gpus), ("memory", self.share.memory * 1e9)):
            if each:
                rooms.append(int(have.get(name, 0) / each))
        room = min(rooms, default=1)
        if room < 1 and not self.running:
            raise UserError(
                f"no node of the Ray cluster has the resources of a run ({self.share.cpus:g} CPUs, {self.share.gpus:g} "
                f"GPUs, {self.share.memory:g} GB): ask for less"
            )
        return room + AHEAD

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.ray.shutdown()

    def begin(self, config: Config) -> None:
        """Submit a run."""
        task = self.task.remote(config.id, config.packed(), str(self.store), pack(self.options), str(Path.cwd()))
        self.running[task] = config.id

    def wait(self, seconds: float) -> Iterable[Outcome]:
        """The runs that ended, and those lost with their worker or node."""
        ended, _ = self.ray.wait(list(self.running), num_returns=1, timeout=seconds)
        for task in ended:
            run = self.running.pop(task)
            try:
                outcome: Outcome = self.ray.get(task)
            except self.ray.exceptions.TaskCancelledError:
                outcome = Outcome(run, "stopped")
            except self.ray.exceptions.RayError as error:
                # Ray's own callback fails if Ctrl-C is ignored, as it is for a background job of a shell.
                if task in self._called_back and isinstance(error, self.ray.exceptions.RayTaskError):
                    outcome = Outcome(run, "stopped")
                else:
                    outcome = Outcome(run, "died", f"Ray lost it: {type(error).__name__}")
            yield outcome

    def stop(self) -> None:
        """Ask all runs to save and stop, and cancel those that have not started."""
        self._called_back.update(self.running)
        for task in self.running:
            self.ray.cancel(task, force=False, recursive=False)

    def runs(self) -> list[str]:
        """The submitted runs, some of which may still be queued."""
        return list(self.running.values())

    def _asked(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"num_cpus": self.share.cpus, "num_gpus": self.share.gpus}
        return asked | ({"memory": int(self.share.memory * 1e9)} if self.share.memory else {})


_SETUPS: list[Setups] = []
"""The set-ups of this worker: Ray reuses its processes, and so the data of the last run."""


def _carry_out(run: str, packed: bytes, store: str, packed_options: bytes, folder: str) -> Outcome:
    """Try a run once, in a Ray worker."""
    own_process()
    if not _SETUPS:
        _SETUPS.append(Setups())
    # A user's own algorithm or data may be named relative to the folder in which the plan was started.
    with interruptible() as interrupt, chdir(folder) if Path(folder).is_dir() else nullcontext():
        options: Options = unpack(packed_options)
        here = local_copy(options.remote) if options.remote else Store(store)
        return attempt_packed(run, packed, here, options, _SETUPS[0], Asked(interrupt))


def _device(name: str, share: RunResources) -> str:
    """Ray makes only a run's own GPUs visible to it."""
    return ("cuda" if share.gpus else "cpu") if name == "auto" else name


def _ray(alone: bool) -> Any:
    """The library; with `alone`, a cluster that it starts listens only to this machine."""
    if alone:  # Ray reads this when it is imported
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise missing_extra("--engine ray needs Ray", "ray") from None
    return ray
