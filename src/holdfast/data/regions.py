"""Region features: the content of each box of each image, stored once for all examples that share the image.

They come from official HDF5 and TSV files (`datasets/region_features.py`), or are computed by a benchmark. Boxes keep
their order.

```
FOLDER/regions.npy   (images, boxes, width) float16, zeros where an image has fewer boxes
       boxes.npy     (images, boxes, 4) float32: corners, as shares of the image's sides
       count.npy     (images,) the number of boxes
       id.npy        (images,) the images' ids
       files.json    the checksums of all four
```
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast import checksums
from holdfast.data.table import Shared
from holdfast.errors import UserError

VERSION = 1
BOXES = 36
"""The maximum number of boxes per image, unless a benchmark specifies it."""
ImageRegions: TypeAlias = tuple[str, NDArray[Any], NDArray[np.float32]]
"""An image's id, its features (boxes, width) and its boxes (boxes, 4)."""
_ALIKE = "use files from a single detector"


@dataclass(frozen=True)
class Regions:
    """The memory-mapped regions of images."""

    values: Tensor
    boxes: Tensor
    counts: Tensor
    ids: NDArray[np.str_]

    @property
    def shape(self) -> tuple[int, int]:
        """The maximum number of boxes per image, and the width of a feature, as in `types.Inputs`."""
        return self.values.shape[1], self.values.shape[2]

    def has(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Which images have regions: a few are missing from the official files."""
        return np.isin(np.asarray(ids, np.str_), self.ids)

    def columns(self, ids: Sequence[str] | Sequence[Sequence[str]]) -> dict[str, Shared]:
        """The columns of a table with one image per row, or with several; the features themselves are not copied.

        >>> values, boxes, counts = torch.tensor([[[0.0]], [[1.0]]]), torch.zeros(2, 1, 4), torch.ones(2)
        >>> regions = Regions(values, boxes, counts, np.array(["7", "9"]))
        >>> regions.columns(["9", "9", "7"])["regions"].rows(torch.arange(3)).flatten().tolist()
        [1.0, 1.0, 0.0]
        >>> regions.columns([("9", "7"), ("7", "7")])["regions"].rows(torch.arange(2)).flatten(1).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
        """
        rows = {name: row for row, name in enumerate(self.ids.tolist())}
        try:
            index = torch.tensor([rows[row] if isinstance(row, str) else [rows[name] for name in row] for row in ids])
        except KeyError as error:
            raise UserError(
                f"no features for the image {error.args[0]!r}: provide the feature files of all images"
            ) from None
        named = {"regions": self.values, "boxes": self.boxes, "region_count": self.counts}
        return {name: Shared(values, index) for name, values in named.items()}

    def stretch(self, ids: Iterable[str]) -> Regions:
        """The rows from the first of these images to the last, so that a table contains no more than it needs.

        >>> values, names = torch.arange(4.0).view(4, 1, 1), np.array(["a", "b", "c", "d"])
        >>> regions = Regions(values, torch.zeros(4, 1, 4), torch.ones(4), names)
        >>> regions.stretch(["c", "b"]).values.flatten().tolist()
        [1.0, 2.0]
        """
        (rows,) = np.isin(self.ids, np.array(list(ids), np.str_)).nonzero()
        part = slice(rows.min(), rows.max() + 1) if len(rows) else slice(0)
        return Regions(self.values[part], self.boxes[part], self.counts[part], self.ids[part])


def grid_cells(down: int, across: int) -> NDArray[np.float32]:
    """The corners of a map's cells, row by row, as shares of the sides.

    >>> grid_cells(1, 2).tolist()
    [[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]]
    """
    top, left = np.meshgrid(np.arange(down), np.arange(across), indexing="ij")
    corners = np.stack([left / across, top / down, (left + 1) / across, (top + 1) / down], 2)
    return corners.reshape(-1, 4).astype(np.float32)


def open_or_write(folder: Path, rows: Iterator[ImageRegions], order: Iterable[str] | None = None) -> Regions:
    """Open the regions in a folder, first writing the rows (whole or not at all) if they are missing or damaged.

    Images are stored in the order of the rows, or in that of `order`, which must name all of them.
    """
    if not _is_intact(folder):
        shutil.rmtree(folder, ignore_errors=True)
        part = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            _write(part, rows, order)
            files = checksums.sealed(checksums.of_folder(part, (path.name for path in part.iterdir())))
            (part / "files.json").write_text(json.dumps(files), encoding="utf-8")
            part.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    values, boxes, counts = (
        torch.from_numpy(np.load(folder / f"{name}.npy", mmap_mode="c")) for name in ("regions", "boxes", "count")
    )
    ids: NDArray[np.str_] = np.load(folder / "id.npy")
    return Regions(values, boxes, counts, ids)


def _is_intact(folder: Path) -> bool:
    try:
        checksums.check_folder(folder, checksums.read_json(folder / "files.json", required=True))
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _write(folder: Path, rows: Iterator[ImageRegions], order: Iterable[str] | None) -> None:
    """Write the rows one after another, each at its own length; then, once the maximum is known, as arrays."""
    ids: list[str] = []
    counts: list[int] = []
    width = 0
    with (folder / "values").open("wb") as values, (folder / "corners").open("wb") as corners:
        for name, found, boxes in rows:
            ids.append(name)
            counts.append(len(boxes))
            if width not in (0, found.shape[1]):
                raise UserError(
                    f"the features of {ids[0]} are {width} wide, those of {name} {found.shape[1]}: {_ALIKE}"
                )
            width = found.shape[1]
            values.write(np.ascontiguousarray(found, np.float16).data)
            corners.write(np.ascontiguousarray(boxes, np.float32).data)
    if not ids:
        raise UserError("no region features found: the feature files belong to other images than the data")
    starts = np.cumsum([0, *counts])
    places = {name: place for place, name in enumerate(order or ids)}
    arranged = sorted(range(len(ids)), key=lambda row: places[ids[row]])
    np.save(folder / "id.npy", np.array(ids, np.str_)[arranged])
    np.save(folder / "count.npy", np.array(counts, np.int64)[arranged])
    for source, name, kind, columns in (("values", "regions", np.float16, width), ("corners", "boxes", np.float32, 4)):
        flat = np.memmap(folder / source, kind, "r").reshape(-1, columns)
        array = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", kind, (len(ids), max(counts), columns))
        for place, row in enumerate(arranged):
            array[place, : counts[row]] = flat[starts[row] : starts[row + 1]]
        array.flush()
        (folder / source).unlink()
