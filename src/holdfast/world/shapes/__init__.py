"""Silhouettes: each noun as a few polygons, in a pose, filling a unit square. Each file holds one group of things."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError, nearest
from holdfast.world.shapes.animals import ANIMALS, UNPOSED
from holdfast.world.shapes.clothes import CLOTHES
from holdfast.world.shapes.devices import DEVICES
from holdfast.world.shapes.food import FOOD
from holdfast.world.shapes.furniture import FURNITURE
from holdfast.world.shapes.people import person
from holdfast.world.shapes.plants import PLANTS
from holdfast.world.shapes.solids import SOLIDS
from holdfast.world.shapes.sports import SPORTS
from holdfast.world.shapes.street import STREET
from holdfast.world.shapes.tableware import TABLEWARE
from holdfast.world.shapes.things import THINGS
from holdfast.world.shapes.vehicles import VEHICLES

_TABLE: dict[str, str] = {
    noun: text
    for kind in (
        ANIMALS,
        UNPOSED,
        VEHICLES,
        STREET,
        SPORTS,
        PLANTS,
        FOOD,
        TABLEWARE,
        FURNITURE,
        DEVICES,
        CLOTHES,
        THINGS,
        SOLIDS,
    )
    for noun, text in kind.items()
}
_CORNERS = np.linspace(0, 2 * np.pi, 18, endpoint=False)


@dataclass(frozen=True)
class Shape:
    """One polygon: the part of the thing it shows ("" for a detail), the name of its fill, its corners (n, 2)."""

    part: str
    fill: str
    points: NDArray[np.float64]


@dataclass(frozen=True)
class Silhouette:
    """The shapes of a thing, rearmost first, scaled to fill the unit square, and its ratio of width to height."""

    shapes: tuple[Shape, ...]
    aspect: float

    @cached_property
    def corners(self) -> NDArray[np.float64]:
        """The corners of all shapes, one shape after another."""
        return np.concatenate([shape.points for shape in self.shapes])

    @cached_property
    def fills(self) -> list[str]:
        """The names of the fills: "none", "main", then all others."""
        return ["none", *dict.fromkeys(("main", *(shape.fill for shape in self.shapes if shape.fill != "none")))]

    @cached_property
    def outlines(self) -> list[tuple[slice, int]]:
        """For each shape, which of the flattened corners are its own, and the number of its fill."""
        ends = np.cumsum([shape.points.size for shape in self.shapes]).tolist()
        spans = map(slice, [0, *ends], ends)
        return [(span, self.fills.index(shape.fill)) for span, shape in zip(spans, self.shapes, strict=True)]


def _points(kind: str, n: list[float]) -> NDArray[np.float64]:
    """The corners of one primitive: oval and box by two corners, line by its ends and a width, poly by its corners."""
    if kind == "oval":
        centre, radius = (n[0] + n[2]) / 2, (n[2] - n[0]) / 2
        middle, height = (n[1] + n[3]) / 2, (n[3] - n[1]) / 2
        return np.stack([centre + radius * np.cos(_CORNERS), middle + height * np.sin(_CORNERS)], 1)
    if kind == "box":
        return np.array([[n[0], n[1]], [n[2], n[1]], [n[2], n[3]], [n[0], n[3]]])
    if kind == "line":
        first, last = np.array(n[0:2]), np.array(n[2:4])
        along = last - first
        across = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9) * n[4] / 2
        return np.stack([first - across, first + across, last + across, last - across])
    assert kind == "poly", kind
    return np.array(n).reshape(-1, 2)


def _parse(text: str) -> list[Shape]:
    shapes = []
    text = text.replace("\n            ", " ")  # a line that is indented further continues the previous one
    for line in text.replace(";", "\n").splitlines():
        if line.strip():
            part, fill, kind, *numbers = line.split()
            shapes.append(Shape("" if part == "-" else part, fill, _points(kind, [float(n) for n in numbers])))
    return shapes


def _bounds(shapes: list[Shape]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points = np.concatenate([shape.points for shape in shapes if shape.fill != "none"])
    return points.min(0), points.max(0)


def _moved(shape: Shape, matrix: list[list[float]], by: tuple[float, float] = (0, 0)) -> Shape:
    return Shape(shape.part, shape.fill, shape.points @ np.array(matrix).T + np.array(by))


def _turned(shapes: list[Shape]) -> list[Shape]:
    """The shapes turned onto the back, the head to the left."""
    return [_moved(shape, [[0, 1], [-1, 0]]) for shape in shapes]


def _posed(noun: str, shapes: list[Shape], pose: str) -> list[Shape]:
    """A thing's shapes in a pose; an animal's poses are small variations of standing."""
    if noun == "airplane" and pose == "fly":  # climbing
        return [_moved(shape, [[0.97, 0.26], [-0.26, 0.97]]) for shape in shapes]
    if noun not in ANIMALS:
        return _turned(shapes) if pose == "lie" else shapes
    if pose == "lie":  # the legs are folded away, and the rest is flat
        return [_moved(shape, [[1, 0], [0, 0.72]]) for shape in shapes if shape.part not in ("leg", "foot")]
    if pose == "walk":  # every second leg steps forward
        leg, moved = 0, []
        for shape in shapes:
            if shape.part == "leg":
                top, step = shape.points[:, 1].min(), 0.22 if leg % 2 else -0.22
                leg += 1
                shape = _moved(shape, [[1, step], [0, 1]], (-step * top, 0))
            moved.append(shape)
        return moved
    if pose == "eat":  # something to eat in front of the mouth
        head = next((shape for shape in shapes if shape.part == "head"), shapes[0])
        right, low = head.points.max(0)
        bite = f"- orange oval {right + 2} {low - 6} {right + 20} {low + 10}; - green line {right + 14} {low - 4} "
        return [*shapes, *_parse(bite + f"{right + 24} {low - 16} 5")]
    return shapes


@cache
def silhouette(noun: str, pose: str = "", mirrored: bool = False) -> Silhouette:
    """The silhouette of a noun, facing right, or left if mirrored.

    A pose is a verb's lemma. Persons come in three forms: for this purpose "man", "woman" and "child" are nouns.

    >>> long, tall = silhouette("bus"), silhouette("giraffe")
    >>> long.aspect > 1 > tall.aspect
    True
    """
    if noun in ("man", "woman", "child"):
        shapes = _parse(person(noun, pose))
        if pose == "lie":
            shapes = _turned(shapes)
    elif f"{noun} {pose}" in _TABLE:
        shapes = _parse(_TABLE[f"{noun} {pose}"])
    elif noun in _TABLE:
        shapes = _posed(noun, _parse(_TABLE[noun]), pose)
    else:
        raise UserError(
            f"the synthetic world cannot draw {noun!r}: {nearest(noun, ['man', 'woman', 'child', *_TABLE])}"
        )
    low, high = _bounds(shapes)
    extent = high - low
    unit = [Shape(shape.part, shape.fill, (shape.points - low) / extent) for shape in shapes]
    if mirrored and noun != "stop sign":  # letters are not mirrored
        unit = [_moved(shape, [[-1, 0], [0, 1]], (1, 0)) for shape in unit]
    return Silhouette(tuple(unit), float(extent[0] / extent[1]))
