"""Blocks on a table: the scenes of CLEVR, with three shapes in eight colours, two materials and two sizes.

Unlike the scenes of `scene.py` they are three-dimensional and seen in perspective. Pictures are ray cast, so occlusion
is exact, and a scene in which a block is nearly hidden is drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_Rays = tuple[Floats, ...]
"""The direction of each ray as its three parts."""

SHAPES = ("cube", "sphere", "cylinder")
COLOURS = {
    "gray": (96, 96, 96),
    "red": (176, 36, 36),
    "blue": (44, 78, 214),
    "green": (30, 108, 22),
    "brown": (132, 76, 28),
    "purple": (132, 40, 192),
    "cyan": (42, 206, 206),
    "yellow": (250, 232, 50),
}
MATERIALS = ("rubber", "metal")
SIZES = {"small": 0.35, "large": 0.7}
RELATIONS = ("right", "behind", "front", "left")

# Two blocks differ by at least this much along each direction, so no relation is a close call.
MARGIN = 0.4
LEAST_VISIBLE = 0.4
_LIGHT = np.array([0.15, -0.7, 0.7])


@dataclass(frozen=True)
class Block:
    """One block: its attributes, the position of its centre on the table, and its rotation in degrees."""

    shape: str
    colour: str
    material: str
    size: str
    place: tuple[float, float]
    rotation: float

    @property
    def radius(self) -> float:
        """Half of its height; a cube is shrunk so that its corners reach about as far as a sphere's surface."""
        return SIZES[self.size] / (np.sqrt(2) if self.shape == "cube" else 1.0)

    @property
    def middle(self) -> Floats:
        """Its centre in space: the block rests on the table."""
        return np.array([*self.place, self.radius])


@dataclass(frozen=True)
class Camera:
    """The position from which the picture is taken; the camera looks at the middle of the table."""

    position: tuple[float, float, float] = (7.48, -6.5, 5.34)

    @cached_property
    def axes(self) -> tuple[Floats, Floats, Floats]:
        """Right, up and forward as unit vectors."""
        forward = -np.array(self.position)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return right, np.cross(right, forward), forward

    def directions(self) -> dict[str, list[float]]:
        """The directions on the table that "right", "behind" and so on refer to, in the order of the official files.

        >>> list(Camera().directions())
        ['right', 'behind', 'above', 'below', 'left', 'front']
        """
        right, _, forward = self.axes
        behind = np.array([forward[0], forward[1], 0.0])
        behind /= np.linalg.norm(behind)
        vectors = {"right": right, "behind": behind, "above": np.array([0.0, 0.0, 1.0])}
        vectors |= {"below": -vectors["above"], "left": -right, "front": -behind}
        return {name: [float(number) + 0.0 for number in vector] for name, vector in vectors.items()}

    def project(self, point: Floats, width: int, height: int) -> tuple[float, float, float]:
        """The position of a point in the picture (across, down), and its distance.

        >>> [round(number, 1) for number in Camera().project(np.zeros(3), 480, 320)]
        [240.0, 160.0, 11.3]
        """
        right, up, forward = self.axes
        offset = point - np.array(self.position)
        depth = float(offset @ forward)
        focal = _focal(width)
        return width / 2 + focal * float(offset @ right) / depth, height / 2 - focal * float(offset @ up) / depth, depth


@dataclass(frozen=True)
class Blocks:
    """A table with blocks on it, and the camera that looks at it."""

    number: int
    things: tuple[Block, ...]
    camera: Camera = field(default_factory=Camera)

    @cached_property
    def related(self) -> dict[str, list[list[int]]]:
        """See `relationships`: the same scene is asked many times."""
        return relationships(self)

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """Each attribute of all blocks, by its official name."""
        looks = [(thing.size, thing.colour, thing.material, thing.shape) for thing in self.things]
        return dict(zip(("size", "color", "material", "shape"), map(list, zip(*looks, strict=True)), strict=True))


