"""Safe access to files that others may have written: datasets, weights, stores.

Only regular files are opened, so that a FIFO cannot hang a command. Nothing outside the folder that the user named is
opened, neither by `..` nor through a link. Pictures are limited to a few formats, none of which starts another program,
and their size is checked before they are decoded. HDF5 files must contain their arrays.

Links that you made yourself are followed into the folders that the environment variable HOLDFAST_LINKS lists, separated
by colons.
"""

from __future__ import annotations

import errno
import io
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from holdfast.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

LINKS = "HOLDFAST_LINKS"
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""The accepted formats of pictures, by Pillow's names. An EPS would start Ghostscript."""
MOST_PIXELS = 89_478_485
"""The maximum number of pixels of a picture: more take over a quarter of a gigabyte, and Pillow warns."""
MOST_BYTES = 1 << 30
"""The maximum number of bytes of a file that is read into memory as a whole."""


class FileError(UserError):
    """A file that must not be opened: its path, what is wrong with it, and what to do."""

    def __init__(self, path: str | Path, what: str, remedy: str) -> None:
        super().__init__(f"{path}: {what}: {remedy}")
        self.path, self.what, self.remedy = str(path), what, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.what, self.remedy)


class Bounds:
    """The folders in which files may be, after all links are resolved.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "link").symlink_to("/etc")
    >>> Bounds(folder).check(folder / "7.jpg")
    >>> Bounds(folder).check(folder / "link" / "passwd")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    holdfast.files.FileError: .../link/passwd: it leads to /etc/passwd, outside ...
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        # A link as the last part of a further folder is not followed: the user only named the first folder.
        roots = [os.path.realpath(folder) for folder in folders[:1]]
        roots += [f"{os.path.realpath(folder.parent)}/{folder.name}" for folder in folders[1:]]
        self._roots = [*roots, *(os.path.realpath(each) for each in _linked())]
        self._known: set[str] = set()

    def check(self, path: Path) -> None:
        """Raise a FileError for a path that leads outside."""
        parent, name = os.path.split(path)
        if parent in self._known and name != ".." and not path.is_symlink():
            return
        real = Path(os.path.realpath(path))
        if not self._holds(str(real)):
            raise FileError(
                path,
                f"it leads to {real}, outside {self.folders[0]}",
                "copy it there, or, if you made the link yourself, "
                f"set {LINKS}={real if real.is_dir() else real.parent}",
            )
        if self._holds(os.path.realpath(parent)):
            self._known.add(parent)

    def _holds(self, real: str) -> bool:
        return any(real == root or real.startswith(root.rstrip("/") + "/") for root in self._roots)


def _linked() -> list[str]:
    return [folder for folder in os.environ.get(LINKS, "").split(os.pathsep) if Path(folder).is_absolute()]


def bounds(folder: Path, *beside: str) -> Bounds:
    """The bounds of a dataset or of weights: the folder itself, and the folder of the hub's cache that it links to.

    `beside` names sibling folders that also belong to it.
    """
    cache = [folder.parent.parent / "blobs"] if folder.parent.name == "snapshots" else []
    return Bounds(folder, *(folder.parent / name for name in beside), *cache)


_ACTIVE: ContextVar[Bounds | None] = ContextVar("bounds", default=None)


@contextmanager
def within(limits: Bounds) -> Iterator[None]:
    """Restrict `open_regular` to these bounds."""
    token = _ACTIVE.set(limits)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def refuse_outside(path: Path) -> None:
    """Raise a FileError for a path outside the bounds set by `within`; without bounds, any path may be opened."""
    if (limits := _ACTIVE.get()) is not None:
        limits.check(path)


def refuse_strange(folder: Path) -> None:
    """Refuse a folder with files that lead outside or are not regular files, before a library reads any of them."""
    limits = bounds(folder)
    for path in folder.iterdir():
        if not path.is_dir():
            limits.check(path)
            _need_regular(path, path.stat().st_mode)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file to read bytes; raises an OSError if it does not open, a FileError if it is not regular."""
    refuse_outside(path)
    _need_regular(path, path.stat().st_mode)  # merely opening a device can have effects
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _need_regular(path, os.fstat(number).st_mode)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def open_inside(folder: Path, path: Path) -> io.BufferedReader:
    """Open a regular file in a folder for reading bytes; raises a FileError if a link or `..` leads out of the folder.

    >>> open_inside(Path("/usr/pictures"), Path("/usr/pictures/../secret.txt"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    holdfast.files.FileError: /usr/pictures/../secret.txt: it leads to /usr/secret.txt, outside /usr/pictures: copy ...
    """
    with within(Bounds(folder)):
        return open_regular(path)


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file; raises a FileError if there are more than `most`."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise FileError(path, f"it has more than {most / 1e6:,.1f} MB", "remove it")
    return content


