from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from holdfast.world.block_questions import Balance, ask, run_program
from holdfast.world.blocks import (
    LEAST_VISIBLE,
    Block,
    Blocks,
    Camera,
    draw_blocks,
    make_blocks,
    relationships,
    visible_shares,
)
from world.judges import guessed


def table(*blocks: Block) -> Blocks:
    return Blocks(0, blocks)


RED = Block("sphere", "red", "rubber", "large", (0.0, 0.0), 0.0)


def test_a_scene_follows_from_seed_and_number() -> None:
    assert make_blocks(1, 5) == make_blocks(1, 5)
    assert make_blocks(1, 5) != make_blocks(2, 5)
    assert make_blocks(1, 5) != make_blocks(1, 6)


def test_there_are_three_to_ten_blocks_apart_and_in_view() -> None:
    for number in range(12):
        scene = make_blocks(0, number)
        assert 3 <= len(scene.things) <= 10
        assert min(visible_shares(scene)) >= LEAST_VISIBLE
        for index, one in enumerate(scene.things):
            x, y, depth = scene.camera.project(one.middle, 480, 320)
            assert 0 < x < 480
            assert 0 < y < 320
            assert depth > 0
            for other in scene.things[:index]:
                assert np.hypot(*(np.array(one.place) - other.place)) > 0.9


def test_a_hidden_block_is_seen_to_be_hidden() -> None:
    # On the line from the camera to the far block stands a large one.
    toward = np.array(Camera().position[:2]) / np.hypot(*Camera().position[:2])
    far = replace(RED, size="small", place=(0.0, 0.0))
    near = replace(RED, colour="blue", place=tuple(1.3 * toward))
    assert visible_shares(table(far))[0] == 1.0
    hidden, whole = visible_shares(table(far, near))
    assert hidden < 0.5
    assert whole == 1.0


def test_relationships_by_hand() -> None:
    camera = Camera()
    right, _, forward = camera.axes
    ahead = np.array([forward[0], forward[1]]) / np.hypot(forward[0], forward[1])
    beside = replace(RED, place=tuple(2 * right[:2]))
    behind = replace(RED, place=tuple(2 * ahead))
    found = relationships(table(RED, beside, behind))
    assert found["right"] == [[1], [], [1]]
    assert found["left"] == [[], [0, 2], []]
    assert found["behind"] == [[2], [2], []]
    assert found["front"] == [[], [], [0, 1]]


@pytest.mark.parametrize("shape", ["cube", "sphere", "cylinder"])
def test_a_block_is_drawn_in_its_colour_where_it_stands(shape: str) -> None:
    picture = draw_blocks(table(replace(RED, shape=shape)), 120, 80)
    empty = draw_blocks(table(), 120, 80)
    assert picture.shape == (80, 120, 4)
    assert (picture[..., 3] == 255).all()
    x, y, _ = Camera().project(replace(RED, shape=shape).middle, 120, 80)
    red, green, blue, _ = (int(value) for value in picture[round(y), round(x)])
    assert red > 1.5 * max(green, blue)
    assert (picture[:5] == empty[:5]).all()


def test_every_attribute_changes_the_picture() -> None:
    base = draw_blocks(table(RED)).astype(int)
    for change in ({"shape": "cube"}, {"colour": "green"}, {"material": "metal"}, {"size": "small"}):
        other = draw_blocks(table(replace(RED, **change))).astype(int)
        assert (np.abs(other - base).max(-1) > 25).sum() > 15, change


def test_a_program_is_run_as_it_says() -> None:
    scene = table(RED, replace(RED, shape="cube", place=(2.0, 2.0)), replace(RED, size="small", place=(-2.0, 2.0)))
    start = {"inputs": [], "function": "scene", "value_inputs": []}
    large = {"inputs": [0], "function": "filter_size", "value_inputs": ["large"]}
    count = {"inputs": [1], "function": "count", "value_inputs": []}
    assert run_program([start, large, count], scene) == "2"
    unique = {"inputs": [1], "function": "unique", "value_inputs": []}
    assert run_program([start, large, unique], scene) is None


def test_yes_and_no_are_given_equally_often_for_each_form() -> None:
    balance, random = Balance(), np.random.default_rng(0)
    for number in range(12):
        scene = make_blocks(0, number)
        for kind in ("equal_size", "equal_material", "exist", "less_than"):
            for _ in range(3):
                ask(scene, random, kind, balance)
    forms = {key[:-1] for key in balance.answers}
    assert len(forms) > 10
    for form in forms:
        assert abs(balance.answers[*form, "yes"] - balance.answers[*form, "no"]) <= 1, form


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="there are query_size"):
        ask(make_blocks(0, 0), np.random.default_rng(0), "why", Balance())


def test_words_alone_do_not_tell_yes_from_no() -> None:
    balance, random = Balance(), np.random.default_rng(0)
    texts, answers = [], []
    for number in range(70):
        scene = make_blocks(1, number)
        for kind in ("equal_size", "equal_color", "equal_material", "equal_shape", "exist", "exist_same", "less_than"):
            for _ in range(2):
                question = ask(scene, random, kind, balance)
                if question:
                    texts.append(question.text)
                    answers.append(question.answer)
    assert len(texts) > 700
    assert 0.4 < guessed(texts, answers) < 0.6