def make_blocks(seed: int, number: int, *, count: tuple[int, int] = (3, 10), near: float = 1.0) -> Blocks:
    """The scene with this number: every block is mostly visible, and no two are too close together.

    With `near` below 1 the camera moves closer, and the blocks occupy a correspondingly smaller part of the table.

    >>> scene = make_blocks(0, 7)
    >>> 3 <= len(scene.things) <= 10 and scene == make_blocks(0, 7)
    True
    """
    random = np.random.default_rng([seed, 16, number])
    wanted = int(random.integers(count[0], count[1] + 1))
    while True:
        jitter = random.uniform(-0.5, 0.5, 3)
        x, y, z = (near * float(base + shift) for base, shift in zip(Camera().position, jitter, strict=True))
        camera = Camera((x, y, z))
        scene = Blocks(number, tuple(_place(random, camera, wanted, 3 * near)), camera)
        if len(scene.things) >= count[0] and min(visible_shares(scene)) >= LEAST_VISIBLE:
            return scene


def relationships(scene: Blocks) -> dict[str, list[list[int]]]:
    """For each relation and each block, the blocks in that relation to it: those in `["left"][0]` are left of block 0.

    >>> red = Block("cube", "red", "metal", "small", (-2.0, -2.0), 0.0)
    >>> blue = Block("cube", "blue", "metal", "small", (2.0, 2.0), 0.0)
    >>> relationships(Blocks(0, (red, blue)))["left"]
    [[], [0]]
    """
    directions = scene.camera.directions()
    places = np.array([thing.middle for thing in scene.things])
    found: dict[str, list[list[int]]] = {}
    for relation in RELATIONS:
        along = places @ np.array(directions[relation])
        found[relation] = [
            [other for other in range(len(along)) if along[other] - along[one] > MARGIN / 2]
            for one in range(len(along))
        ]
    return found


def visible_shares(scene: Blocks) -> list[float]:
    """The visible share of each block: 1 if nothing is in front of it.

    >>> visible_shares(Blocks(0, (Block("cube", "red", "metal", "small", (0.0, 0.0), 0.0),)))
    [1.0]
    """
    nearest, own, *_ = _seen(scene, 120, 80)
    return [float((nearest == index).sum() / max(1, own[index])) for index in range(len(scene.things))]


def draw_blocks(scene: Blocks, width: int = 120, height: int = 80) -> npt.NDArray[np.uint8]:
    """The picture, with an opaque alpha channel as in the official files: uint8 of shape (height, width, 4).

    >>> draw_blocks(make_blocks(0, 1), 60, 40).shape
    (40, 60, 4)
    """
    # Cast at twice the size and averaged, so that edges are smooth.
    small = _coloured(scene, 2 * width, 2 * height).reshape(height, 2, width, 2, 3).mean(axis=(1, 3))
    opaque = np.full((height, width, 1), 255.0)
    return np.concatenate([small.clip(0, 255), opaque], axis=2).round().astype(np.uint8)


def _focal(width: int) -> float:
    return width * 35 / 32


def _place(random: np.random.Generator, camera: Camera, wanted: int, reach: float) -> list[Block]:
    """Blocks placed one after another in free positions; fewer than wanted if the table is full."""
    directions = camera.directions()
    axes = np.array([directions["right"][:2], directions["behind"][:2]])
    blocks: list[Block] = []
    for _ in range(40 * wanted):
        if len(blocks) == wanted:
            break
        place = random.uniform(-reach, reach, 2)
        block = Block(
            shape=str(random.choice(SHAPES)),
            colour=str(random.choice(list(COLOURS))),
            material=str(random.choice(MATERIALS)),
            size=str(random.choice(list(SIZES))),
            place=(float(place[0]), float(place[1])),
            rotation=float(random.uniform(0, 360)),
        )
        clear = all(
            np.abs(axes @ (place - other.place)).min() > MARGIN
            and np.linalg.norm(place - other.place) > SIZES[block.size] + SIZES[other.size] + 0.25
            for other in blocks
        )
        if clear:
            blocks.append(block)
    return blocks


