"""Pictures: a scene, or one thing, as an array of bytes. The same scene always yields the same picture."""

from __future__ import annotations

import io
import math
import zlib
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from holdfast.errors import UserError, nearest
from holdfast.processes import Crew, crew
from holdfast.world.backdrop import Canvas, backdrop, packed
from holdfast.world.scene import Scene, Thing, silhouette_of
from holdfast.world.vocabulary import COLOURS

_Picture = NDArray[np.uint8]

_FILLS: dict[str, tuple[int, int, int]] = COLOURS | {
    "sky": (176, 216, 240),
    "silver": (190, 194, 200),
    "denim": (58, 66, 96),
    "screen": (30, 44, 62),
    "lime": (140, 190, 84),
    "tan": (214, 164, 98),
    "sausage": (176, 70, 44),
}
_SKINS = ((250, 214, 180), (226, 172, 126), (172, 114, 74), (104, 66, 44))
_HAIRS = ((40, 30, 26), (106, 66, 34), (226, 190, 98), (150, 150, 150))
_KINDS = ("jpeg", "png", "grey-jpeg", "grey-png", "cmyk-jpeg")


def _random(thing: Thing) -> np.random.Generator:
    """A generator for small accidents of a thing's look, seeded by the thing itself."""
    words = f"{thing.noun}{thing.colour}{thing.pattern}{thing.box.left}{thing.box.top}{thing.box.width}"
    return np.random.default_rng(zlib.crc32(words.encode()))


