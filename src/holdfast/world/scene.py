"""Scenes: things, their places, attributes and actions. Everything is determined by (seed, number)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from holdfast.errors import UserError, nearest
from holdfast.world.backdrop import horizon
from holdfast.world.shapes import Silhouette, silhouette
from holdfast.world.vocabulary import (
    COCO_NOUNS,
    FOODS,
    HANDHELD,
    MOUNTS,
    PLACES,
    SIZES,
    SOLIDS,
    THINGS,
    Kind,
    person_word,
)


@dataclass(frozen=True)
class Box:
    """A rectangle in units of the picture's sides: left, top, width, height, each in [0, 1]."""

    left: float
    top: float
    width: float
    height: float

    @property
    def centre(self) -> tuple[float, float]:
        """The centre: across, down."""
        return self.left + self.width / 2, self.top + self.height / 2


@dataclass(frozen=True)
class ThingPart:
    """A named part of a thing ("head", "wheel"), with its own rectangle in the picture."""

    name: str
    box: Box


@dataclass(frozen=True)
class Thing:
    """Something in a scene.

    `verb` is its action (a lemma such as "stand"), and `other` the index of the thing it acts on, if any.
    """

    noun: str
    colour: str
    size: str
    material: str
    pattern: str
    box: Box
    verb: str = ""
    other: int | None = None


@dataclass(frozen=True)
class Scene:
    """A place with things, the farthest first, so that they can be drawn in order."""

    number: int
    place: str
    things: tuple[Thing, ...]

    def __hash__(self) -> int:  # these two are enough to tell most scenes apart, and the things take long to hash
        return hash((self.number, self.place))


# Pictures are composed for an aspect ratio of four by three; other ratios stretch them.
_PICTURE_ASPECT = 4 / 3
_MARGIN = 0.02
_WHOLE = Box(0, 0, 1, 1)


@dataclass(frozen=True)
class _Group:
    """Things that are placed together (a rider and a horse), with boxes relative to the group's own box."""

    things: tuple[Thing, ...]
    boxes: tuple[Box, ...]
    width: float
    height: float
    actor: int = 0  # the thing that faces the other one of the group


def silhouette_of(thing: Thing, mirrored: bool) -> Silhouette:
    """The silhouette of a thing, chosen by its noun, the kind of person it is, and its pose.

    >>> box = Box(0.1, 0.1, 0.5, 0.5)
    >>> dog = Thing("dog", "brown", "small", "fur", "plain", box)
    >>> silhouette_of(replace(dog, verb="lie"), False).aspect > silhouette_of(dog, False).aspect
    True
    """
    noun = person_word(thing.size, thing.pattern) if thing.noun == "person" else thing.noun
    return silhouette(noun, thing.verb, mirrored)


def parts_of(thing: Thing) -> list[ThingPart]:
    """The named parts of a thing in a scene, with their boxes; things face the middle of the picture.

    >>> [part.name for part in parts_of(Thing("vase", "red", "small", "glass", "plain", Box(0.1, 0.1, 0.5, 0.5)))]
    ['mouth', 'body']
    """
    box, parts = thing.box, []
    for shape in silhouette_of(thing, box.centre[0] > 0.5).shapes:
        if shape.part:
            low, high = shape.points.min(0).tolist(), shape.points.max(0).tolist()
            left, top = box.left + low[0] * box.width, box.top + low[1] * box.height
            width, height = (high[0] - low[0]) * box.width, (high[1] - low[1]) * box.height
            parts.append(ThingPart(shape.part, Box(round(left, 4), round(top, 4), round(width, 4), round(height, 4))))
    return parts


def _kind(noun: str) -> Kind:
    kind = THINGS.get(noun) or SOLIDS.get(noun)
    if kind is None:
        raise UserError(f"the synthetic world has no {noun!r}: {nearest(noun, [*THINGS, *SOLIDS])}")
    return kind


def _choose(random: np.random.Generator, among: tuple[str, ...] | list[str]) -> str:
    return among[random.integers(len(among))]


def _pattern(noun: str, kind: Kind, random: np.random.Generator) -> str:
    """Half of the things are plain; of persons, all patterns are equally likely, as they mark man or woman."""
    plain = noun != "person" and "plain" in kind.patterns and random.random() < 0.5
    return "plain" if plain else _choose(random, kind.patterns)


@cache
def _verbs_alone(noun: str) -> tuple[str, ...]:
    return tuple(verb for verb in _kind(noun).verbs if verb not in ("hold", "ride"))


def _thing(noun: str, random: np.random.Generator, verb: str | None = None) -> Thing:
    """A thing with random attributes, not yet placed."""
    kind = _kind(noun)
    alone = _verbs_alone(noun)
    return Thing(
        noun=noun,
        colour=_choose(random, kind.colours),
        size=_choose(random, SIZES),
        material=_choose(random, kind.materials),
        pattern=_pattern(noun, kind, random),
        box=_WHOLE,
        verb=verb if verb is not None else (_choose(random, alone) if alone else ""),
    )