def _seen(scene: Blocks, width: int, height: int) -> tuple[npt.NDArray[np.int64], list[int], list[_Hit], _Rays]:
    """For each pixel the nearest block (-1 for the table); each block's own number of pixels and its hits; the rays."""
    eye, rays = _rays(scene.camera, width, height)
    nearest = np.full((height, width), -1)
    depths = np.full((height, width), np.inf)
    own, hits = [], []
    for index, thing in enumerate(scene.things):
        window = _window(scene.camera, thing, width, height)
        hit = _hit(thing, eye, tuple(part[window] for part in rays))
        own.append(int(np.isfinite(hit.distance).sum()))
        hits.append(hit)
        nearer = hit.distance < depths[window]
        depths[window][nearer] = hit.distance[nearer]
        nearest[window][nearer] = index
    return nearest, own, hits, rays


def _rays(camera: Camera, width: int, height: int) -> tuple[Floats, _Rays]:
    """Where the camera stands, and the direction in which each pixel is seen: across, along and up."""
    right, up, forward = camera.axes
    across = (np.arange(width) + 0.5 - width / 2) / _focal(width)
    down = (np.arange(height) + 0.5 - height / 2) / _focal(width)
    parts = (forward[axis] + across[None, :] * right[axis] - down[:, None] * up[axis] for axis in range(3))
    return np.array(camera.position), tuple(parts)


def _coloured(scene: Blocks, width: int, height: int) -> Floats:
    """The colours of the picture: the table under its light, with the blocks' shadows, and the blocks."""
    nearest, _, hits, rays = _seen(scene, width, height)
    eye = np.array(scene.camera.position)
    ground = np.where(rays[2] < -1e-6, -eye[2] / np.minimum(rays[2], -1e-6), 1e3)
    x, y = (eye[axis] + ground * rays[axis] for axis in range(2))
    light = 0.72 + 0.2 * np.exp(-(x**2 + y**2) / 40)
    for thing in scene.things:
        window = _window(scene.camera, thing, width, height, reach=4.0)
        foot = np.array(thing.place) - 0.6 * thing.radius * _LIGHT[:2]
        away = (x[window] - foot[0]) ** 2 + (y[window] - foot[1]) ** 2
        light[window] *= 1 - 0.5 * np.exp(-away / (1.1 * thing.radius) ** 2)
    colours = light[..., None] * np.array([228.0, 226.0, 222.0])
    for index, (thing, hit) in enumerate(zip(scene.things, hits, strict=True)):
        window = _window(scene.camera, thing, width, height)
        seen = nearest[window] == index
        colours[window][seen] = _shade(thing, hit.normal(seen), tuple(part[window][seen] for part in rays))
    found: Floats = colours
    return found


def _window(camera: Camera, thing: Block, width: int, height: int, reach: float = 1.9) -> tuple[slice, slice]:
    """The part of the picture in which a block can be seen, or whatever lies within `reach` of its radii."""
    x, y, depth = camera.project(thing.middle, width, height)
    pixels = reach * thing.radius * _focal(width) / (depth - 1.9 * thing.radius)
    rows = slice(max(0, int(y - pixels)), max(0, min(height, int(y + pixels) + 2)))
    return rows, slice(max(0, int(x - pixels)), max(0, min(width, int(x + pixels) + 2)))


@dataclass(frozen=True)
class _Hit:
    """How far along each ray a block is met (infinity where it is not), and the surface's direction there."""

    distance: Floats
    normal: Callable[[npt.NDArray[np.bool_]], Floats]
    """For the pixels of a mask, (pixels, 3)."""


def _hit(thing: Block, eye: Floats, rays: _Rays) -> _Hit:
    start, radius = eye - thing.middle, thing.radius
    if thing.shape == "sphere":
        return _hit_sphere(start, rays, radius)
    if thing.shape == "cube":
        return _hit_cube(start, rays, radius, np.radians(thing.rotation))
    return _hit_cylinder(start, rays, radius)


def _hit_sphere(start: Floats, rays: _Rays, radius: float) -> _Hit:
    x, y, z = rays
    along = x * start[0] + y * start[1] + z * start[2]
    distance = _quadratic(x**2 + y**2 + z**2, along, float(start @ start) - radius**2)

    def normal(seen: npt.NDArray[np.bool_]) -> Floats:
        at = distance[seen]
        return np.stack([(start[axis] + at * rays[axis][seen]) / radius for axis in range(3)], axis=-1)

    return _Hit(distance, normal)