def read_inside(folder: Path, path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file in a folder; raises a FileError if there are more than `most`."""
    with within(Bounds(folder)):
        return read_bytes(path, most)


def _need_regular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not stat.S_ISREG(mode):
        raise FileError(path, "it is a pipe, a socket or a device, not a regular file", "remove it")


def open_own(path: Path, mode: str) -> IO[bytes]:
    """Open one of our own regular files for writing, never through a link that somebody put in its place."""
    flags = {"ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT, "r+b": os.O_RDWR, "a+b": os.O_RDWR | os.O_CREAT}[mode]
    try:
        number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileError(path, "it is a link or a pipe", "remove it") from None
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileError(path, "it is a pipe, a socket or a device, not a regular file", "remove it")
    return os.fdopen(number, mode)


@contextmanager
def open_image(source: Path | bytes) -> Iterator[Image.Image]:
    """Open a picture, from a file or bytes, reading its header but not its pixels.

    Only the formats in `FORMATS` are tried, whatever the file's name; more than `MOST_PIXELS` raise a FileError.

    >>> with open_image(b"P5 2 1 255 ab") as image:
    ...     image.size
    (2, 1)
    """
    from PIL import Image

    name = source if isinstance(source, Path) else "the picture"
    with (
        io.BytesIO(source) if isinstance(source, bytes) else open_regular(source) as file,
        Image.open(file, formats=FORMATS) as image,
    ):
        if image.width * image.height > MOST_PIXELS:
            size = f"{image.width} x {image.height}"
            raise FileError(name, f"it has {size} pixels, more than {MOST_PIXELS:,}", "make it smaller")
        yield image


def load_array(path: Path, mode: Literal["", "r", "c"] = "") -> NDArray[Any]:
    """The array of a `.npy` file: read, or with a `mode` mapped into memory; a ValueError for anything else.

    It holds no objects, for these would be unpickled, and is no larger than its file.
    """
    import numpy as np

    with open_regular(path) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{path.name} is of version {version} of its format")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        try:
            shape, fortran, kind = read(file)
        except (MemoryError, RecursionError):  # a header that is nested too deeply
            raise ValueError(f"{path.name} has no header of an array") from None
        size, start = math.prod(shape) * kind.itemsize, file.tell()
        if kind.hasobject or min(shape, default=0) < 0 or start + size > os.fstat(file.fileno()).st_size:
            raise ValueError(f"{path.name} holds objects, or breaks off")
        if mode:
            return np.memmap(path, kind, mode, start, shape, "F" if fortran else "C")
        return np.frombuffer(bytearray(file.read(size)), kind).reshape(shape, order="F" if fortran else "C")


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file. Use `own_array` to read arrays: others may refer to further files."""
    import h5py  # type: ignore[import-untyped]

    open_regular(path).close()
    with h5py.File(path, "r") as file:
        yield file


def own_array(file: Any, name: str) -> Any | None:
    """An array contained in an HDF5 file; None if there is none, or its values are in other files."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
        return None
    array = file[name]
    return None if array.external or array.is_virtual else array
