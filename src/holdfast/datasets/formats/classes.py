"""Pictures that lists assign to classes: the common part of the readers of labelled photographs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, Reading, open_file
from holdfast.datasets.formats.files import names_in
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

PICTURES = (".jpg", ".jpeg", ".png")
_LARGEST_MAT = 1 << 26
AGAIN = "unpack the official download again"


def readable(name: str) -> str:
    """The name of a class as words.

    >>> readable("apple_pie")
    'apple pie'
    """
    return " ".join(name.replace("_", " ").split())


def listed(
    path: Path,
    rows: Iterable[tuple[int, str, str]],
    numbers: Mapping[str, int],
    names: Sequence[str],
    pictures: ImageFiles,
    folders: Sequence[str],
    reading: Reading,
) -> Iterator[Example]:
    """The examples of a list whose rows have a number, the name of a picture without its folder, and a class.

    `numbers` has the number of each class as the list has it, and `names` the name of each number.
    """
    for row, name, kind in rows:
        try:
            if kind not in numbers:
                raise ValueError(f"its class {kind!r:.60} is not one of the {len(names)} classes")
            image = pictures.need(name, folders)
        except ValueError as error:
            reading.bad(path, f"line {row}", str(error), AGAIN)
            continue
        target = numbers[kind]
        yield Example(name.rpartition(".")[0] or name, target, (image,), extra={"class_name": names[target]})


def in_folders(root: Path, kinds: Sequence[str], names: Sequence[str], reading: Reading) -> Iterator[Example]:
    """The examples of a folder for each class."""
    for target, kind in enumerate(kinds):
        files = names_in(root / kind)
        if not files:
            reading.bad(root / kind, "", "it has no pictures", AGAIN)
        for name in files:
            if not name.lower().endswith(PICTURES):
                reading.bad(root / kind / name, "", "its name is not that of a picture", "remove it")
                continue
            extra = {"class_name": names[target]}
            yield Example(f"{kind}/{name.rpartition('.')[0]}", target, (root / kind / name,), extra=extra)


def folders_in(root: Path) -> list[str]:
    """The names of the folders in a folder, sorted."""
    return [name for name in names_in(root) if (root / name).is_dir()]


def read_mat(path: Path, name: str) -> Any:
    """One variable of a MATLAB file, without empty dimensions."""
    open_file(path).close()  # otherwise scipy's error for a file without read permission would look like damage
    try:
        if path.stat().st_size > _LARGEST_MAT:
            raise ValueError("it is far too large")
        import numpy as np
        from scipy.io import loadmat

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.atleast_1d(loadmat(str(path), squeeze_me=True)[name])
    except Exception as error:  # a broken .mat file can fail in any way inside scipy
        what = f"it has no readable {name!r} ({type(error).__name__}: {error!s:.80})"
        raise DataError(Problem(str(path), "", what, AGAIN)) from None