def _hit_cube(start: Floats, rays: _Rays, radius: float, turn: float) -> _Hit:
    cos, sin = np.cos(turn), np.sin(turn)
    start = np.array([cos * start[0] + sin * start[1], cos * start[1] - sin * start[0], start[2]])
    turned = (cos * rays[0] + sin * rays[1], cos * rays[1] - sin * rays[0], rays[2])
    enter, leave = [], []
    for axis in range(3):
        step = np.where(np.abs(turned[axis]) < 1e-9, 1e-9, turned[axis])
        side = np.sign(step) * radius
        enter.append((-side - start[axis]) / step)
        leave.append((side - start[axis]) / step)
    first = np.maximum(np.maximum(enter[0], enter[1]), enter[2])
    last = np.minimum(np.minimum(leave[0], leave[1]), leave[2])
    distance = np.where(first < last, first, np.inf)

    def normal(seen: npt.NDArray[np.bool_]) -> Floats:
        faces = [np.where(enter[axis][seen] == first[seen], -np.sign(turned[axis][seen]), 0.0) for axis in range(3)]
        return np.stack([cos * faces[0] - sin * faces[1], sin * faces[0] + cos * faces[1], faces[2]], axis=-1)

    return _Hit(distance, normal)


def _hit_cylinder(start: Floats, rays: _Rays, radius: float) -> _Hit:
    x, y, z = rays
    side = _quadratic(x**2 + y**2, x * start[0] + y * start[1], float(start[:2] @ start[:2]) - radius**2)
    side = np.where(np.abs(start[2] + _finite(side) * z) <= radius, side, np.inf)
    top = (radius - start[2]) / np.minimum(z, -1e-9)
    lid = (start[0] + top * x) ** 2 + (start[1] + top * y) ** 2
    top = np.where(lid <= radius**2, top, np.inf)

    def normal(seen: npt.NDArray[np.bool_]) -> Floats:
        at, over = side[seen], (top < side)[seen]
        about = [(start[axis] + _finite(at) * rays[axis][seen]) / radius for axis in range(2)]
        return np.stack([*(np.where(over, 0.0, part) for part in about), np.where(over, 1.0, 0.0)], axis=-1)

    return _Hit(np.minimum(side, top), normal)


def _quadratic(a: Floats, half_b: Floats, c: float) -> Floats:
    """The nearer root of a t^2 + 2 half_b t + c, infinity if there is none."""
    inside = half_b**2 - a * c
    return np.where(inside > 0, (-half_b - np.sqrt(np.maximum(inside, 0))) / a, np.inf)


def _finite(distance: Floats) -> Floats:
    return np.where(np.isfinite(distance), distance, 0.0)


def _shade(thing: Block, normal: Floats, rays: _Rays) -> Floats:
    """Rubber is dull; metal mirrors the light and the brightness above it."""
    base = np.array(COLOURS[thing.colour], dtype=float)
    light = _LIGHT / np.linalg.norm(_LIGHT)
    facing = (normal @ light).clip(0, 1)[..., None]
    if thing.material == "rubber":
        dull: Floats = base * (0.4 + 0.65 * facing)
        return dull
    seen = np.stack(rays, axis=-1)
    seen /= np.sqrt(rays[0] ** 2 + rays[1] ** 2 + rays[2] ** 2)[..., None]
    met = seen[..., 0] * normal[..., 0] + seen[..., 1] * normal[..., 1] + seen[..., 2] * normal[..., 2]
    mirrored = seen - 2 * met[..., None] * normal
    glint = (mirrored @ light).clip(0, 1)[..., None] ** 12
    sky = mirrored[..., 2:].clip(0, 1)
    lamps = np.cos(5 * np.arctan2(mirrored[..., 1:2], mirrored[..., :1])).clip(0, 1) ** 3
    bright: Floats = base * (0.35 + 0.35 * facing + 0.3 * sky) + 190 * glint + 70 * sky + 60 * lamps * (1 - sky)
    return bright
