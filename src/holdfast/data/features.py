"""Feature maps of images, stored in a file, for models that take a `grid` instead of pixels.

```
OUT.npy       the maps, (images, channels, height, width) float16
OUT.id.npy    the images' ids: file names, or the first example that shows each image
OUT.json      the checksums of all files
```

OUT.h5 holds the same as the arrays `features` and `ids`. The features of boxes have arrays of their own, which
`datasets/region_features.py` reads. Both are written by `pretraining/features.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from holdfast.files import Bounds, load_array, open_hdf5, own_array, within

SUFFIXES = (".npy", ".h5")
Shapes: TypeAlias = Mapping[str, tuple[tuple[int, ...], str]]
"""The shape and type of each array of a file; the first is the main one."""


@dataclass(frozen=True)
class Features:
    """Memory-mapped feature maps, and the ids of their images."""

    values: Tensor
    ids: NDArray[np.str_]

    def column(self, ids: Sequence[str]) -> Shared:
        """A column with the feature map of one image per row.

        >>> maps = Features(torch.arange(2), np.array(["a.png", "b.png"]))
        >>> maps.column(["b.png", "a.png", "b.png"]).rows(torch.arange(3)).tolist()
        [1, 0, 1]
        """
        rows = {name: row for row, name in enumerate(self.ids.tolist())}
        try:
            return Shared(self.values, torch.tensor([rows[name] for name in ids]))
        except KeyError as error:
            raise UserError(f"no features for the image {error.args[0]!r}: recompute them for all images") from None


def open_features(path: Path) -> Features:
    """Open the feature maps in a file."""
    try:
        with within(Bounds(path.parent)):
            check(path)
            found, ids = _maps(path)
        values = torch.from_numpy(found)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} does not exist: compute it with `holdfast features`") from None
    except (ValueError, TypeError, LookupError) as error:
        raise UserError(f"{path} does not contain feature maps ({error}): recompute them") from None
    if values.ndim != 4 or ids.ndim != 1 or not 0 < len(values) == len(ids):
        shapes = f"maps of the shape {tuple(values.shape)}, and ids of the shape {ids.shape}"
        raise UserError(f"{path} has {shapes}: recompute them")
    return Features(values, ids)


def _maps(path: Path) -> tuple[NDArray[Any], NDArray[np.str_]]:
    if path.suffix == ".npy":
        return load_array(path, "c"), load_array(path.with_suffix(".id.npy"))
    arrays = map_arrays(path, "c")
    if "features" not in arrays:
        raise ValueError("it has no array 'features': give those of --kind grid")
    return arrays["features"], np.char.decode(arrays["ids"], "utf-8", "surrogateescape")


def check(path: Path) -> None:
    """Raise an error if a file of features, or one of those beside it, has changed since it was written."""
    note = path.with_suffix(".json")
    if note.is_file():  # earlier versions noted no checksums
        found = checksums.read_json(note)
        checksums.check_folder(path.parent, found.get("files", {}) if isinstance(found, dict) else {})


def files_of(path: Path, names: Sequence[str]) -> dict[str, Path]:
    """The location of each of these arrays, the main one first: in one HDF5 file, or each in its own.

    >>> [file.name for file in files_of(Path("maps.npy"), ["bbox_features", "bboxes"]).values()]
    ['maps.npy', 'maps.bboxes.npy']
    """
    if path.suffix == ".h5":
        return dict.fromkeys(names, path)
    return {name: path if name == names[0] else path.with_suffix(f".{name}.npy") for name in names}


def make_arrays(path: Path, shapes: Shapes) -> dict[str, NDArray[Any]]:
    """New arrays in a file, mapped for writing; in an HDF5 file, each is contiguous, so that it can be mapped."""
    if path.suffix != ".h5":
        files = files_of(path, list(shapes))
        return {
            name: np.lib.format.open_memmap(files[name], "w+", np.dtype(kind), shape)
            for name, (shape, kind) in shapes.items()
        }
    import h5py  # type: ignore[import-untyped]

    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    early.set_layout(h5py.h5d.CONTIGUOUS)
    early.set_obj_track_times(False)  # the same bytes whenever they are written
    with h5py.File(path, "w") as file:
        for name, (shape, kind) in shapes.items():
            of_type, space = h5py.h5t.py_create(np.dtype(kind), logical=True), h5py.h5s.create_simple(shape)
            h5py.h5d.create(file.id, name.encode(), of_type, space, early)
    return map_arrays(path, "r+")


def map_arrays(path: Path, mode: Any) -> dict[str, NDArray[Any]]:
    """The arrays of an HDF5 file of ours, mapped into memory; a ValueError for a file of another kind."""
    found: dict[str, NDArray[Any]] = {}
    try:
        with open_hdf5(path) as file:
            for name in file:
                if (array := own_array(file, name)) is None or (offset := array.id.get_offset()) is None:
                    raise ValueError(f"its array {name!r} is not stored in one piece")
                found[name] = np.memmap(path, array.dtype, mode, offset, array.shape)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(2, "no such file", str(path)) from None
        raise ValueError("it is not a complete HDF5 file") from None
    return found
