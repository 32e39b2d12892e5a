"""CIFAR-100, the Python version: pickles, read without executing anything that they request.

The target is the fine class (0 to 99, alphabetical); `extra` has the coarse class and the official file name. Keys may
be bytes (Python 2) or strings. The hub's columns are read too; they have no file names.
"""

from __future__ import annotations

import io
import math
import pickle
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, open_file
from holdfast.datasets.formats.fields import label
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.hub import Hub, Row, class_number, picture, with_hub
from holdfast.types import Example

VERSION = 1
_REMEDY = "download cifar-100-python.tar.gz again, from a source that you trust"


class _Array:
    """Replaces a NumPy array (or its type) in a pickle: stores its arguments, and does nothing else."""

    def __init__(self, *arguments: object) -> None:
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Type(_Array):
    """Replaces a NumPy dtype: only its name is kept."""

    def __init__(self, *arguments: object) -> None:
        self.name = arguments[0] if arguments else None


def _encode(text: object = "", encoding: object = "latin1") -> bytes:
    """Replaces `_codecs.encode`, which Python 3 uses to write bytes in old protocols."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("it encodes something that is not text")
    return text.encode("latin1")


def _no_bytes(*arguments: object) -> bytes:
    """Replaces `bytes()`, which Python 3 uses to write the empty string in old protocols."""
    if arguments:
        raise pickle.UnpicklingError("it makes bytes of something")
    return b""


_STANDINS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
    ("builtins", "bytes"): _no_bytes,
}


class _Unpickler(pickle._Unpickler):
    """Finds only our replacements. Python's version is used because the one in C trusts sizes declared in a file."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STANDINS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR file needs")
        return _STANDINS[module, name]


def _load(path: Path) -> dict[str, Any]:
    """The dictionary of a CIFAR file, with its keys as strings."""
    with open_file(path) as file:
        content = file.read()
    try:
        value = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        if not isinstance(value, dict):
            raise ValueError(f"it holds a {type(value).__name__}, not a dictionary")
        return {
            key.decode("latin1")
            if isinstance(key, bytes)
            else key
            if isinstance(key, str)
            else reprlib.repr(key): value[key]
            for key in value
        }
    except Exception as error:  # a broken pickle can fail in any way
        raise DataError(Problem(str(path), "", f"it is not a CIFAR pickle ({error!s:.100})", _REMEDY)) from None


def _pixels(path: Path, value: Any) -> NDArray[np.uint8]:
    """The rows of images, built by this code from the bytes in the file."""
    try:
        if not isinstance(value, _Array) or not isinstance(value.state, tuple) or len(value.state) != 5:
            raise ValueError("its data is not an array")
        _, shape, kind, fortran, content = value.state
        name = kind.name if isinstance(kind, _Type) else None
        if name not in ("u1", b"u1", "uint8", b"uint8") or not isinstance(content, bytes):
            raise ValueError("its data is not an array of bytes")
        if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(side, int) for side in shape):
            raise ValueError("its data has no rows")
        if shape[1] != 3072 or math.prod(shape) != len(content):
            raise ValueError(f"its data has the shape {reprlib.repr(shape)} and {len(content)} bytes, not rows of 3072")
    except ValueError as error:
        raise DataError(Problem(str(path), "", str(error), _REMEDY)) from None
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran is True else "C")


def _column(path: Path, content: dict[str, Any], name: str, count: int) -> list[Any]:
    value = content.get(name)
    if not isinstance(value, list) or len(value) != count:
        found = f"{len(value)}" if isinstance(value, list) else "no"
        raise DataError(Problem(str(path), "", f"it has {found} {name} for {count} images", _REMEDY))
    return value


def _text(value: Any) -> str:
    if not isinstance(value, bytes | str):
        raise ValueError(f"its name is {reprlib.repr(value)}, not text")
    return value.decode("latin1") if isinstance(value, bytes) else value


def _names(path: Path) -> list[str]:
    """The names of the fine classes, if the file `meta` exists."""
    if not path.is_file():
        return []
    value = _load(path).get("fine_label_names")
    try:
        if not isinstance(value, list) or not value:
            raise ValueError("it has no fine_label_names")
        return [_text(name) for name in value]
    except ValueError as error:
        raise DataError(Problem(str(path), "", str(error), _REMEDY)) from None


def _root(folder: Path) -> Path:
    return first_folder(folder, ["cifar-100-python"], ["meta"])


def _present(folder: Path) -> bool:
    root = _root(folder)
    return (root / "meta").is_file() and any((root / split).is_file() for split in ("train", "test"))


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    path = first_file(root, [split, f"cifar-100-python/{split}"], "unpack cifar-100-python.tar.gz there")
    names = _names(path.parent / "meta")
    content = _load(path)
    pixels = _pixels(path, content.get("data"))
    count = len(pixels)
    fine, coarse = _column(path, content, "fine_labels", count), _column(path, content, "coarse_labels", count)
    files = _column(path, content, "filenames", count)
    for row in range(count):
        try:
            target, group = label(fine[row], len(names) or 100), label(coarse[row], 20)
            extra = {"coarse_label": group, "filename": _text(files[row])}
        except ValueError as error:
            reading.bad(path, f"image {row}", str(error), _REMEDY)
            continue
        if names:
            extra["fine_label_name"] = names[target]
        image = np.ascontiguousarray(pixels[row].reshape(3, 32, 32).transpose(1, 2, 0))
        yield Example(f"{split}-{row}", target, (image,), extra=extra)


def _from_hub(row: Row, split: str, number: int, folder: Path) -> Example:
    target = class_number(row, "fine_label", 100, hidden=False)
    extra = {"coarse_label": class_number(row, "coarse_label", 20, hidden=False)}
    image = picture(row, "img", folder)
    if not isinstance(image, Path) and image.shape != (32, 32, 3):
        raise ValueError(f"its picture is {image.shape[1]} x {image.shape[0]}, not 32 x 32")
    return Example(f"{split}-{number}", target, (image,), extra=extra)


_OFFICIAL = Dataset(
    name="cifar100",
    splits=("train", "test"),
    read=_read,
    present=_present,
    counts={"train": 50_000, "test": 10_000},
    classes=lambda folder: [name.replace("_", " ") for name in _names(_root(folder) / "meta")],
)

DATASET = with_hub(_OFFICIAL, Hub(("img", "fine_label", "coarse_label"), _from_hub, {}))
