"""Images that stay files: a column of paths, decoded by worker processes when a batch asks for them.

This module does not import torch, so that workers start quickly. Pixels are returned in shared memory, without
pickling. Images requested in advance (`prefetch`) are decoded while the caller does something else; others are decoded
on demand.

```
FOLDER/image.path.npy      all paths, one after another, as bytes
FOLDER/image.path_end.npy  where each path ends
FOLDER/image.digest.npy    a hash of each file's content
FOLDER/image.fit.npy       size, shorter and longest side, 0 for none; the step of sides if there is one
```
"""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.data.decoding import ImageFit, StoredImage
from holdfast.data.images import decode, header_size
from holdfast.errors import RunError, UserError
from holdfast.files import open_regular
from holdfast.processes import may_spawn, worker_pool
from holdfast.types import Array

AHEAD = 2
"""How many batches may be decoded ahead of their use; one more drops the oldest."""
_CHUNK, _WINDOW = 8, 1024
_MEMORY = Path("/dev/shm")

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ImageFileColumn:
    """A column of image files: row r shows image `index[r]`, or several images if the index has two dimensions.

    Rows have the form of a table of decoded images: uint8, channels first. With `workers` 0, they are decoded
    in this process.
    """

    paths: NDArray[np.uint8]
    ends: Numbers
    digests: NDArray[np.uint8]
    fit: ImageFit
    index: Numbers | None = None
    workers: int = 1
    _ahead: deque[_DecodeRequest] = field(default_factory=deque, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.ends if self.index is None else self.index)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image."""
        return self.fit.shape(())

    @property
    def row_bytes(self) -> int:
        """The bytes of a decoded row, which count for a memory that keeps it, as for any other table."""
        images = 1 if self.index is None else int(np.prod(self.index.shape[1:]))
        return images * int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """The bytes of the column: paths, not pixels."""
        arrays = (self.paths, self.ends, self.digests, *(() if self.index is None else (self.index,)))
        return sum(array.nbytes for array in arrays)

    def path(self, image: int) -> Path:
        """The file of an image."""
        return Path(os.fsdecode(self.paths[self.ends[image - 1] if image else 0 : self.ends[image]].tobytes()))

    def rows(self, rows: Numbers) -> NDArray[np.uint8]:
        """The images of some rows, in order: those decoded ahead, and the others decoded now."""
        wanted = rows if self.index is None else self.index[rows]
        images, places = np.unique(wanted, return_inverse=True)
        early = max(self._ahead, key=lambda request: request.has(images).sum(), default=None)
        there = np.zeros(len(images), np.bool_) if early is None else early.has(images)
        pixels = np.empty((len(images), *self.shape), np.uint8)
        late = None if there.all() else self._request(images[~there])  # before waiting for anything
        if early is not None and there.any():
            self._ahead.remove(early)
            pixels[there] = early.take(images[there])
        if not there.all():
            pixels[~there] = late.take(late.images) if late else self._decode_here(images[~there])
        return pixels[places.reshape(-1)].reshape(*wanted.shape, *self.shape)

    def prefetch(self, rows: Numbers) -> None:
        """Start decoding rows that will be needed soon. Without workers, this does nothing."""
        if self.workers == 0 or len(rows) == 0 or not may_spawn():
            return
        images = np.unique(rows if self.index is None else self.index[rows])
        if any(np.array_equal(images, request.images) for request in self._ahead):
            return
        while len(self._ahead) >= AHEAD:
            self._ahead.popleft().release()
        if request := self._request(images):
            self._ahead.append(request)

    def contents(self) -> list[Array]:
        """A hash of everything that affects values: the files' content, the resizing, and the assignment of images to
        rows.
        """
        fit = np.array([number or 0 for number in self.fit.numbers()])
        return [self.digests, fit, *(() if self.index is None else (self.index,))]

    def _decode_here(self, images: Numbers) -> NDArray[np.uint8]:
        pixels = np.zeros((len(images), *self.shape), np.uint8)
        _tell(_decode_into(pixels, self._paths(images), self.fit))
        return pixels

    def _request(self, images: Numbers) -> _DecodeRequest | None:
        """The request, or None without workers or shared memory."""
        memory = _reserve(len(images) * int(np.prod(self.shape))) if self.workers and may_spawn() else None
        return None if memory is None else _DecodeRequest(images, self._paths(images), self.fit, memory, self.workers)

    def _paths(self, images: Numbers) -> list[Path]:
        return [self.path(image) for image in images.tolist()]


def survey(
    folder: Path,
    pictures: Sequence[StoredImage],
    fit: ImageFit,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[int, str]:
    """Write the column of image files, and `image_size.npy` if images keep their proportions, into a folder.

    Each file is read and hashed, and its header is checked; its pixels are decoded only when they are used. Files that
    are missing or are not images are returned: their numbers, and what is wrong.

    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (8, 6), "red").save(folder / "red.png")
    >>> survey(folder, [StoredImage(folder / "red.png"), StoredImage(Path("lost.jpg"))], ImageFit(size=2))
    {1: 'lost.jpg: no such image'}
    >>> open_files(folder, workers=0).rows(np.array([0, 0]))[:, :, 0, 0].tolist()
    [[255, 0, 0], [255, 0, 0]]
    """
    if fit.size is None and fit.longest is None:
        raise UserError("images that stay files need an image_size, or a longest side: rows have one size")
    if any(picture.drawing is not None or not isinstance(picture.source, Path) for picture in pictures):
        raise UserError(
            "only plain image files can stay files: decode arrays and images with drawn boxes (decode=True)"
        )
    files = [Path(picture.source) for picture in pictures if isinstance(picture.source, Path)]
    digests, sizes = np.zeros((len(files), 16), np.uint8), np.zeros((len(files), 2), np.int32)
    bad: dict[int, str] = {}
    with ThreadPoolExecutor(max(workers, 1)) as threads:  # hashing and reading release the GIL
        for start in range(0, len(files), _WINDOW):
            found = threads.map(functools.partial(_look, fit=fit), files[start : start + _WINDOW])
            for number, seen in enumerate(found, start):
                if isinstance(seen, str):
                    bad[number] = seen
                else:
                    digests[number], sizes[number] = np.frombuffer(seen[0], np.uint8), seen[1]
            progress(min(start + _WINDOW, len(files)), len(files))
    names = [os.fsencode(file.absolute()) for file in files]
    np.save(folder / "image.path.npy", np.frombuffer(b"".join(names), np.uint8))
    np.save(folder / "image.path_end.npy", np.cumsum([len(name) for name in names], dtype=np.int64))
    np.save(folder / "image.digest.npy", digests)
    np.save(folder / "image.fit.npy", np.array([number or 0 for number in fit.numbers()]))
    if fit.longest is not None:
        np.save(folder / "image_size.npy", sizes)
    return bad


def open_files(folder: Path, workers: int = 1) -> ImageFileColumn:
    """Open the column that `survey` wrote: paths are mapped into memory, and no image is opened.

    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("L", (8, 6)).save(folder / "grey.png")
    >>> survey(folder, [StoredImage(folder / "grey.png")], ImageFit(size=2))
    {}
    >>> files = open_files(folder)
    >>> len(files), files.path(0).name, files.row_bytes
    (1, 'grey.png', 12)
    """
    if workers < 0:
        raise UserError(f"images are decoded by 0 workers (in this process) or more, not by {workers}")
    paths, ends, digests, fit = (
        np.load(folder / f"image.{name}.npy", mmap_mode="r") for name in ("path", "path_end", "digest", "fit")
    )
    if len(ends) != len(digests) or len(paths) != (ends[-1] if len(ends) else 0):
        raise UserError(f"{folder} is broken: its image paths are not all there; prepare it again")
    size, shorter, longest, *step = (int(number) or None for number in fit)
    rows = folder / "image.row.npy"
    index = np.load(rows, mmap_mode="r") if rows.exists() else None
    return ImageFileColumn(
        paths, ends, digests, ImageFit(size, shorter, longest, step[0] or 1 if step else 1), index, workers
    )


class _DecodeRequest:
    """Images that are being decoded into the request's own shared memory, which is freed with it."""

    def __init__(
        self, images: Numbers, paths: Sequence[Path], fit: ImageFit, memory: SharedMemory, workers: int
    ) -> None:
        self.images, self.memory = images, memory
        self.shape = (len(images), *fit.shape(()))
        self.futures: list[Future[dict[int, str]]] = []
        self.release = weakref.finalize(self, _release, self.memory, self.futures)
        chunk = max(1, min(_CHUNK, -(-len(paths) // (2 * workers))))
        try:
            for start in range(0, len(paths), chunk):
                work = (self.memory.name, self.shape, start, paths[start : start + chunk], fit)
                self.futures.append(_pool(workers, os.getpid()).submit(_decode_rows, *work))
        except BrokenProcessPool:
            raise _ended() from None

    def has(self, images: Numbers) -> NDArray[np.bool_]:
        """Which of these images are in the request."""
        return np.isin(images, self.images)

    def take(self, images: Numbers) -> NDArray[np.uint8]:
        """Some of the images, in this order, once they are decoded; the request is then consumed."""
        bad: dict[int, str] = {}
        try:
            for future in self.futures:
                bad.update(future.result())
            places = np.searchsorted(self.images, images)
            asked = set(places.tolist())
            _tell({place: text for place, text in bad.items() if place in asked})
            return self._table()[places]
        except BrokenProcessPool:
            raise _ended() from None
        finally:
            self.release()

    def _table(self) -> NDArray[np.uint8]:
        return np.ndarray(self.shape, np.uint8, self.memory.buf)


def _reserve(size: int) -> SharedMemory | None:
    """Allocate shared memory in advance: writing beyond a small /dev/shm would kill the process silently."""
    memory = SharedMemory(create=True, size=size)
    if not _MEMORY.is_dir():
        return memory
    try:
        number = os.open(_MEMORY / memory.name, os.O_RDWR)
        try:
            os.posix_fallocate(number, 0, size)
        finally:
            os.close(number)
    except OSError:
        memory.close()
        memory.unlink()
        warnings.warn(
            f"{_MEMORY} has no room for a batch of {size / 1e6:.0f} MB: it is decoded without workers, or not ahead of "
            "its use; enlarge it, or take smaller batches",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return memory


def _release(memory: SharedMemory, futures: Sequence[Future[dict[int, str]]]) -> None:
    wait([future for future in futures if not future.cancel()])  # a running chunk is a few images
    memory.close()
    memory.unlink()


@functools.cache
def _pool(workers: int, process: int) -> ProcessPoolExecutor:
    """The workers of all columns of a process. They are spawned: a fork would copy locks of the caller's threads."""
    return worker_pool(workers)


def _ended() -> RunError:
    _pool.cache_clear()  # the next request starts new workers
    return RunError("a process that decodes images ended early: give it more memory, or workers=0")


def _decode_rows(name: str, shape: tuple[int, ...], start: int, paths: Sequence[Path], fit: ImageFit) -> dict[int, str]:
    memory = SharedMemory(name)
    try:
        table: NDArray[np.uint8] = np.ndarray(shape, np.uint8, memory.buf)
        bad = _decode_into(table[start : start + len(paths)], paths, fit)
        del table
    finally:
        memory.close()
    return {start + place: text for place, text in bad.items()}


def _decode_into(table: NDArray[np.uint8], paths: Sequence[Path], fit: ImageFit) -> dict[int, str]:
    bad: dict[int, str] = {}
    for place, path in enumerate(paths):
        try:
            pixels = decode(path, fit.size, fit.shorter, fit.longest, step=fit.step)
        except UserError as error:
            bad[place] = str(error)
            continue
        height, width, _ = pixels.shape
        table[place, :, :height, :width] = pixels.transpose(2, 0, 1)
    return bad


def _tell(bad: dict[int, str]) -> None:
    if bad:
        others = f" (and {len(bad) - 1} more in this batch)" if len(bad) > 1 else ""
        raise UserError(bad[min(bad)] + others)


def _look(file: Path, fit: ImageFit) -> tuple[bytes, tuple[int, int]] | str:
    """The hash of a file and its height and width after resizing, or what is wrong with it."""
    try:
        width, height = header_size(file, fit.size, fit.shorter, fit.longest, fit.step)
        with open_regular(file) as content:
            digest = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16))
    except UserError as error:
        return str(error)
    except OSError as error:
        return f"{file} cannot be read ({(error.strerror or 'no reason given').lower()})"
    return digest.digest(), (height, width)
