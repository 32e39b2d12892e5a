from __future__ import annotations

import numpy as np

from holdfast.world.vocabulary import THINGS
from holdfast.world.writers.portraits import portrait, some_thing, sorts


def test_sorts_are_all_different_and_possible() -> None:
    found = sorts(1_000, list(THINGS))
    assert len(set(found)) == 1_000
    for noun, colour, pattern in found:
        assert colour in THINGS[noun].colours
        assert pattern in THINGS[noun].patterns
    assert {noun for noun, _, _ in found[: len(THINGS)]} == set(THINGS)


def test_what_is_given_is_kept_and_the_rest_varies() -> None:
    random = np.random.default_rng(0)
    things = [some_thing(random, "car", colour="red", size="small") for _ in range(20)]
    assert {(thing.noun, thing.colour, thing.size) for thing in things} == {("car", "red", "small")}
    assert len({thing.pattern for thing in things}) > 1


def test_about_three_in_ten_portraits_have_a_patch_of_one_colour() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        picture = portrait(random, some_thing(random, "dog"), 32)
        # A patch is flat; everything else has noise.
        flat = (picture[1:, 1:] == picture[:-1, :-1]).all(-1) & (picture[1:, 1:] == picture[1:, :-1]).all(-1)
        covered += flat.sum() > 36
    assert 35 < covered < 85
