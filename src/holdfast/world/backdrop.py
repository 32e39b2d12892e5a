"""The background of a scene: each place has its own ground, its own horizon and a little clutter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Canvas = NDArray[np.uint32]
"""A picture while it is drawn: red, green, blue and a byte of padding in one number, (height, width)."""
_Colour = tuple[float, float, float]

# place: colour above, colour below, where the ground begins (a share of the height)
_GROUNDS: dict[str, tuple[tuple[int, int, int], tuple[int, int, int], float]] = {
    "field": ((150, 205, 240), (126, 186, 92), 0.48),
    "street": ((196, 206, 214), (128, 128, 132), 0.52),
    "room": ((232, 218, 190), (176, 132, 92), 0.6),
    "kitchen": ((214, 230, 226), (206, 196, 180), 0.54),
    "bathroom": ((190, 222, 232), (222, 230, 234), 0.58),
    "office": ((214, 212, 226), (120, 128, 148), 0.6),
    "beach": ((160, 214, 244), (234, 212, 156), 0.5),
    "sea": ((176, 216, 240), (58, 130, 176), 0.44),
    "snow": ((186, 206, 226), (240, 244, 250), 0.46),
    "forest": ((92, 138, 84), (120, 108, 70), 0.56),
}


@lru_cache(maxsize=48)  # large arrays, so only a few are kept: pictures come in many sizes
def _plain(place: str, height: int, width: int) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """The ground and what is behind it: for each pixel the number of its colour, and the colours."""
    above, below, horizon = _GROUNDS[place]
    canvas = np.empty((height, width, 3), dtype=np.float32)
    edge = int(horizon * height)
    canvas[:edge], canvas[edge:] = above, below
    canvas[:edge] *= np.linspace(0.94, 1.06, edge, dtype=np.float32)[:, None, None]
    canvas[edge:] *= np.linspace(0.92, 1.04, height - edge, dtype=np.float32)[:, None, None]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    down, across = y / height, x / width
    if place == "street":  # a dashed line along the road
        canvas[(abs(down - 0.8) < 0.012) & (across * 8 % 1 < 0.5)] = (236, 232, 200)
        canvas[(down > horizon) & (down < horizon + 0.06)] = (168, 164, 158)
    elif place in ("kitchen", "bathroom"):  # tiles
        joint = ((across * 12 % 1) < 0.06) | ((down * 9 % 1) < 0.07)
        canvas[joint & (down < horizon)] *= 0.9
    elif place in ("room", "office"):
        canvas[(abs(down - horizon) < 0.012)] *= 0.75
    elif place == "beach":
        canvas[(down > horizon - 0.1) & (down <= horizon)] = (70, 150, 190)
    elif place == "sea":
        canvas[(down > horizon) & (np.sin(down * 120 + 2 * np.sin(across * 30)) > 0.8)] += 26
    pixels, index = np.unique(packed(np.moveaxis(canvas, -1, 0)), return_inverse=True)
    return index.reshape(height, width), pixels.view(np.uint8).reshape(-1, 4)[:, :3]


def _disc(canvas: Canvas, across: float, down: float, wide: float, high: float, pixel: np.uint32) -> None:
    """An oval, given by its centre and radii as shares of the sides."""
    height, width = canvas.shape
    top, bottom = max(0, int((down - high) * height)), min(height, int((down + high) * height) + 1)
    left, right = max(0, int((across - wide) * width)), min(width, int((across + wide) * width) + 1)
    x, y = np.arange(left, right) / width, np.arange(top, bottom) / height
    inside = ((x - across) / wide) ** 2 + (((y - down) / high) ** 2)[:, None] < 1
    canvas[top:bottom, left:right][inside] = pixel


def _slab(canvas: Canvas, left: float, top: float, right: float, bottom: float, pixel: np.uint32) -> None:
    height, width = canvas.shape
    canvas[int(top * height) : int(bottom * height), int(left * width) : int(right * width)] = pixel


def horizon(place: str) -> float:
    """Where the ground of a place begins, as a share of the picture's height.

    >>> 0 < horizon("field") < 1
    True
    """
    return _GROUNDS[place][2]


def backdrop(place: str, height: int, width: int, random: np.random.Generator) -> Canvas:
    """An empty place, with clouds, trees, windows and the like at random positions.

    >>> backdrop("beach", 72, 96, np.random.default_rng(0)).shape
    (72, 96)
    """
    edge = horizon(place)
    clutter: list[tuple[Callable[..., None], tuple[float, float, float, float], _Colour]] = []
    for x, y, z in random.uniform(0, 1, (random.integers(2, 5), 3)).tolist():
        if place in ("field", "beach", "sea", "snow"):
            clutter.append((_disc, (x, 0.06 + 0.2 * y, 0.06 + 0.06 * z, 0.03 + 0.02 * z), (246, 248, 250)))
        if place in ("snow", "field"):
            hill, ground = ((206, 218, 230), (232, 238, 246)) if place == "snow" else ((108, 168, 88), (120, 178, 90))
            clutter += [(_disc, (y, edge, 0.1 + 0.1 * z, 0.1 * z), hill), (_slab, (0, edge, 1, edge + 0.13), ground)]
        elif place == "forest":
            clutter.append((_slab, (x, 0, x + 0.03 + 0.03 * z, edge + 0.04), (78, 62, 46)))
        elif place == "street":
            house = (176 - 30 * z, 176 - 24 * y, 184)
            clutter.append((_slab, (x, edge - 0.2 - 0.25 * y, x + 0.1 + 0.1 * z, edge), house))
    if place in ("room", "kitchen", "office"):  # a window or a picture on the wall
        x, y = random.uniform(0.05, 0.75), random.uniform(0.05, 0.14)
        clutter.append((_slab, (x, y, x + 0.2, y + 0.26), (250, 250, 246)))
        pane = (190, 220, 240) if random.integers(2) else (214, 190, 160)
        clutter.append((_slab, (x + 0.015, y + 0.02, x + 0.185, y + 0.24), pane))
    light = random.uniform(-12, 12, 3).astype(np.float32)
    plain, colours = _plain(place, height, width)
    canvas = packed((colours + light).T).take(plain)
    if clutter:
        pixels = packed((np.array([colour for _, _, colour in clutter], dtype=np.float32) + light).T)
        for (shape, where, _), pixel in zip(clutter, pixels, strict=True):
            shape(canvas, *where, pixel)
    return canvas


def packed(colours: ArrayLike) -> Canvas:
    """Colours, (3, ...), as pixels of a canvas: one number each, so that they are moved in one piece.

    >>> packed([[1, 300], [0, -4], [2, 0]]).view(np.uint8).reshape(2, 4)[:, :3].tolist()
    [[1, 0, 2], [255, 0, 0]]
    """
    red, green, blue = np.clip(colours, 0, 255).astype("<i4")
    return np.asarray(red | green << 8 | blue << 16 | -1 << 24).view("<u4")
