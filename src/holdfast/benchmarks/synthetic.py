"""The synthetic datasets in the cache: each is written once, on first use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from itertools import repeat
from pathlib import Path

from holdfast import registry
from holdfast.benchmarks.cache import exclusive, place, version_of
from holdfast.processes import working
from holdfast.progress import progress_bar
from holdfast.world.estimate import estimate
from holdfast.world.whole import is_written, write_whole


def world(name: str, scale: str, seed: int = 0) -> Path:
    """The folder of a synthetic dataset at a scale, written first if it does not exist.

    If two processes ask for the same dataset, one writes it and the other waits.
    """
    folder = _folder(name, scale, seed)
    if is_written(folder, scale, seed):
        return folder
    seconds = estimate(name, scale).seconds
    with progress_bar(f"writing synthetic {name} at {scale}, once (about {seconds:.0f} s)"), exclusive(folder):
        if not is_written(folder, scale, seed):
            write_whole(registry.WRITERS[name].load(), folder, scale, seed)
    return folder


def worlds(names: Sequence[str], scale: str) -> None:
    """Write those of the given synthetic datasets that do not exist yet, in parallel on all cores."""
    missing = [name for name in names if not is_written(_folder(name, scale, 0), scale, 0)]
    missing.sort(key=lambda name: -estimate(name, scale).seconds)  # longest first, so that none remains at the end
    processes = min(len(missing), os.cpu_count() or 1)
    if processes < 2:
        return
    seconds = sum(estimate(name, scale).seconds for name in missing) / processes
    with (
        progress_bar(f"writing synthetic {', '.join(missing)} at {scale}, once (about {seconds:.0f} s)"),
        working(processes, "a process that writes synthetic data died: run the command again") as pool,
    ):
        list(pool.map(_write_quietly, missing, repeat(scale)))


def _write_quietly(name: str, scale: str) -> None:
    with redirect_stderr(StringIO()):  # this process shows one bar for all of them
        world(name, scale)


def _folder(name: str, scale: str, seed: int) -> Path:
    module = registry.WRITERS[name].module
    where = f"{name}-{scale}-{seed}-v{version_of(module)}"
    return place("world", where, f"{name} at {scale}, seed {seed}", [module], {})
