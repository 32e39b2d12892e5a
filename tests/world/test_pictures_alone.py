"""A guesser that sees only the picture stays near chance where the words are needed, and above it where they are not.

It is a ridge classifier on small pixels and their products with a few random directions: crude, and enough to find a
colour, a place or a size that gives an answer away.
"""

import numpy as np
import pytest

from holdfast import registry
from holdfast.data.images import decode
from holdfast.world.draw import render
from holdfast.world.language import questions, visual_commonsense
from holdfast.world.scene import make_scene
from holdfast.world.vocabulary import PLACES

TRAIN, TEST = 1000, 500


@pytest.fixture(scope="module")
def scenes():
    found = [make_scene(0, number) for number in range(TRAIN + TEST)]
    pixels = np.stack([render(scene, 48, 36)[::2, ::2].reshape(-1) for scene in found]) / 255.0 - 0.5
    return found, pixels


def guessed(pixels, labels, train=TRAIN) -> tuple[float, float]:
    """The share that is guessed rightly on the test part, and 4.5 standard deviations of chance there."""
    directions = np.random.default_rng(0).standard_normal((pixels.shape[1], 200)) / np.sqrt(pixels.shape[1])
    features = np.hstack([pixels, np.maximum(pixels @ directions, 0), np.ones((len(pixels), 1))])
    classes = np.unique(labels)
    wanted = (labels[:train, None] == classes).astype(float)
    known = features[:train]
    weights = known.T @ np.linalg.solve(known @ known.T + 30 * np.eye(train), wanted)
    right = classes[(features[train:] @ weights).argmax(1)] == labels[train:]
    chance = 1 / len(classes)
    return right.mean(), 4.5 * np.sqrt(chance * (1 - chance) / len(right))


def drawn(number: int) -> np.random.Generator:
    return np.random.default_rng([7, number])


def test_the_place_is_seen_so_the_guesser_can_see(scenes):
    found, pixels = scenes
    labels = np.array([PLACES.index(scene.place) for scene in found])
    score, margin = guessed(pixels, labels)
    assert score > 1 / len(PLACES) + 2 * margin


def test_a_picture_alone_does_not_answer_yes_or_no(scenes):
    found, pixels = scenes
    labels = np.zeros(len(found), int)
    for number, scene in enumerate(found):
        asked = [q for q in questions(scene, drawn(number), 8) if q.answer_type == "yes/no"]
        labels[number] = asked[0].answer == "yes" if asked else number % 2
    score, margin = guessed(pixels, labels)
    assert score < 0.5 + margin


def test_a_picture_alone_does_not_choose_among_four_answers(scenes):
    found, pixels = scenes
    labels = np.array([visual_commonsense(scene, drawn(n)).answer_label for n, scene in enumerate(found)])
    score, margin = guessed(pixels, labels)
    assert score < 1 / 4 + margin


@pytest.mark.parametrize(("name", "test"), [("snli_ve", ("dev", "test")), ("nlvr2", ("dev", "test1"))])
def test_the_pictures_of_a_written_dataset_alone_do_not_tell_its_labels(name, test, tiny_world):
    """With the labels and pictures that the files hold: whether a statement is true of two, what one entails."""
    dataset = registry.DATASETS[name].load()
    train = list(dataset.examples(tiny_world / name, "train"))
    rows = train + [example for split in test for example in dataset.examples(tiny_world / name, split)]
    pixels = [np.concatenate([decode(image, 18).reshape(-1) for image in row.images]) for row in rows]
    score, margin = guessed(np.stack(pixels) / 255.0 - 0.5, np.array([row.target for row in rows]), len(train))
    assert score < 1 / len({row.target for row in rows}) + margin
