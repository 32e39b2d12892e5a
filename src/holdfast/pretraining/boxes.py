"""The boxes whose features are computed, from a JSON file: an object with a list of boxes for each image.

A box is [x1, y1, x2, y2] in pixels of the image as it was published. An image is identified by its path within the
folder of images, or by its name without a suffix.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError
from holdfast.files import read_bytes


@dataclass(frozen=True)
class BoxFile:
    """The boxes of images by name."""

    path: Path
    of: Mapping[str, NDArray[np.float32]]
    fingerprint: str
    most: int
    """The maximum number of boxes of an image."""

    def only(self, names: Iterable[str]) -> BoxFile:
        """The boxes of only these images."""
        found = ((name, self._find(name)) for name in names)
        return replace(self, of={name: boxes for name, boxes in found if boxes is not None})

    def check(self, names: Iterable[str]) -> None:
        """Refuse images whose boxes are missing."""
        for name in names:
            if self._find(name) is None:
                raise UserError(f"{self.path} has no boxes for the image {name}: add them")

    def shares(self, name: str, size: tuple[int, int]) -> NDArray[np.float32]:
        """The corners of an image's boxes as shares of its sides."""
        found = self._find(name)
        assert found is not None, "they were checked"
        corners: NDArray[np.float32] = (found / np.array([*size, *size], np.float32)).clip(0, 1)
        if (corners[:, 2:] <= corners[:, :2]).any():
            raise UserError(f"{self.path}: a box of {name} lies outside the image, which is {size[0]} x {size[1]}")
        return corners

    def _find(self, name: str) -> NDArray[np.float32] | None:
        found = self.of.get(name)
        return self.of.get(PurePosixPath(name).stem) if found is None else found


def read_boxes(path: Path) -> BoxFile:
    """Read the boxes in a file."""
    try:
        content = read_bytes(path)
        found = json.loads(content)
    except FileNotFoundError:
        raise UserError(f"the file {path} does not exist: give the file of boxes") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({error})") from None
    if not isinstance(found, dict) or not found:
        raise UserError(f"{path} has no boxes: it must be an object with a list of boxes for each image")
    of = {name: _boxes(path, name, boxes) for name, boxes in found.items()}
    return BoxFile(path, of, hashlib.blake2b(content, digest_size=8).hexdigest(), max(map(len, of.values())))


def _boxes(path: Path, name: str, boxes: Any) -> NDArray[np.float32]:
    if not isinstance(boxes, list) or not boxes or not all(map(_is_box, boxes)):
        raise UserError(f"{path}: the boxes of {name} are not a list of [x1, y1, x2, y2] with x1 < x2 and y1 < y2")
    return np.array(boxes, np.float32)


def _is_box(box: Any) -> bool:
    numbers = isinstance(box, list) and len(box) == 4 and all(type(x) in (int, float) for x in box)
    return numbers and all(map(math.isfinite, box)) and box[0] < box[2] and box[1] < box[3]