def _extent(thing: Thing, scale: float) -> tuple[float, float]:
    """Width and height in the picture: the usual size of the noun, scaled."""
    side = (0.28 + 0.40 * _kind(thing.noun).large) * (0.78 if thing.size == "small" else 1.2) * scale
    aspect = silhouette_of(thing, False).aspect
    height = side * aspect**-0.4
    width = height * aspect / _PICTURE_ASPECT
    fit = min(1.0, 0.9 / width, 0.9 / height)
    return width * fit, height * fit


def _single(thing: Thing, scale: float) -> _Group:
    width, height = _extent(thing, scale)
    return _Group((thing,), (_WHOLE,), width, height)


def _pair(actor: Thing, other: Thing, scale: float) -> _Group:
    """An actor and the thing it rides, holds or eats, in contact; the rear one comes first."""
    wide, high = _extent(actor, scale)
    other_wide, other_high = _extent(other, scale)
    if actor.verb == "ride":
        flat = other_high < 0.2
        first = Box(0.5 * (max(wide, other_wide) - other_wide), high * (0.95 if flat else 0.62), other_wide, other_high)
        second = Box(0.5 * (max(wide, other_wide) - wide), 0.0, wide, high)
        if not flat:  # astride: the rider's legs hang in front of the flank
            first = replace(first, top=max(high - 0.62 * other_high, 0.5 * high))
        things, boxes, actor_at = (other, actor), (first, second), 1
    else:
        shrink = min(1.0, 0.26 / other_high, 0.2 / other_wide)
        other_wide, other_high = other_wide * shrink, other_high * shrink
        level = 0.36 if actor.verb == "hold" else 0.16
        reach = wide * (0.86 if actor.verb == "hold" else 0.62)
        top = level * high - other_high / 2
        lift = max(0.0, -top)
        things, actor_at = (actor, other), 0
        boxes = (Box(0, lift, wide, high), Box(reach, top + lift, other_wide, other_high))
    width = max(box.left + box.width for box in boxes)
    height = max(box.top + box.height for box in boxes)
    relative = tuple(Box(box.left / width, box.top / height, box.width / width, box.height / height) for box in boxes)
    fit = min(1.0, 0.9 / width, 0.9 / height)
    return _Group(things, relative, width * fit, height * fit, actor_at)


_Taken = tuple[float, float, float, float, float]
"""The edges of a box and its area: left, top, right, bottom, area."""


def _covered(left: float, top: float, width: float, height: float, taken: list[_Taken], enough: float) -> float:
    """The largest share of two boxes' smaller one that they have in common; at `enough`, the search ends."""
    right, bottom, area, most = left + width, top + height, width * height, 0.0
    for start, high, end, low, other in taken:
        across = (right if right < end else end) - (left if left > start else start)
        down = (bottom if bottom < low else low) - (top if top > high else high)
        if across > 0 and down > 0:
            most = max(most, across * down / min(area, other))
            if most >= enough:
                break
    return most


def _place(group: _Group, taken: list[_Taken], ground: float, random: np.random.Generator) -> tuple[Box, float]:
    """The position of a group, in the air or on the ground, wherever it covers others least, and how much that is."""
    width, height = group.width, group.height
    free, lowest = 1 - 2 * _MARGIN - width, 1 - _MARGIN - height
    flying = group.things[group.actor].verb == "fly"
    sky = max(0.0, min(ground, lowest) - 0.12)
    least, best = 2.0, (_MARGIN, _MARGIN)
    for across, down in random.random((24, 2)).tolist():
        left = _MARGIN + across * free
        if flying:
            top = _MARGIN + down * sky
        else:
            top = max(_MARGIN, min(lowest, ground + 0.06 - height + down * (lowest - ground - 0.06 + height)))
        covered = _covered(left, top, width, height, taken, least)
        if covered < least:
            least, best = covered, (left, top)
        if least <= 0.05:
            break
    return Box(*best, width, height), least


def _settle(group: _Group, box: Box, first: int) -> list[Thing]:
    """The things of a group in the picture, to be numbered from `first`; the actor faces the middle.

    For that, the group may be mirrored.
    """

    def at(relative: Box, mirrored: bool) -> Box:
        left = 1 - relative.left - relative.width if mirrored else relative.left
        return Box(
            round(box.left + left * box.width, 4),
            round(box.top + relative.top * box.height, 4),
            round(relative.width * box.width, 4),
            round(relative.height * box.height, 4),
        )

    boxes = [at(relative, False) for relative in group.boxes]
    if len(boxes) == 2 and boxes[group.actor].centre[0] > 0.5:
        boxes = [at(relative, True) for relative in group.boxes]
    acts_on = {group.actor: first + 1 - group.actor} if len(group.things) == 2 else {}
    return [
        replace(thing, box=where, other=acts_on.get(index))
        for index, (thing, where) in enumerate(zip(group.things, boxes, strict=True))
    ]


@cache
def nouns_in(place: str) -> tuple[str, ...]:
    """COCO's nouns that occur in a place.

    >>> nouns_in("sea")
    ('boat', 'bird', 'surfboard')
    """
    return tuple(noun for noun in COCO_NOUNS if place in THINGS[noun].places)


