"""An image table on disk, filled by worker processes. No torch here: a worker starts in a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.data.images import Drawing, Source, decode
from holdfast.errors import UserError
from holdfast.processes import may_spawn, working

VERSION = 1
"""Raise it if a picture file gives different pixels: fingerprints do not cover pictures decoded during training."""
SPAWN = 0.5
"""The seconds that workers take to start: if they would save less, this process decodes everything."""
_CHUNK = 32


@dataclass(frozen=True)
class StoredImage:
    """An image to be stored: its source, and what is drawn into it."""

    source: Source
    drawing: Drawing | None = None


@dataclass(frozen=True)
class ImageFit:
    """How images are resized for a table: to (size, size); or by their shorter and longest sides, placed in the upper
    left corner of a black (longest, longest), with sides that are multiples of `step`; or, if the first three are None,
    not at all, when all have one size.
    """

    size: int | None = None
    shorter: int | None = None
    longest: int | None = None
    step: int = 1

    def __post_init__(self) -> None:
        if self.shorter is not None and self.longest is None:
            raise UserError("a shorter side needs a longest side as well: the table's images have one size")

    def numbers(self) -> list[int | None]:
        """The sides, and the step if there is one."""
        return [self.size, self.shorter, self.longest, *([self.step] if self.step > 1 else [])]

    def shape(self, pictures: Sequence[StoredImage]) -> tuple[int, int, int]:
        """The shape of a row, channels first; if no size is set, that of the first picture that can be decoded."""
        side = self.size or (self.longest and max(self.step, self.longest // self.step * self.step))
        if side is not None:
            return 3, side, side
        for picture in pictures:
            try:
                height, width, _ = decode(picture.source, None).shape
            except UserError:
                continue
            return 3, height, width
        raise UserError(f"none of {len(pictures)} images can be decoded: download them again")


def fill(
    images: Path,
    sizes: Path,
    pictures: Sequence[StoredImage],
    fit: ImageFit,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[int, str]:
    """Decode the pictures into the rows of two existing `.npy` files: pixels, and height and width.

    Each worker writes its rows in place, so the order is kept and no pixels travel between processes. Pictures that
    cannot be decoded are left black, and returned by number with the reason.

    >>> import tempfile
    >>> images, sizes = (Path(tempfile.mkdtemp()) / name for name in ("image.npy", "image_size.npy"))
    >>> np.save(images, np.zeros((2, 3, 4, 4), np.uint8)); np.save(sizes, np.zeros((2, 2), np.int32))
    >>> white = StoredImage(np.full((8, 6, 3), 255, np.uint8))
    >>> fill(images, sizes, [white, StoredImage(Path("lost.jpg"))], ImageFit(longest=4))
    {1: 'lost.jpg: no such image'}
    >>> np.load(sizes).tolist(), int(np.load(images)[0].sum()) == 4 * 3 * 3 * 255
    ([[4, 3], [0, 0]], True)
    """
    bad: dict[int, str] = {}
    done = 0
    for found, count in _map(images, sizes, pictures, fit, workers):
        bad.update(found)
        done += count
        progress(done, len(pictures))
    return bad


def _map(
    images: Path, sizes: Path, pictures: Sequence[StoredImage], fit: ImageFit, workers: int
) -> Iterator[tuple[dict[int, str], int]]:
    chunks = [(start, pictures[start : start + _CHUNK]) for start in range(0, len(pictures), _CHUNK)]
    workers = workers if may_spawn() else 1
    began, done = time.monotonic(), 0
    for start, chunk in chunks:
        yield _fill_rows(images, sizes, start, chunk, fit), len(chunk)
        done += len(chunk)
        left = (time.monotonic() - began) / done * (len(pictures) - done)
        if left * (1 - 1 / max(workers, 1)) > SPAWN:
            break
    if done == len(pictures):
        return
    chunks = chunks[done // _CHUNK :]
    with working(workers, "a process that decodes images ended early: give it more memory, or workers=1") as pool:
        # A window of chunks in flight: arrays that wait to be sent would otherwise all be copied at once.
        waiting = []
        for start, chunk in chunks:
            waiting.append((pool.submit(_fill_rows, images, sizes, start, chunk, fit), len(chunk)))
            if len(waiting) > 4 * workers:
                future, count = waiting.pop(0)
                yield future.result(), count
        for future, count in waiting:
            yield future.result(), count


def _fill_rows(images: Path, sizes: Path, start: int, pictures: Sequence[StoredImage], fit: ImageFit) -> dict[int, str]:
    table = np.load(images, mmap_mode="r+")
    shapes = np.load(sizes, mmap_mode="r+")
    bad: dict[int, str] = {}
    for row, picture in enumerate(pictures, start):
        try:
            pixels = decode(picture.source, fit.size, fit.shorter, fit.longest, picture.drawing, fit.step)
        except UserError as error:
            bad[row] = str(error)
            continue
        height, width, _ = pixels.shape
        if fit.longest is None and (height, width) != table.shape[2:]:
            name = picture.source if isinstance(picture.source, Path) else f"image {row}"
            bad[row] = f"{name} is {width} x {height}, not {table.shape[3]} x {table.shape[2]}: give an image_size"
            continue
        table[row, :, :height, :width] = pixels.transpose(2, 0, 1)
        shapes[row] = height, width
    return bad
