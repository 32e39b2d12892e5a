"""Feature maps of images, stored in a file, for models that take a `grid` instead of pixels.

```
OUT.npy       the maps, (images, channels, height, width) float16
OUT.id.npy    the images' ids: file names, or the first example that shows each image
OUT.json      the checksums of both
```

They are written by `pretraining/features.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast import checksums
from holdfast.data.table import Shared
from holdfast.errors import UserError


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
        note = path.with_suffix(".json")
        if note.is_file():  # earlier versions noted no checksums
            found = checksums.read_json(note)
            checksums.check_folder(path.parent, found.get("files", {}) if isinstance(found, dict) else {})
        values = torch.from_numpy(np.load(path, mmap_mode="c"))
        ids: NDArray[np.str_] = np.load(path.with_suffix(".id.npy"))
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} does not exist: compute it with `holdfast features`") from None
    except ValueError as error:
        raise UserError(f"{path} does not contain feature maps ({error}): recompute them") from None
    if len(values) != len(ids):
        raise UserError(f"{path} has {len(values)} maps, but {len(ids)} ids: recompute them")
    return Features(values, ids)
