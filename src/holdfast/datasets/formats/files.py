"""File names: where an archive was unpacked, what a folder contains, which lines a list has."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.datasets.base import DataError, Problem, cannot_open, read_text
from holdfast.files import refuse_outside


def first_folder(folder: Path, names: Iterable[str], inside: Iterable[str]) -> Path:
    """The folder into which an archive was unpacked: the first that contains one of these files or folders.

    If there is none, the folder itself, so that an error names what is missing there.

    >>> first_folder(Path("nowhere"), ["CLEVR_v1.0"], ["questions"])
    PosixPath('nowhere')
    """
    wanted = tuple(inside)
    for root in (folder, *(folder / name for name in names)):
        if any((root / name).exists() for name in wanted):
            return root
    return folder


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted, without hidden ones; raises an error if the folder does not exist.

    >>> names_in(Path("nowhere"))
    Traceback (most recent call last):
    holdfast.datasets.base.DataError: nowhere: no such folder: unpack the official download there
    """
    refuse_outside(folder)
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208 (names)
    except FileNotFoundError:
        what = "no such folder"
        raise DataError(Problem(str(folder), "", what, "unpack the official download there")) from None
    except OSError as error:
        raise cannot_open(folder, error) from None


def lines_of(path: Path) -> list[str]:
    """The lines of a text file, with either line ending, without empty ones at its end.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.lst"
    >>> _ = path.write_bytes(b"0\\r\\n1\\n\\n")
    >>> lines_of(path)
    ['0', '1']
    """
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
