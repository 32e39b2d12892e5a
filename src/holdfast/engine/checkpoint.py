"""Checkpoints: one safetensors file each, whose header carries the rest of the state as JSON.

A file is written under a temporary name, fsynced and renamed, so that it is either absent or complete. Its header
holds a checksum of the whole file, which is verified on reading. The last two are kept: if the newest is damaged, the
run continues from the one before it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from holdfast import checksums
from holdfast.checksums import DamagedError
from holdfast.engine.files import sweep, sync_rename, temporary_name
from holdfast.errors import RunError

logger = logging.getLogger("holdfast")

KEEP = 2


class Checkpoints:
    """The checkpoints of one run, written every `every_steps` steps or `every_seconds` seconds, whichever comes first.

    Of several ranks, only the first `writes`; the others read. If `stages` names a folder, the model's weights at
    the end of each stage are kept there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        every_steps: int | None = None,
        every_seconds: float | None = 60.0,
        writes: bool = True,
        stages: Path | None = None,
    ) -> None:
        self.folder, self.writes, self.stages = folder, writes, stages
        self.every_steps, self.every_seconds = every_steps, every_seconds
        self._last_step, self._last_time = 0, time.monotonic()

    def due(self, step: int) -> bool:
        """Whether a checkpoint should be written after this step."""
        if not self.writes:
            return False
        if self.every_steps is not None and step - self._last_step >= self.every_steps:
            return True
        return self.every_seconds is not None and time.monotonic() - self._last_time >= self.every_seconds

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state after a step; if that fails, report it and keep the earlier checkpoints."""
        assert self.writes
        path = self._path(step)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write(path, state)
        except (OSError, SafetensorError) as error:
            kept = self._paths()
            raise RunError(
                f"could not write the checkpoint of step {step} to {path}: {reason(error)}; "
                + (f"the checkpoint of step {int(kept[-1].stem)} is kept" if kept else "there is none before it")
                + ": free some space there, and run the same command again"
            ) from error
        self._last_step, self._last_time = step, time.monotonic()
        for old in self._paths()[:-KEEP]:
            old.unlink()

    def load(self, refuse: Callable[[dict[str, Any]], str] = lambda state: "") -> dict[str, Any] | None:
        """The newest state that is intact, or None if there is no checkpoint.

        `refuse` returns what else is wrong with a state, such as lost scores that it relies on; such a
        checkpoint is skipped like a damaged one. Skipped checkpoints are removed once an older intact one is found.
        """
        if self.writes:
            sweep(self.folder)
        broken: dict[Path, str] = {}
        for path in reversed(self._paths()):
            try:
                state = read(path)
                if what := refuse(state):
                    raise DamagedError(what)
            except (OSError, DamagedError) as error:
                broken[path] = f"{path}: {reason(error)}"
                continue
            for skipped, line in broken.items():
                logger.warning("checkpoint is damaged and is skipped (%s); resuming from %s", line, path.name)
                if self.writes:
                    skipped.unlink(missing_ok=True)
            self._last_step = int(path.stem)
            return state
        if broken:
            raise RunError(
                f"no checkpoint is intact ({'; '.join(broken.values())}): delete {self.folder} to start this run again"
            )
        return None

    def of_step(self, step: int) -> dict[str, Any]:
        """The state after a step that another rank chose."""
        path = self._path(step)
        try:
            state = read(path)
        except (OSError, DamagedError) as error:
            raise RunError(
                f"the first rank continues from {path}, which this rank cannot read: {reason(error)}"
            ) from None
        self._last_step = step
        return state

    def keep(self, stage: int, weights: dict[str, Tensor]) -> None:
        """Keep the model's weights after `stage` stages, if requested."""
        if self.writes and self.stages is not None:
            path = stage_file(self.stages, stage)
            try:
                self.stages.mkdir(exist_ok=True)
                write(path, weights)
            except (OSError, SafetensorError) as error:
                raise RunError(f"could not keep the weights of stage {stage} in {path}: {reason(error)}") from error

    def clear(self, *, keep_last: bool = False) -> None:
        """Remove all checkpoints of a finished run, except the last one if it is still needed."""
        paths = self._paths()
        for path in paths[:-1] if keep_last else paths:
            path.unlink()
        if self.folder.exists() and not (keep_last and paths):
            self.folder.rmdir()

    def _path(self, step: int) -> Path:
        return self.folder / f"{step:010d}.safetensors"

    def _paths(self) -> list[Path]:
        return _in(self.folder)