def _pattern(pattern: str, height: int, width: int) -> NDArray[np.bool_]:
    """Where the second colour of a pattern goes, on a surface of height x width."""
    step = max(4, round(math.sqrt(height * width) / 5))
    x, y = np.arange(width), np.arange(height)
    if pattern == "striped":  # each row is a piece of the same long row
        stripes = np.arange(width + height // 3) % step < step * 0.42
        return sliding_window_view(stripes, width)[y // 3]
    if pattern == "checked":
        return np.asarray((x * 5 // (step * 3) % 2)[None, :] == (y * 5 // (step * 3) % 2)[:, None])
    assert pattern == "spotted", pattern
    across = (x + np.array([[0], [step / 2]])) % step - step / 2  # every second row of spots is shifted by half a step
    down = y % step - step / 2
    return np.asarray((across**2)[y // step % 2] + (down**2)[:, None] < (step * 0.31) ** 2)


_SHADE = 120  # the side length at which the lighting of a material is computed, once


@cache
def _shade(material: str) -> NDArray[np.float32]:
    """The lightness of each point of a surface: metal gleams, wood has grain, fur is rough, most are lit from above."""
    y, x = np.mgrid[:_SHADE, :_SHADE].astype(np.float32)
    across, down = x / _SHADE, y / _SHADE
    light = 1.08 - 0.2 * down
    if material == "metal":
        light = light + 0.28 * np.exp(-(((down - 0.28 - 0.1 * across) / 0.07) ** 2))
    elif material in ("glass", "plastic"):
        light = light + 0.3 * np.exp(-(((across - 0.3) / 0.07) ** 2)) * (down < 0.6)
    elif material == "wood":
        light = light - 0.14 * (np.sin(down * 40 + 3 * np.sin(across * 7)) > 0.4)
    elif material in ("fur", "fabric"):
        light = light + 0.05 * np.sin(x * 2.1 + y * 0.7) * np.sin(y * 1.3)
    elif material == "stone":
        light = light + 0.08 * np.sign(np.sin(x * 1.7 + 5 * np.sin(y)))
    return np.asarray(light, dtype=np.float32)


def _lit(material: str, height: int, width: int) -> NDArray[np.float32]:
    """The light on a surface of height x width."""
    return _shade(material).take(_spread(height), axis=0).take(_spread(width), axis=1)


@lru_cache(maxsize=1_024)
def _spread(side: int) -> NDArray[np.intp]:
    return np.arange(side) * _SHADE // side


def _mix(colour: NDArray[np.float32], other: float, share: float) -> NDArray[np.float32]:
    return np.asarray(colour * (1 - share) + other * share, dtype=np.float32)


def _paint(thing: Thing, height: int, width: int, mirrored: bool) -> tuple[Canvas, NDArray[np.bool_]]:
    """A thing that fills height x width: its pixels, and where these are, (height, width)."""
    random = _random(thing)
    shape = silhouette_of(thing, mirrored)
    main = np.array(_FILLS[thing.colour], dtype=np.float32) + random.integers(-12, 13) + random.integers(-8, 9, 3)
    bright = float(main @ np.array([0.3, 0.59, 0.11]))
    # Black needs details that are lighter than itself.
    dark = main * 0.68 if bright > 60 else _mix(main, 255, 0.22)
    light = _mix(main, 255, 0.45) if bright < 225 else main * 0.86
    own = {"main": main, "dark": dark, "light": light}
    own["skin"] = np.array(_SKINS[random.integers(len(_SKINS))], dtype=np.float32)
    own["hair"] = np.array(_HAIRS[random.integers(len(_HAIRS))], dtype=np.float32)

    image = Image.new("L", (width, height), 0)
    pen = ImageDraw.Draw(image)
    corners = (shape.corners * (width - 1, height - 1)).ravel().tolist()
    for span, number in shape.outlines:
        pen.polygon(corners[span], fill=number)
    index = np.array(image)
    palette = [own.get(fill, _FILLS.get(fill, (0, 0, 0))) for fill in shape.fills]
    if thing.pattern != "plain":
        # The pattern says where its second colour replaces the main one.
        palette.append(main * 0.25 if bright > 115 else _mix(main, 255, 0.8))
        index[(index == 1) & _pattern(thing.pattern, height, width)] = len(shape.fills)
    seen = index > 0
    colours = np.array(palette, dtype=np.float32).T.take(index[seen], axis=1)
    colours *= _lit(thing.material, height, width)[seen]
    return packed(colours), seen


def _fineness(side: int) -> int:
    """The oversampling factor: pictures are drawn this many times larger, then averaged, so that edges are smooth."""
    return 3 if side <= 160 else 2


def _finish(canvas: Canvas, fineness: int, random: np.random.Generator) -> _Picture:
    """Average down to the picture's size, and add what a camera adds: another light, a little noise."""
    height, width = canvas.shape
    fine = Image.frombuffer("RGBX", (width, height), canvas, "raw", "RGBX", 0, 1).reduce(fineness)
    picture = np.asarray(fine)[..., :3].astype(np.float32) * random.uniform(0.9, 1.06)
    picture += random.standard_normal(picture.shape[:2], dtype=np.float32)[..., None] * random.uniform(2, 6)
    return np.asarray(np.clip(picture, 0, 255, out=picture), dtype=np.uint8)


def _put(canvas: Canvas, thing: Thing, mirrored: bool) -> None:
    height, width = canvas.shape
    box = thing.box
    left, top = math.ceil(box.left * width), math.ceil(box.top * height)
    right, bottom = math.floor((box.left + box.width) * width), math.floor((box.top + box.height) * height)
    if right - left < 2 or bottom - top < 2:
        return  # too small to be seen at this size
    pixels, seen = _paint(thing, bottom - top, right - left, mirrored)
    canvas[top:bottom, left:right][seen] = pixels


def render(scene: Scene, width: int = 96, height: int = 72) -> _Picture:
    """Draw a scene: uint8, (height, width, 3). Each thing lies within its box.

    >>> from holdfast.world.scene import make_scene
    >>> render(make_scene(seed=0, number=1)).shape
    (72, 96, 3)
    """
    if width < 8 or height < 8:
        raise UserError(f"a picture of {width}x{height} is too small to draw: the minimum is 8x8")
    random = np.random.default_rng(zlib.crc32(repr((scene.number, scene.place)).encode()))
    fineness = _fineness(max(width, height))
    canvas = backdrop(scene.place, height * fineness, width * fineness, random)
    for thing in scene.things:
        _put(canvas, thing, thing.box.centre[0] > 0.5)
    return _finish(canvas, fineness, random)


def render_thing(thing: Thing, side: int) -> _Picture:
    """One thing that fills a plain square picture: uint8, (side, side, 3). Its box only varies the picture a little.

    >>> from holdfast.world.scene import make_scene
    >>> render_thing(make_scene(seed=0, number=1).things[0], 32).shape
    (32, 32, 3)
    """
    if side < 8:
        raise UserError(f"a picture of {side}x{side} is too small to draw: the minimum is 8x8")
    random = _random(thing)
    mirrored = bool(random.integers(2))
    aspect = silhouette_of(thing, mirrored).aspect
    fill = random.uniform(0.78, 0.96) * (1.0 if thing.size == "large" else 0.75)
    width, height = fill * min(1.0, aspect), fill * min(1.0, 1 / aspect)
    box = replace(
        thing.box,
        left=(1 - width) * random.uniform(0.3, 0.7),
        top=(1 - height) * random.uniform(0.3, 0.7),
        width=width,
        height=height,
    )
    fineness = _fineness(side)
    light = np.linspace(1.06, 0.92, side * fineness, dtype=np.float32)[:, None]
    rows = packed((random.uniform(150, 232, 3).astype(np.float32) * light).T)
    canvas = np.repeat(rows[:, None], side * fineness, axis=1)
    _put(canvas, replace(thing, box=box), mirrored)
    return _finish(canvas, fineness, random)


def encode_image(array: _Picture, kind: str = "jpeg") -> bytes:
    """The bytes of an image file: "jpeg", "png", "grey-jpeg", "grey-png" or "cmyk-jpeg".

    The same array always gives the same bytes.

    >>> encode_image(np.zeros((8, 8, 3), dtype=np.uint8), "png")[1:4]
    b'PNG'
    """
    if kind not in _KINDS:
        raise UserError(f"unknown kind of image {kind!r}: {nearest(kind, _KINDS)}")
    image = Image.fromarray(array)
    if kind.startswith("grey"):
        image = image.convert("L")
    elif kind == "cmyk-jpeg":
        image = image.convert("CMYK")
    out = io.BytesIO()
    if kind.endswith("png"):
        image.save(out, "PNG", compress_level=1)  # no larger than level 6 for pictures with noise, in half the time
    else:
        image.save(out, "JPEG", quality=90, subsampling=0)
    return out.getvalue()


def save_image(path: Path, array: _Picture, kind: str = "jpeg") -> None:
    """Write an image file, creating its folder if necessary; the name need not match the kind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_image(Path(folder) / "n01" / "a.JPEG", np.zeros((8, 8, 3), dtype=np.uint8), "png")
    ...     (Path(folder) / "n01" / "a.JPEG").read_bytes()[1:4]
    b'PNG'
    """
    data = encode_image(array, kind)
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def save_scene(path: Path, scene: Scene, size: tuple[int, int] = (96, 72), kind: str = "jpeg") -> None:
    """Draw a scene at a width and height, and write the image file: for the processes of `drawing`.

    >>> import tempfile
    >>> from holdfast.world.scene import make_scene
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with drawing() as draw:
    ...         _ = draw(save_scene, Path(folder) / "a.jpg", make_scene(seed=0, number=1))
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.jpg']
    """
    save_image(path, render(scene, *size), kind)


def drawing() -> AbstractContextManager[Crew]:
    """Processes that draw on all cores while this one goes on: the files are complete at the end."""
    return crew("a process that draws pictures ended early: call it again")
