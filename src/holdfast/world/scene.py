"""Scenes: what is where, what it is like, and what it does. Everything follows from (seed, number)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """A rectangle in units of the picture's sides: left, top, width, height, each in [0, 1]."""

    left: float
    top: float
    width: float
    height: float

    @property
    def centre(self) -> tuple[float, float]:
        """The middle: across, down."""
        return self.left + self.width / 2, self.top + self.height / 2


@dataclass(frozen=True)
class Part:
    """A named part of a thing ("head", "wheel"), with its own rectangle in the picture."""

    name: str
    box: Box


@dataclass(frozen=True)
class Thing:
    """Something in a scene.

    `verb` is what it does (a lemma such as "stand"), `other` the index of the thing to which it does it, if any.
    """

    noun: str
    colour: str
    size: str
    material: str
    pattern: str
    box: Box
    verb: str = ""
    other: int | None = None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Scene:
    """A place with things, the farthest first, so that they can be drawn in order."""

    number: int
    place: str
    things: tuple[Thing, ...]
