"""MNIST: digits of 28x28 pixels in IDX files, packed by gzip or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, open_file
from holdfast.datasets.formats.files import first_folder
from holdfast.types import Example

VERSION = 1
_FILES = {"train": "train", "test": "t10k"}
_REMEDY = "download it again"
_LARGEST = 1 << 28


def _root(folder: Path) -> Path:
    names = ("train-images-idx3-ubyte", "train-images.idx3-ubyte", "t10k-images-idx3-ubyte")
    return first_folder(folder, ["MNIST/raw", "raw", "data"], [name + end for name in names for end in ("", ".gz")])


def _idx(folder: Path, split: str, kind: str, dimensions: int) -> tuple[Path, NDArray[np.uint8]]:
    """An array of bytes in LeCun's format: a magic number, the sizes, the values."""
    stem = f"{_FILES[split]}-{kind}"
    names = [f"{stem}{dot}idx{dimensions}-ubyte{end}" for end in ("", ".gz") for dot in ("-", ".")]
    path = first_file(_root(folder), names, "download the four files of MNIST there")
    with open_file(path) as file:
        content = file.read(_LARGEST)
    try:
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        sizes = np.frombuffer(content, ">u4", dimensions, 4).astype(int).tolist()
        if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != 4 + 4 * dimensions + int(np.prod(sizes)):
            raise ValueError("its length does not fit its sizes")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(Problem(str(path), "", f"it is not an IDX file of bytes ({error!s:.80})", _REMEDY)) from None
    return path, np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(sizes)


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path, images = _idx(folder, split, "images", 3)
    labels = _idx(folder, split, "labels", 1)[1]
    if len(labels) != len(images):
        raise DataError(Problem(str(path), "", f"it has {len(images)} images for {len(labels)} labels", _REMEDY))
    for row, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        if label > 9:
            reading.bad(path, f"image {row}", f"its label {label} is not a digit", _REMEDY)
            continue
        yield Example(f"{split}-{row}", label, (image[:, :, None],), extra={"class_name": str(label)})


def _present(folder: Path) -> bool:
    return any(
        (_root(folder) / f"{name}-images{dot}idx3-ubyte{end}").is_file()
        for name in _FILES.values()
        for dot in ("-", ".")
        for end in ("", ".gz")
    )


DATASET = Dataset(
    name="mnist",
    splits=("train", "test"),
    read=_read,
    present=_present,
    counts={"train": 60_000, "test": 10_000},
    classes=lambda folder: [str(digit) for digit in range(10)],
)
