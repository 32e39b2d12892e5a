"""Pictures: that they show what the scene says."""

from __future__ import annotations

import io
import math
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from holdfast.errors import UserError
from holdfast.world.draw import encode_image, render, render_thing, save_image
from holdfast.world.scene import Box, Scene, Thing, make_scene
from holdfast.world.vocabulary import COLOURS, PLACES, SOLIDS, THINGS, person_word


def plain(noun: str, **changes: str) -> Thing:
    """A thing in which only the noun differs from others."""
    thing = Thing(noun, "red", "large", "rubber", "plain", Box(0.2, 0.2, 0.5, 0.5))
    return replace(thing, **changes)  # type: ignore[arg-type]


def without(scene: Scene, index: int) -> Scene:
    return replace(scene, things=scene.things[:index] + scene.things[index + 1 :])


def test_the_same_scene_gives_the_same_bytes_and_leaves_no_trace_in_the_next() -> None:
    scene = make_scene(3, 8)
    first = render(scene)
    render(make_scene(3, 9))
    assert first.dtype == np.uint8
    assert first.shape == (72, 96, 3)
    assert np.array_equal(first, render(make_scene(3, 8)))
    assert encode_image(first) == encode_image(render(scene))
    assert not np.array_equal(first, render(make_scene(4, 8)))


@pytest.mark.parametrize(("width", "height"), [(96, 72), (64, 48), (100, 90)])
def test_a_thing_changes_pixels_within_its_box_alone(width: int, height: int) -> None:
    for number in range(40):
        scene = make_scene(5, number)
        picture = render(scene, width, height)
        for index, thing in enumerate(scene.things):
            changed = (picture != render(without(scene, index), width, height)).any(2)
            box = thing.box
            top, left = math.floor(box.top * height), math.floor(box.left * width)
            bottom, right = math.ceil((box.top + box.height) * height), math.ceil((box.left + box.width) * width)
            allowed = np.zeros_like(changed)
            allowed[top:bottom, left:right] = True
            assert not (changed & ~allowed).any(), (number, thing.noun)


def test_a_thing_reaches_the_sides_of_its_box() -> None:
    for noun in THINGS:
        scene = make_scene(5, 1, nouns=[noun])
        box = scene.things[0].box
        changed = (render(scene, 192, 144) != render(without(scene, 0), 192, 144)).any(2)
        rows, columns = np.nonzero(changed.any(1))[0], np.nonzero(changed.any(0))[0]
        assert abs(rows[0] - box.top * 144) < 4, noun
        assert abs(rows[-1] + 1 - (box.top + box.height) * 144) < 4, noun
        assert abs(columns[0] - box.left * 192) < 4, noun
        assert abs(columns[-1] + 1 - (box.left + box.width) * 192) < 4, noun


def test_every_noun_looks_different_from_every_other() -> None:
    masks = {}
    for noun in [*THINGS, *SOLIDS]:
        scene = Scene(0, "snow", (replace(plain(noun), box=Box(0.1, 0.1, 0.8, 0.8)),))
        masks[noun] = render(scene, 64, 64).astype(float)
    for one, other in combinations(masks, 2):
        assert abs(masks[one] - masks[other]).mean() > 6, (one, other)


@pytest.mark.parametrize("noun", ["cat", "dog", "horse", "person", "bird", "airplane", "surfboard"])
def test_every_pose_looks_different(noun: str) -> None:
    verbs = THINGS[noun].verbs
    pictures = {verb: render_thing(plain(noun, verb=verb), 48).astype(float) for verb in verbs}
    for one, other in combinations(verbs, 2):
        assert abs(pictures[one] - pictures[other]).mean() > 1.5, (one, other)


def test_attributes_show() -> None:
    base = render_thing(plain("sports ball"), 48).astype(float)
    for pattern in ("striped", "spotted", "checked"):
        box = plain("sports ball", pattern=pattern)
        assert abs(base - render_thing(box, 48)).mean() > 3
    assert abs(base - render_thing(plain("sports ball", material="metal"), 48)).mean() > 1
    forms = [("large", "plain"), ("large", "checked"), ("small", "plain")]
    assert [person_word(*form) for form in forms] == ["man", "woman", "child"]


@pytest.mark.parametrize("colour", COLOURS)
def test_a_colour_is_nearer_to_itself_than_to_any_other(colour: str) -> None:
    scene = Scene(1, "room", (plain("sphere", colour=colour),))
    changed = (render(scene) != render(without(scene, 0))).any(2)
    mean = np.median(render(scene)[changed], 0)
    distance = {name: float(np.linalg.norm(mean - np.array(value))) for name, value in COLOURS.items()}
    assert min(distance, key=distance.__getitem__) == colour


def test_places_look_different() -> None:
    pictures = [render(Scene(0, place, ())).astype(float) for place in PLACES]
    assert min(abs(one - other).mean() for one, other in combinations(pictures, 2)) > 6


def test_small_things_are_smaller() -> None:
    def covered(size: str) -> int:
        thing = plain("apple", size=size)
        picture = render_thing(thing, 64).astype(float)
        return int((abs(picture - picture[0, 0]).max(2) > 45).sum())

    assert covered("small") < 0.75 * covered("large")


@pytest.mark.parametrize(
    ("kind", "form", "mode"),
    [
        ("jpeg", "JPEG", "RGB"),
        ("png", "PNG", "RGB"),
        ("grey-jpeg", "JPEG", "L"),
        ("grey-png", "PNG", "L"),
        ("cmyk-jpeg", "JPEG", "CMYK"),
    ],
)
def test_the_kind_decides_the_bytes_whatever_the_name(tmp_path: Path, kind: str, form: str, mode: str) -> None:
    picture = render(make_scene(0, 0))
    path = tmp_path / "new" / "folder" / "image.JPEG"
    save_image(path, picture, kind)
    assert path.read_bytes() == encode_image(picture, kind)
    with Image.open(path) as image:
        assert (image.format, image.mode, image.size) == (form, mode, (96, 72))
        back = np.asarray(image.convert("RGB"), dtype=float)
    expected = picture.astype(float)
    if mode == "L":
        expected = np.repeat((expected @ [0.299, 0.587, 0.114])[..., None], 3, 2)
    assert abs(back - expected).mean() < (0.01 if kind == "png" else 6)


def test_a_grey_array_is_saved_as_it_is() -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    with Image.open(io.BytesIO(encode_image(grey, "png"))) as image:
        assert np.array_equal(np.asarray(image), grey)


def test_wrong_calls_say_what_is_wrong() -> None:
    picture = render(make_scene(0, 0))
    with pytest.raises(UserError, match="did you mean jpeg"):
        encode_image(picture, "jpg")
    with pytest.raises(UserError, match="too small"):
        render(make_scene(0, 0), 4, 4)
    with pytest.raises(UserError, match="too small"):
        render_thing(plain("dog"), 2)
    with pytest.raises(UserError, match="cannot draw 'dragon'"):
        render_thing(plain("dragon"), 32)


def test_drawing_is_quick() -> None:
    render(make_scene(0, 0))
    start = time.process_time()
    for number in range(60):
        render(make_scene(6, number))
    # Five times slower than what one core does, so that a busy machine passes.
    assert 60 / (time.process_time() - start) > 40
