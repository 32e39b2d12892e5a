"""Instructions about scenes with short answers, as LLaVA-style collections of tasks ask them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.world.describe import PLACE_PHRASES, name, unique
from holdfast.world.language import captions, commonsense_question, questions
from holdfast.world.scene import Scene
from holdfast.world.vocabulary import PLACES

Random = np.random.Generator
_LETTERS = "ABCDE"


@dataclass(frozen=True)
class Instruction:
    """A question, its right answers (the first is taught), and whether a picture belongs to it."""

    asked: str
    answers: tuple[str, ...]
    pictured: bool = True


def question(scene: Scene, random: Random) -> Instruction:
    """A question about a scene, to be answered by a word."""
    found = questions(scene, random, 1)[0]
    return Instruction(f"{found.text}\nAnswer with a single word or phrase.", (found.answer,))


def lettered(scene: Scene, random: Random) -> Instruction:
    """A question about the place of a scene, with four choices, to be answered by a letter."""
    others = [place for place in PLACES if place != scene.place]
    places = [scene.place, *(others[int(i)] for i in random.permutation(len(others))[:3])]
    order = [int(i) for i in random.permutation(4)]
    told = "\n".join(f"{_LETTERS[row]}. {PLACE_PHRASES[places[place]]}" for row, place in enumerate(order))
    asked = f"Where was this picture taken?\n{told}\nAnswer with the letter of the right choice."
    return Instruction(asked, (_LETTERS[order.index(0)],))


def without_picture(scene: Scene, random: Random) -> Instruction:
    """A question of common sense with five choices, to be answered by a letter."""
    _, text, choices, label = commonsense_question(random)
    told = "\n".join(f"{_LETTERS[row]}. {choice}" for row, choice in enumerate(choices))
    asked = f"{text}\n{told}\nAnswer with the letter of the right choice."
    return Instruction(asked, (_LETTERS[label],), pictured=False)


def named(scene: Scene, random: Random) -> Instruction:
    """A question about the largest thing of a scene."""
    largest = max(scene.things, key=lambda thing: thing.box.width * thing.box.height)
    return Instruction("What is the main object of the picture?\nAnswer with its name.", (name(largest),))


def located(scene: Scene, random: Random) -> Instruction:
    """The corners of a thing's box, as shares of the longer side of a picture that is four by three."""
    fitting = unique(scene) or [0]
    thing = scene.things[fitting[int(random.integers(len(fitting)))]]
    box = thing.box
    across, down = (box.left, box.left + box.width), (box.top * 0.75 + 0.125, (box.top + box.height) * 0.75 + 0.125)
    corners = ", ".join(f"{value:.2f}" for value in (across[0], down[0], across[1], down[1]))
    return Instruction(f"Give the box of this region: the {name(thing)}.", (f"[{corners}]",))


def counted(scene: Scene, random: Random) -> Instruction:
    """A question about the number of things in a scene."""
    return Instruction("How many objects are there?\nAnswer with a number.", (str(len(scene.things)),))


def described_briefly(scene: Scene, random: Random) -> Instruction:
    """A caption of a scene, with five right answers.

    >>> from holdfast.world.scene import make_scene
    >>> len(described_briefly(make_scene(0, 1), np.random.default_rng(0)).answers)
    5
    """
    several = tuple(caption.text for caption in captions(scene, random, 5))
    return Instruction("Describe the picture in one sentence.", several)
