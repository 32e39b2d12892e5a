"""The pictures of CFST: things cut out and placed on a grid, or a part of a picture that shows several things.

The paper specifies neither how a thing is fitted into its cell nor the size of a picture. In this implementation a
thing fills its cell, the rest is black, and a picture is as large as the paper's largest network needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from PIL import Image

from holdfast.data.images import decode

Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, width and height, in pixels."""
SIDE = 224
QUALITY = 92


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of a picture file."""

    file: Path
    box: Box

    def cut(self) -> Image.Image:
        """The rectangle as a picture, without what lies outside the source picture, but never empty."""
        pixels = decode(self.file, None)
        left, top, width, height = self.box
        left, top = min(max(left, 0), pixels.shape[1] - 1), min(max(top, 0), pixels.shape[0] - 1)
        right, bottom = max(self.box[0] + width, left + 1), max(self.box[1] + height, top + 1)
        return Image.fromarray(pixels[top:bottom, left:right])


@dataclass(frozen=True, slots=True)
class Composite:
    """Things on a grid. Positions are counted from 1, row by row, as in the published archive."""

    name: str
    pieces: tuple[Piece, ...]
    positions: tuple[int, ...]
    grid: int

    def draw(self) -> Image.Image:
        """The picture."""
        picture = Image.new("RGB", (SIDE, SIDE))
        for piece, position in zip(self.pieces, self.positions, strict=True):
            left, top, right, bottom = cell(position, self.grid)
            thing = piece.cut().resize((right - left, bottom - top), Image.Resampling.BICUBIC)
            picture.paste(thing, (left, top))
        return picture


@dataclass(frozen=True, slots=True)
class Crop:
    """A part of a picture, reduced if it is larger than any network will see it."""

    name: str
    piece: Piece

    def draw(self) -> Image.Image:
        """The picture."""
        found = self.piece.cut()
        width, height = fitted(found.width, found.height)
        return found.resize((width, height), Image.Resampling.BICUBIC)


Picture: TypeAlias = Composite | Crop


def cell(position: int, grid: int) -> Box:
    """Left, top, right and bottom of a cell; the cells of a grid cover the whole picture.

    >>> cell(1, 2), cell(4, 2), cell(9, 3)
    ((0, 0, 112, 112), (112, 112, 224, 224), (149, 149, 224, 224))
    """
    row, column = divmod(position - 1, grid)
    left, right = (round(SIDE * side / grid) for side in (column, column + 1))
    top, bottom = (round(SIDE * side / grid) for side in (row, row + 1))
    return left, top, right, bottom


def fitted(width: int, height: int) -> tuple[int, int]:
    """The size of a crop: its shorter side is at most that of a picture.

    >>> fitted(100, 50), fitted(896, 448)
    ((100, 50), (448, 224))
    """
    scale = min(1.0, SIDE / min(width, height))
    return round(width * scale), round(height * scale)


def around(boxes: Sequence[Box]) -> Box:
    """The smallest box that contains all of these.

    >>> around([(10, 10, 5, 5), (2, 12, 4, 20)])
    (2, 10, 13, 22)
    """
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    return left, top, right - left, bottom - top


def draw_all(root: Path, pictures: Sequence[Picture], done: Path) -> int:
    """Write pictures as JPEG under their names, then a mark that they exist; return their number."""
    for picture in pictures:
        picture.draw().save(root / f"{picture.name}.jpg", "JPEG", quality=QUALITY)
    done.touch()
    return len(pictures)


def is_whole(path: Path) -> bool:
    """Whether a file exists and ends like a JPEG."""
    try:
        with path.open("rb") as file:
            file.seek(-2, 2)
            return file.read() == b"\xff\xd9"
    except OSError:
        return False
