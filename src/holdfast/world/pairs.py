"""Pictures with sentences for pre-training: true sentences, and near misses that differ in one attribute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from holdfast.world.block_questions import KINDS, Balance, ask
from holdfast.world.blocks import make_blocks
from holdfast.world.captions import captions
from holdfast.world.commonsense import visual_commonsense
from holdfast.world.describe import absent, described, facts, name, unique
from holdfast.world.draw import render
from holdfast.world.grammar import article
from holdfast.world.knowledge import commonsense_question
from holdfast.world.physical import physical_question
from holdfast.world.questions import questions
from holdfast.world.reviews import review
from holdfast.world.scene import Scene, make_scene
from holdfast.world.statements import hypothesis, two_image_statement
from holdfast.world.stories import story_ending
from holdfast.world.vocabulary import THINGS
from holdfast.world.writers.portraits import portrait, some_thing


@dataclass(frozen=True)
class Match:
    """A sentence that is true of a scene, a false one that differs in one attribute, and the kind of that attribute."""

    true: str
    false: str
    kind: str


@dataclass(frozen=True)
class Captioned:
    """A picture and captions for it."""

    image: npt.NDArray[np.uint8]
    captions: tuple[str, ...]


@dataclass(frozen=True)
class Lesson:
    """A picture, captions for it, and matching and mismatching sentences."""

    image: npt.NDArray[np.uint8]
    captions: tuple[str, ...]
    matches: tuple[Match, ...]

    def mirrored(self) -> Lesson:
        """The mirror image, in which left is right: as good as a new scene, at no cost.

        >>> lesson(0, 1, side=16).mirrored().mirrored().captions == lesson(0, 1, side=16).captions
        True
        """
        matches = tuple(Match(_swapped(m.true), _swapped(m.false), m.kind) for m in self.matches)
        return Lesson(self.image[:, ::-1], tuple(map(_swapped, self.captions)), matches)


_MIRRORED = {"left": "right", "right": "left", "left.": "right.", "right.": "left."}


def _swapped(text: str) -> str:
    """The sentence that holds for the mirrored scene."""
    return " ".join(_MIRRORED.get(word, word) for word in text.split(" "))


def lesson(seed: int, number: int, *, side: int, captions_each: int = 4, matches_each: int = 4) -> Lesson:
    """The material that can be learned from one scene, all of it determined by (seed, number).

    >>> first = lesson(0, 1, side=32, captions_each=1, matches_each=1)
    >>> first.image.shape, len(first.captions)
    ((32, 32, 3), 1)
    """
    scene, random = make_scene(seed, number), np.random.default_rng([seed, number, 0x1E550])
    picture = Image.fromarray(render(scene)).resize((side, side), Image.Resampling.BICUBIC)
    written = tuple(caption.text for caption in captions(scene, random, captions_each))
    return Lesson(np.asarray(picture), written, tuple(matches(scene, random, matches_each)))


def captioned(seed: int, number: int, *, side: int, captions_each: int = 5) -> Captioned:
    """A scene with captions or, for odd numbers, a single thing with its name; all determined by (seed, number).

    >>> len(captioned(0, 1, side=32).captions), captioned(0, 2, side=32).image.shape
    (5, (32, 32, 3))
    """
    random = np.random.default_rng([seed, number, 0xCA9])
    if number % 2 == 0:
        found = lesson(seed, number, side=side, captions_each=captions_each, matches_each=1)
        return Captioned(found.image, found.captions)
    noun = list(THINGS)[int(random.integers(len(THINGS)))]
    thing = some_thing(random, noun)
    pattern = "" if thing.pattern == "plain" else f"{thing.pattern} "
    full = f"{pattern}{thing.colour} {noun}"
    texts = [
        f"a photo of a {full}.",
        f"a {full}",
        f"a photo of a {noun}.",
        f"the {thing.colour} {noun}",
        f"a picture of a {full}",
    ]
    return Captioned(portrait(random, thing, side), tuple((texts * captions_each)[:captions_each]))


def matches(scene: Scene, random: np.random.Generator, count: int) -> list[Match]:
    """Pairs of sentences about a scene; the kind of attribute is drawn first, then the thing.

    >>> from holdfast.world.scene import Box, Thing
    >>> cat = Thing("cat", "black", "small", "fur", "plain", Box(0.4, 0.4, 0.2, 0.2))
    >>> found = matches(Scene(7, "street", (cat,)), np.random.default_rng(2), 1)[0]
    >>> found.true, found.kind
    ('There is a cat.', 'noun')
    """
    found: dict[str, list[Match]] = {}
    for fact in facts(scene, random, unique(scene)):
        names = [f"the {name(scene.things[i])}" for i in (fact.subject, fact.other) if i is not None]
        true, false = (_sentence(text.format(*names)) for text in (fact.true, fact.false))
        found.setdefault(fact.kind, []).append(Match(true, false, fact.kind))
    kinds = sorted([*found, "noun"])
    drawn = [kinds[random.integers(len(kinds))] for _ in range(count)]
    return [_noun(scene, random) if kind == "noun" else _any(found[kind], random) for kind in drawn]


def _any(of_kind: list[Match], random: np.random.Generator) -> Match:
    return of_kind[random.integers(len(of_kind))]


def _noun(scene: Scene, random: np.random.Generator) -> Match:
    """A thing that is in the scene, and one that is not."""
    here = scene.things[random.integers(len(scene.things))]
    other, missing = absent(scene, random)
    true, false = (article(described(thing, ())) for thing in (here, other.things[missing]))
    return Match(_sentence(f"there is {true}"), _sentence(f"there is {false}"), "noun")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def texts(seed: int, number: int) -> list[str]:
    """Texts of every kind in the synthetic datasets, one or two of each, for learning word pieces and language alone.

    >>> texts(0, 3)[-1]
    'This is an image.'
    """
    return list(_texts(make_scene(seed, number), seed, number, np.random.default_rng([seed, number, 0x7E87])))


def _texts(scene: Scene, seed: int, number: int, random: np.random.Generator) -> Iterator[str]:
    yield from (caption.text for caption in captions(scene, random, 2))
    for question in questions(scene, random, 2):
        yield f"{question.text} {question.answer}"
    yield two_image_statement(scene, make_scene(seed, number + 1), random, bool(random.integers(2)))
    yield hypothesis(scene, random, ("entailment", "neutral", "contradiction")[random.integers(3)])
    seen = visual_commonsense(scene, random)
    for tokens in (seen.question, seen.answers[seen.answer_label], seen.rationales[seen.rationale_label]):
        yield " ".join(token for token in tokens if isinstance(token, str))
    yield review(random, bool(random.integers(2)))
    context, endings, right, _ = story_ending(random)
    yield f"{context} {endings[right]}"
    _, asked, choices, right = commonsense_question(random)
    yield f"{asked} {choices[right]}"
    goal, solutions, right = physical_question(random)
    yield f"{goal} {solutions[right]}"
    blocks = ask(make_blocks(seed, number), random, list(KINDS)[random.integers(len(KINDS))], Balance())
    if blocks is not None:
        yield f"{blocks.text} {blocks.answer}"
    yield "This is an image."
