"""Pictures of one thing each, for datasets of labelled images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from holdfast.world.draw import render_thing
from holdfast.world.scene import Box, Thing
from holdfast.world.vocabulary import SIZES, THINGS


def some_thing(random: np.random.Generator, noun: str, *, colour: str = "", size: str = "", pattern: str = "") -> Thing:
    """A thing of a noun, typical of its kind except for the given colour, size and pattern.

    >>> some_thing(np.random.default_rng(0), "car", colour="red").colour
    'red'
    """
    kind = THINGS[noun]
    return Thing(
        noun=noun,
        colour=colour or _one(random, kind.colours),
        size=size or _one(random, SIZES),
        material=_one(random, kind.materials),
        pattern=pattern or _one(random, kind.patterns),
        # Only for variety: a picture of one thing repositions it.
        box=Box(*(float(number) for number in random.uniform(0.1, 0.4, 4))),
    )


def portrait(random: np.random.Generator, thing: Thing, side: int) -> npt.NDArray[np.uint8]:
    """A square picture that the thing fills, sometimes partly occluded, so that no dataset is learnt without error.

    >>> portrait(np.random.default_rng(0), some_thing(np.random.default_rng(0), "dog"), 32).shape
    (32, 32, 3)
    """
    picture = render_thing(thing, side).copy()
    if random.random() < 0.3:
        top, left = (int(number) for number in random.integers(0, side // 2, 2))
        size = int(random.integers(side // 4, side // 2 + 1))
        picture[top : top + size, left : left + size] = random.integers(60, 200, 3)
    return picture


def sorts(count: int, nouns: Sequence[str]) -> list[tuple[str, str, str]]:
    """`count` different (noun, colour, pattern): each noun once, then each again in another colour, and so on.

    >>> sorts(3, ("cat", "dog"))
    [('cat', 'black', 'plain'), ('dog', 'black', 'plain'), ('cat', 'white', 'plain')]
    """
    found: list[tuple[str, str, str]] = []
    for turn in range(60):
        for noun in nouns:
            kind = THINGS[noun]
            if turn < len(kind.colours) * len(kind.patterns) and len(found) < count:
                pattern = kind.patterns[turn // len(kind.colours)]
                found.append((noun, kind.colours[turn % len(kind.colours)], pattern))
    assert len(found) == count, f"{count} sorts are too many for {len(nouns)} nouns"
    return found


def _one(random: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(random.integers(len(options)))]
