"""The images whose features are computed: the files of a folder, or those of a prepared table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from holdfast.data.images import decode, header_size
from holdfast.data.prepared import open_prepared
from holdfast.data.table import Shared
from holdfast.errors import UserError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


@dataclass(frozen=True)
class ShownImages:
    """Some images: pixels (rows, 3, height, width) of bytes, ids, and widths and heights as they were published."""

    pixels: NDArray[np.uint8]
    ids: Sequence[str]
    sizes: Sequence[tuple[int, int]]


class FolderImages:
    """The image files under a folder."""

    def __init__(self, folder: Path, side: int) -> None:
        self.folder, self.side = folder, side
        self.paths = sorted(_image_files(folder))
        if not self.paths:
            raise UserError(f"{folder} contains no images ({', '.join(SUFFIXES)}): specify the folder of the images")
        self.ids = np.array([path.relative_to(folder).as_posix() for path in self.paths], np.str_)

    def __len__(self) -> int:
        return len(self.paths)

    def state(self, row: int) -> bytes:
        """A fingerprint that changes if an image changes."""
        state = self.paths[row].stat()
        when = f"{state.st_mtime_ns}/{state.st_ctime_ns}"
        return f"{self.ids[row]}/{state.st_size}/{when}/{self.side};".encode("utf-8", "surrogateescape")

    def part(self, rows: range) -> FolderPart:
        """Some images, for another process."""
        return FolderPart(tuple(self.paths[rows.start : rows.stop]), tuple(self.ids[rows.start : rows.stop]), self.side)

    def shown(self, rows: range) -> ShownImages:
        """Some images, decoded."""
        return self.part(rows)()


@dataclass(frozen=True)
class FolderPart:
    """Some files, to be decoded."""

    paths: tuple[Path, ...]
    ids: tuple[str, ...]
    side: int

    def __call__(self) -> ShownImages:
        """Decode them."""
        pixels = np.stack([decode(path, self.side) for path in self.paths])
        sizes = [header_size(path, None) for path in self.paths]
        return ShownImages(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)), self.ids, sizes)


class TableImages:
    """The distinct images of a prepared table."""

    def __init__(self, folder: Path) -> None:
        self.folder, prepared = folder, open_prepared(folder)
        column = prepared.table.inputs.get("image")
        if isinstance(column, Shared):
            index = column.index.reshape(len(column), -1).numpy()
            first = np.full(len(column.values), -1)
            shown = np.repeat(np.arange(len(index)), index.shape[1])
            first[index.flatten()[::-1]] = shown[::-1]  # the first of several examples is written last
            self.values, ids = column.values, ["" if row < 0 else str(prepared.ids[row]) for row in first]
        elif isinstance(column, Tensor):
            self.values, ids = column, [str(name) for name in prepared.ids]
        else:
            raise UserError(f"{folder} has no decoded images: specify the folder of the images instead")
        self.ids, self.fingerprint = np.array(ids, np.str_), prepared.fingerprint

    def __len__(self) -> int:
        return len(self.values)

    def state(self, row: int) -> bytes:
        """A fingerprint that changes if the table changes."""
        return f"{row}/{self.fingerprint};".encode()

    def part(self, rows: range) -> TablePart:
        """Some images, for another process."""
        return TablePart(self.folder, rows)

    def shown(self, rows: range) -> ShownImages:
        """Some images."""
        pixels = self.values[rows.start : rows.stop].numpy()
        high, wide = pixels.shape[-2:]
        return ShownImages(pixels, self.ids[rows.start : rows.stop].tolist(), [(wide, high)] * len(pixels))


@dataclass(frozen=True)
class TablePart:
    """Some images of a table, to be read."""

    folder: Path
    rows: range

    def __call__(self) -> ShownImages:
        """Read them."""
        return _table(self.folder).shown(self.rows)


@cache
def _table(folder: Path) -> TableImages:
    return TableImages(folder)


Images: TypeAlias = FolderImages | TableImages


def open_images(folder: Path, side: int) -> Images:
    """The images of a folder, resized to a side, or those of a prepared table."""
    return TableImages(folder) if (folder / "index.json").exists() else FolderImages(folder, side)


def _image_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise UserError(f"the folder {folder} does not exist: specify the folder of the images")
    for here, _, names in os.walk(folder):
        yield from (Path(here, name) for name in names if name.lower().endswith(SUFFIXES))
