"""Images as arrays: decoded by content, resized, with the boxes of named objects drawn in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from holdfast.errors import UserError
from holdfast.files import open_image

Pixels: TypeAlias = NDArray[np.uint8]
"""An image: height, width, and three channels."""
Source: TypeAlias = Path | Pixels
Colour: TypeAlias = tuple[int, int, int]

GREY: Colour = (145, 145, 145)
LINE_WIDTH = 7
FILL = 38 / 255

# The colours with which CLiMB's pictures were drawn (Zellers et al., 2021), as RRGGBB. The drawing script begins with
# red and green; here the two are exchanged, because CLiMB's text says that the box of [person1] is green.
_COLOURS = """00FF00 FF0000 ECB01F 0000FF FF00FF AA00FF FFFF00 AA5400 545400 FF7F00 4CBDED AA007F 7D2E8D BEBE00
A1132E 00AA7F FFAA7F 00547F FF547F AAAAFF AAAA7F 540000 00AA00 00FFFF FFAAFF 54007F FFFF7F AA0000 54FF7F 00007F AA547F
AA54FF AAAA00 D85218 005400 5400FF FF007F 7F0000 AAFF7F AAFFFF 007F00 0000AA 54AA7F 0071BC 76AB2F 54547F 002A00 5454FF
54AA00 54AAFF AAFF00 0000D4 00D400 000054 0054FF"""
PERSON_COLOURS: tuple[Colour, ...] = tuple(
    (int(code[:2], 16), int(code[2:4], 16), int(code[4:], 16)) for code in _COLOURS.split()
)


@dataclass(frozen=True)
class Drawing:
    """Objects to draw into an image: their boxes (x1, y1, x2, y2, in pixels), names, and numbers among all objects.

    A person's number determines its colour, and also its name in the text.
    """

    boxes: tuple[tuple[float, float, float, float], ...]
    names: tuple[str, ...]
    numbers: tuple[int, ...]
    line: int = LINE_WIDTH
    """The width in pixels of the line around a box."""

    def __post_init__(self) -> None:
        if not len(self.boxes) == len(self.names) == len(self.numbers):
            raise UserError(
                f"a drawing needs a name and a number for each box, not {len(self.boxes)} boxes, "
                f"{len(self.names)} names and {len(self.numbers)} numbers"
            )

    @classmethod
    def of(
        cls, boxes: Sequence[Sequence[float]], names: Sequence[str], numbers: Iterable[int], line: int = LINE_WIDTH
    ) -> Drawing:
        """The objects with these numbers, from lists over all objects of an image; numbers out of range are left out.

        >>> Drawing.of([[0, 0, 9, 9, 0.98], [2, 2, 4, 4, 0.71]], ["person", "cup"], [1, 7]).names
        ('cup',)
        """
        known = sorted({n for n in numbers if 0 <= n < min(len(boxes), len(names))})
        cut = tuple((float(b[0]), float(b[1]), float(b[2]), float(b[3])) for b in (boxes[n] for n in known))
        return cls(cut, tuple(names[n] for n in known), tuple(known), line)


def decode(
    source: Source,
    size: int | None,
    shorter: int | None = None,
    longest: int | None = None,
    drawing: Drawing | None = None,
    step: int = 1,
) -> Pixels:
    """An image file, or an array, as RGB, optionally resized.

    With `size`, it becomes (size, size, 3). Otherwise its shorter side becomes `shorter`, unless the longer side would
    then exceed `longest`, and both are then rounded down to multiples of `step`. If all are left out, the size stays.

    A file is identified by its content, whatever its name. Grey, palette, CMYK and transparent images become RGB; a
    rotation noted by the camera is ignored, because the boxes of datasets refer to the pixels as stored.

    >>> decode(np.full((40, 20), 7, np.uint8), None, shorter=10, longest=16).shape
    (16, 8, 3)
    """
    if isinstance(source, np.ndarray):
        image = _from_array(source)
        return _finish(image, _size(image.size, size, shorter, longest, step), drawing)
    try:
        with open_image(source) as image:
            wanted = _size(image.size, size, shorter, longest, step)
            if drawing is None and size is not None:
                # A JPEG can be decoded at 1/2, 1/4 or 1/8 for much less work, at twice the final size without a visible
                # difference. Images that keep their proportions are for published weights: these get the exact pixels.
                image.draft(image.mode, (2 * wanted[0], 2 * wanted[1]))
            return _finish(to_rgb(image), wanted, drawing)
    except Exception as error:  # broken files make the decoder fail in a dozen ways, all the same to a user
        raise _broken(source, error) from None


def header_size(
    file: Path, size: int | None, shorter: int | None = None, longest: int | None = None, step: int = 1
) -> tuple[int, int]:
    """The width and height of the image that `decode` would return for a file, from its header alone.

    >>> header_size(Path("lost.jpg"), 8)
    Traceback (most recent call last):
    holdfast.errors.UserError: lost.jpg: no such image
    """
    try:
        with open_image(file) as image:
            return _size(image.size, size, shorter, longest, step)
    except Exception as error:
        raise _broken(file, error) from None


def _broken(source: Path, error: Exception) -> UserError:
    if isinstance(error, UserError):
        return error
    if isinstance(error, FileNotFoundError):
        return UserError(f"{source}: no such image")
    reason = "it is not an image" if type(error).__name__ == "UnidentifiedImageError" else str(error)
    return UserError(f"{source} cannot be decoded ({reason}): download it again, or leave it out")


def mean_image(sources: Iterable[Source], size: int) -> Pixels:
    """The mean of the training images, each at (size, size): the placeholder image of tasks that have only text.

    >>> mean_image([np.full((4, 4, 3), level, np.uint8) for level in (10, 30)], 2)[0, 0].tolist()
    [20, 20, 20]
    """
    total, count = np.zeros((size, size, 3), np.int64), 0
    for source in sources:
        total += decode(source, size)
        count += 1
    if count == 0:
        raise UserError("the mean image needs at least one training image")
    return np.rint(total / count).astype(np.uint8)


def draw_boxes(image: Pixels, drawing: Drawing) -> Pixels:
    """The image with a line along each box and a light fill: a person in the colour of its number, others grey.

    >>> drawn = draw_boxes(np.zeros((40, 40, 3), np.uint8), Drawing(((5, 5, 35, 35),), ("cup",), (2,)))
    >>> drawn[5, 5].tolist(), drawn[20, 20].tolist(), drawn[0, 0].tolist()
    ([145, 145, 145], [22, 22, 22], [0, 0, 0])
    """
    height, width = image.shape[:2]
    out = image.copy()
    for box, name, number in zip(drawing.boxes, drawing.names, drawing.numbers, strict=True):
        colour = np.array(PERSON_COLOURS[number % len(PERSON_COLOURS)] if name == "person" else GREY, np.float64)
        if not np.isfinite(box).all():
            raise UserError(f"the box of object {number} ({name}) is {box}: it needs four finite numbers")
        left, right = (int(np.clip(x, -width, 2 * width)) for x in (box[0], box[2]))
        top, bottom = (int(np.clip(y, -height, 2 * height)) for y in (box[1], box[3]))
        inside = out[_span(top, bottom), _span(left, right)]
        inside[:] = np.rint((1 - FILL) * inside + FILL * colour)
        before, after = (drawing.line - 1) // 2, drawing.line // 2
        for y in (top, bottom):
            out[_span(y - before, y + after), _span(left, right)] = colour
        for x in (left, right):
            out[_span(top, bottom), _span(x - before, x + after)] = colour
    return out


def _span(first: int, last: int) -> slice:
    """The pixels from the first to the last one, as far as they are in the image."""
    return slice(max(first, 0), max(last + 1, 0))


def _finish(image: Image.Image, wanted: tuple[int, int], drawing: Drawing | None) -> Pixels:
    if drawing is not None:
        image = Image.fromarray(draw_boxes(np.asarray(image), drawing))
    if image.size != wanted:
        image = image.resize(wanted, Image.Resampling.BICUBIC)
    return np.array(image)


def _size(
    have: tuple[int, int], size: int | None, shorter: int | None, longest: int | None, step: int
) -> tuple[int, int]:  # both are width, height, as in Pillow
    given = [number for number in (size, shorter, longest) if number is not None]
    if any(number < 1 for number in (*given, step)) or (size is not None and len(given) > 1):
        raise UserError("an image is resized to a size, or by its shorter and longest sides, of at least one pixel")
    if size is not None:
        return size, size
    # In two steps, with halves rounded up, as ViLT's processor does it: a side may lie on the edge of a multiple.
    scale = 1.0 if shorter is None else shorter / min(have)
    sides = [side * scale for side in have]
    if longest is not None and max(sides) > longest:
        sides = [side * (longest / max(sides)) for side in sides]
    width, height = (max(step, int(side + 0.5) // step * step) for side in sides)
    return width, height


def to_rgb(image: Image.Image) -> Image.Image:
    """The image converted to three channels of eight bits."""
    if image.mode.startswith(("I", "F")):  # 16 bits per pixel: Pillow would clip at 255, but we want the high byte
        values = np.asarray(image)
        top = 65535.0 if values.max(initial=0) > 255 else 255.0
        grey = np.empty(values.shape, np.uint8)
        for row, line in enumerate(values):  # line by line: as float64 the whole would take eight times as much
            grey[row] = np.clip(line.astype(np.float64) * (255 / top), 0, 255)
        return Image.fromarray(grey).convert("RGB")
    if image.mode in ("P", "PA"):  # a palette with transparent entries
        return image.convert("RGBA").convert("RGB")
    return image.convert("RGB")


def _from_array(array: Pixels) -> Image.Image:
    if array.ndim == 3 and array.shape[2] in (1, 3, 4):
        array = array[:, :, 0] if array.shape[2] == 1 else array[:, :, :3]
    elif array.ndim != 2:
        raise UserError(f"an image needs height, width and 1, 3 or 4 channels, but this array has shape {array.shape}")
    if array.dtype != np.uint8 or 0 in array.shape:
        raise UserError(f"an image needs at least one pixel, as uint8, but this array is {array.dtype} {array.shape}")
    return Image.fromarray(np.ascontiguousarray(array)).convert("RGB")
