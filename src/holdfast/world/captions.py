"""Captions: what people write under a picture, with the phrases that name things in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.errors import UserError
from holdfast.world.describe import PLACE_PHRASES, RELATION_PHRASES, kind_of, name
from holdfast.world.grammar import SYNONYMS, article
from holdfast.world.scene import Scene, relations
from holdfast.world.vocabulary import VERBS

SALIENCE = 3
"""How strongly captions prefer large things: the power of a thing's area."""
SIZE_TOLD, PATTERN_TOLD, OTHER_WORD = 0.12, 0.1, 0.08
"""How often a thing's size and pattern are mentioned, and how often a synonym is used if there is one."""


@dataclass(frozen=True)
class Phrase:
    """Words `start` to `stop` (exclusive) of a caption, which name the thing with this index."""

    start: int
    stop: int
    thing: int


@dataclass(frozen=True)
class Caption:
    """A sentence about a scene as words and punctuation marks, with the phrases that name things."""

    text: str
    tokens: tuple[str, ...]
    phrases: tuple[Phrase, ...]


def captions(scene: Scene, random: np.random.Generator, count: int = 5) -> list[Caption]:
    """Sentences that are true of a scene; they differ if possible.

    >>> from holdfast.world.scene import Box, Scene, Thing
    >>> cat = Thing("cat", "black", "small", "fur", "plain", Box(0.4, 0.4, 0.2, 0.2), verb="lie")
    >>> caption = captions(Scene(7, "street", (cat,)), np.random.default_rng(5))[0]
    >>> caption.text
    'A cat lies on a street.'
    >>> [caption.tokens[phrase.start : phrase.stop] for phrase in caption.phrases]
    [('A', 'cat')]
    """
    if not scene.things:
        raise UserError(f"scene {scene.number} has no things to write about: make it with at least one")
    written: list[Caption] = []
    for attempt in range(4 * count):
        caption = _caption(scene, random)
        if all(caption.tokens != other.tokens for other in written) or attempt >= 3 * count:
            written.append(caption)
        if len(written) == count:
            break
    return written


def _caption(scene: Scene, random: np.random.Generator) -> Caption:
    first = _one_of(scene, range(len(scene.things)), random)
    thing = scene.things[first]
    mentioned: Counter[str] = Counter()
    pieces = _noun_phrase(scene, first, random, mentioned)
    told = {first}
    if thing.verb and random.random() < 0.85:
        third, gerund, _ = VERBS[thing.verb]
        form = random.random()
        pieces += [third] if form < 0.08 else ["is", gerund] if form < 0.55 else [gerund]
        if thing.other is not None:
            pieces += _noun_phrase(scene, thing.other, random, mentioned)
            told.add(thing.other)
    pieces += _ending(scene, first, told, random, mentioned)
    return _assemble([*pieces, "."])


def _ending(
    scene: Scene, first: int, told: set[int], random: np.random.Generator, mentioned: Counter[str]
) -> list[str | tuple[int, str]]:
    """The rest of a caption: the place, what is beside the first thing, or what else there is."""
    near = [(relation, j) for i, relation, j in relations(scene) if i == first and j not in told]
    others = [i for i in range(len(scene.things)) if i not in told]
    form = random.random()
    pieces: list[str | tuple[int, str]] = []
    if near and form < 0.35:
        other = _one_of(scene, sorted({j for _, j in near}), random)
        possible = [relation for relation, j in near if j == other]
        relation = possible[random.integers(len(possible))]
        pieces += [*RELATION_PHRASES[relation].split(), *_noun_phrase(scene, other, random, mentioned)]
    elif others and form < 0.75:
        other = _one_of(scene, others, random)
        pieces += ["with", *_noun_phrase(scene, other, random, mentioned)]
        if len(others) > 1 and random.random() < 0.5:
            another = _one_of(scene, [i for i in others if i != other], random)
            pieces += ["and", *_noun_phrase(scene, another, random, mentioned)]
    if not pieces or random.random() < 0.5:
        pieces += PLACE_PHRASES[scene.place].split()
    return pieces


def _one_of(scene: Scene, among: Sequence[int], random: np.random.Generator) -> int:
    """The index of a thing that people would mention, preferably one that is large or does something.

    Most of what a caption hides can then be inferred from the picture: a person, too, would guess the "a ... in a
    field".
    """
    things = [scene.things[i] for i in among]
    weights = np.array(
        [(thing.box.width * thing.box.height * (3 if thing.verb else 1)) ** SALIENCE for thing in things]
    )
    return among[int(random.choice(len(weights), p=weights / weights.sum()))]


def _noun_phrase(
    scene: Scene, index: int, random: np.random.Generator, mentioned: Counter[str]
) -> list[str | tuple[int, str]]:
    """A thing with at most two of its attributes, using a word that people have for it."""
    thing = scene.things[index]
    called = name(thing)
    adjectives = []
    if thing.noun != "person" and random.random() < SIZE_TOLD:
        adjectives.append(_worded(thing.size, random))
    if (
        thing.noun != "person"
        and thing.pattern != "plain"
        and len(kind_of(thing).patterns) > 1
        and random.random() < PATTERN_TOLD
    ):
        adjectives.append(thing.pattern)
    coloured = len(kind_of(thing).colours) > 1 and random.random() < 0.5
    if coloured and thing.noun != "person" and len(adjectives) < 2:
        adjectives.append(thing.colour)
    words = " ".join([*adjectives, _worded(called, random)])
    mentioned[called] += 1
    phrase = (index, f"another {words}" if mentioned[called] > 1 else article(words))
    if coloured and thing.noun == "person":
        return [phrase, "in", thing.colour]
    return [phrase]


def _worded(word: str, random: np.random.Generator) -> str:
    """The word or, now and then, a synonym."""
    others = SYNONYMS.get(word, ())
    return others[random.integers(len(others))] if others and random.random() < OTHER_WORD else word


def _assemble(pieces: list[str | tuple[int, str]]) -> Caption:
    tokens: list[str] = []
    phrases = []
    for piece in pieces:
        if isinstance(piece, str):
            tokens.append(piece)
        else:
            words = piece[1].split()
            phrases.append(Phrase(len(tokens), len(tokens) + len(words), piece[0]))
            tokens += words
    tokens[0] = tokens[0].capitalize()
    return Caption(" ".join(tokens).replace(" .", "."), tuple(tokens), tuple(phrases))
