"""All-or-nothing writing: if the process is killed, it leaves nothing that looks like a finished dataset."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import UserError

MARK = "holdfast-world.json"
"""The file that records to which synthetic dataset a folder belongs."""


def is_written(folder: Path, scale: str, seed: int) -> bool:
    """Whether a folder already holds this synthetic dataset; a folder that holds anything else raises a UserError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     before = is_written(Path(root) / "sst2", "tiny", 0)
    ...     write_whole(lambda folder, scale, seed: None, Path(root) / "sst2", "tiny", 0)
    ...     before, is_written(Path(root) / "sst2", "tiny", 0)
    (False, True)
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    try:
        world = json.loads((folder / MARK).read_bytes())
    except (OSError, ValueError):
        world = None
    if world == _world(scale, seed):
        return True
    raise UserError(f"{folder} holds other files, or data of another scale or seed: change --out, or delete it")


def write_whole(write: Callable[[Path, str, int], None], folder: Path, scale: str, seed: int) -> None:
    """Call a writer on a hidden folder beside `folder`, and rename it to `folder` once everything is written."""
    part = folder.with_name(f".{folder.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    handle = os.open(part, os.O_RDONLY)
    try:
        # The operating system holds the lock, so it ends with the process, however that ends.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left_over in part.iterdir():
            if left_over.is_dir():
                shutil.rmtree(left_over)
            else:
                left_over.unlink()
        write(part, scale, seed)
        (part / MARK).write_bytes(json.dumps(_world(scale, seed)).encode())
        os.sync()  # of thousands of files, at once: after a power cut, a folder of this name is whole
        part.rename(folder)
        _sync(folder.parent)
    except BlockingIOError:
        raise UserError(f"another process is writing {folder}: wait for it to finish, or change --out") from None
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def holds_world(folder: Path) -> bool:
    """Whether a folder, or one inside it, holds synthetic data: results on such data are not results on real data."""
    return (folder / MARK).is_file() or any(folder.glob(f"*/{MARK}"))


def _world(scale: str, seed: int) -> dict[str, object]:
    return {"made by": "holdfast data make", "scale": scale, "seed": seed}