def newest(folder: Path) -> Path | None:
    """The file of the newest checkpoint in a folder, or None."""
    return next(reversed(_in(folder)), None)


def _in(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.safetensors"))


def stage_file(folder: Path, stage: int) -> Path:
    """The file of the weights after `stage` stages.

    >>> stage_file(Path("stages"), 2).name
    '002.safetensors'
    """
    return folder / f"{stage:03d}.safetensors"


def reason(error: Exception) -> str:
    """The message of an error, for use within a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).split("\n")[0] or type(error).__name__


def write(path: Path, state: dict[str, Any]) -> None:
    """Write a tree of numbers, strings, lists, dicts, arrays and tensors as one file, atomically."""
    tensors: dict[str, Tensor] = {}
    tree = _pack(state, "", tensors, {})
    temporary = temporary_name(path)
    temporary.unlink(missing_ok=True)  # never write through a link that somebody left there
    try:
        header = {"state": json.dumps(checksums.room() | tree)}
        save_file(tensors or {"empty": torch.zeros(0)}, temporary, header)
        checksums.seal_tensors(temporary)
        sync_rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path) -> dict[str, Any]:
    """The tree that `write` wrote; raises a DamagedError if the file has changed."""
    try:
        checksums.check_tensors(path)
        with safe_open(path, framework="pt") as file:
            tree = json.loads(file.metadata()["state"])
            tree.pop(checksums.FIELD, None)
            # Copies: tensors at unaligned addresses of the file might be summed in a different order.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        state = _unpack(tree, tensors)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError, RuntimeError) as error:
        raise error if isinstance(error, DamagedError) else DamagedError(f"it is damaged ({reason(error)})") from None
    if not isinstance(state, dict):
        raise DamagedError("it is damaged: it contains no state")
    return state


def _pack(value: Any, name: str, tensors: dict[str, Tensor], seen: dict[tuple[Any, ...], str]) -> Any:
    """The JSON form of a tree; its tensors go to `tensors`, one that occurs twice (tied weights) only once."""
    if isinstance(value, Tensor):
        value = value.detach()
        key = (value.data_ptr(), value.dtype, value.shape, value.stride(), value.device) if value.numel() else (name,)
        if key not in seen:
            seen[key] = name
            # A view would carry its whole storage along, and two views of one storage are refused.
            alone = value.is_contiguous() and value.untyped_storage().nbytes() == value.nbytes
            tensors[name] = value.cpu() if alone else value.cpu().contiguous().clone()
        return {"tensor": seen[key]}
    if isinstance(value, np.ndarray):
        tensors[name] = torch.from_numpy(np.ascontiguousarray(value))
        return {"array": name}
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value), f"keys must be strings at {name!r}"
        return {
            "dict": {key: _pack(item, f"{name}/{key}" if name else key, tensors, seen) for key, item in value.items()}
        }
    if isinstance(value, list | tuple):
        return [_pack(item, f"{name}/{index}", tensors, seen) for index, item in enumerate(value)]
    assert value is None or isinstance(value, bool | int | float | str), f"{type(value)} at {name!r} cannot be saved"
    return value


def _unpack(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_unpack(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, value),) = tree.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "array":
        return tensors[value].numpy()
    return {key: _unpack(item, tensors) for key, item in value.items()}
