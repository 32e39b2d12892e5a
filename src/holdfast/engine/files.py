"""Atomic files, whole or absent: written under a temporary name, fsynced, renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.checksums import sealed


def temporary_name(path: Path) -> Path:
    """The path of a file while it is being written."""
    return path.with_name(f".{path.name}.writing")


def sweep(folder: Path) -> None:
    """Remove what a killed writer left behind under our temporary names or those of safetensors."""
    for leftover in [*folder.glob(".*.writing"), *folder.glob(".tmp*")]:
        if leftover.is_file() or leftover.is_symlink():
            leftover.unlink()


def sync_rename(temporary: Path, path: Path, durable: bool = True) -> None:
    """Rename a written file once its bytes are on the disk, with the permissions that any new file has.

    A power cut may take a file that is not `durable`, or leave it empty.
    """
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    if not durable:
        temporary.rename(path)
        return
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, value: Mapping[str, Any], durable: bool = True) -> None:
    """Write a small JSON file with its checksum, atomically; `checksums.read_json` verifies it."""
    temporary = temporary_name(path)
    try:
        temporary.unlink(missing_ok=True)  # never through a link that somebody left there
        temporary.write_text(json.dumps(sealed(value), indent=1) + "\n", encoding="utf-8")
        sync_rename(temporary, path, durable)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