def _cast(random: np.random.Generator, count: tuple[int, int]) -> tuple[str, list[str]]:
    """A place and the nouns of a scene there: often a person, sometimes with something to ride, hold or eat."""
    total = int(random.integers(count[0], count[1] + 1))
    event = random.random()
    if total >= 2 and event < 0.42:
        other = _choose(random, MOUNTS if event < 0.14 else HANDHELD if event < 0.3 else FOODS)
        nouns, key = ["person", other], other
    else:
        key = "person" if random.random() < 0.25 else _choose(random, COCO_NOUNS)
        nouns = [key]
    place = _choose(random, _kind(key).places)
    here = nouns_in(place)
    while len(nouns) < total:
        chance = random.random()
        nouns.append("person" if chance < 0.12 else _choose(random, nouns) if chance < 0.27 else _choose(random, here))
    return place, nouns[:total]


def _verb_for(other: str, random: np.random.Generator) -> str:
    if other in MOUNTS:
        return "ride"
    if other in FOODS:
        return "eat" if random.random() < 0.75 else "hold"
    return "hold" if other in HANDHELD else ""


def make_scene(seed: int, number: int, *, nouns: Sequence[str] | None = None, count: tuple[int, int] = (2, 4)) -> Scene:
    """The scene with this number: the same seed and number always yield the same scene.

    Without `nouns`, it has `count` (minimum, maximum) things with COCO's nouns. With `nouns`, it has one thing for each
    of them, regardless of `count`; a noun may occur twice.

    >>> scene = make_scene(0, 7, nouns=["dog", "umbrella"])
    >>> sorted(thing.noun for thing in scene.things)
    ['dog', 'umbrella']
    >>> scene == make_scene(0, 7, nouns=["dog", "umbrella"])
    True
    """
    if nouns is None and not 1 <= count[0] <= count[1] <= 12:
        raise UserError(f"count must be a minimum and a maximum between 1 and 12 things, not {count}")
    if nouns is not None and not 1 <= len(nouns) <= 12:
        raise UserError(f"a scene has between 1 and 12 things, not {len(nouns)}")
    random = np.random.default_rng([seed, number])
    if nouns is None:
        place, names = _cast(random, count)
    else:
        names = list(nouns)
        fitting = [_kind(noun).places for noun in names]
        shared = [each for each in PLACES if all(each in places for places in fitting)]
        place = _choose(random, shared or _kind(_choose(random, names)).places)
    scale = min(1.0, 1.8 / math.sqrt(len(names)))

    waiting, groups = list(names), []
    others = [noun for noun in names if noun in MOUNTS or noun in HANDHELD or noun in FOODS]
    # For given nouns, chance decides; a scene that we cast ourselves always has its event.
    if "person" in names and others and (nouns is None or random.random() < 0.6):
        other = others[0]
        verb = _verb_for(other, random)
        waiting.remove("person")
        waiting.remove(other)
        resting = "lie" if other in ("surfboard", "skis") and verb == "ride" else "stand" if verb == "ride" else None
        second = _thing(other, random, resting if "stand" in _kind(other).verbs else None)
        groups.append(_pair(_thing("person", random, verb), second, scale))
    groups.extend(_single(_thing(noun, random), scale) for noun in waiting)

    # Large things choose their places first.
    groups.sort(key=lambda group: -group.width * group.height)
    ground = horizon(place)
    taken: list[_Taken] = []
    placed: list[tuple[_Group, Box]] = []
    for group in groups:
        box, covered = _place(group, taken, ground, random)
        for _ in range(4):  # things that would be hidden are drawn smaller
            if covered < 0.2:
                break
            group = replace(group, width=group.width * 0.85, height=group.height * 0.85)
            box, covered = _place(group, taken, ground, random)
        taken.append((box.left, box.top, box.left + box.width, box.top + box.height, box.width * box.height))
        placed.append((group, box))
    placed.sort(key=lambda each: each[1].top + each[1].height)

    things: list[Thing] = []
    for group, box in placed:
        things += _settle(group, box, len(things))
    return Scene(number, place, tuple(things))


@lru_cache(maxsize=64)
def relations(scene: Scene) -> tuple[tuple[int, str, int], ...]:
    """Which things are clearly left of, right of, above or below which others, by the centres of their boxes.

    >>> dog = Thing("dog", "brown", "small", "fur", "plain", Box(0.0, 0.5, 0.2, 0.2))
    >>> relations(Scene(0, "field", (dog, replace(dog, box=Box(0.6, 0.5, 0.2, 0.2)))))
    ((0, 'left of', 1), (1, 'right of', 0))
    """
    centres = [thing.box.centre for thing in scene.things]
    found = []
    for first, (x, y) in enumerate(centres):
        for second, (other_x, other_y) in enumerate(centres):
            if first != second:
                across, down = other_x - x, other_y - y
                if abs(across) > 0.2:
                    found.append((first, "left of" if across > 0 else "right of", second))
                if abs(down) > 0.2:
                    found.append((first, "above" if down > 0 else "below", second))
    return tuple(found)
