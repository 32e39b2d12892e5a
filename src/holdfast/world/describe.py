"""Words for what is in a scene, and facts about it, each with a near miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from holdfast.world.grammar import article, plural, singular
from holdfast.world.scene import Scene, Thing, make_scene, relations
from holdfast.world.vocabulary import PLACES, SOLIDS, THINGS, VERBS, Kind, person_word

PLACE_PHRASES = {
    "field": "in a field",
    "street": "on a street",
    "beach": "on a beach",
    "sea": "on the sea",
    "snow": "in the snow",
} | {place: f"in {article(place)}" for place in PLACES if place not in ("field", "street", "beach", "sea", "snow")}
RELATION_PHRASES = {"left of": "to the left of", "right of": "to the right of", "above": "above", "below": "below"}
INVERSE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
GROUPS = {  # supercategories of COCO whose members anyone would call by that name
    "animal": "animal",
    "vehicle": "vehicle",
    "food": "piece of food",
    "furniture": "piece of furniture",
    "person": "person",
}
ATTRIBUTES = ("colour", "pattern", "verb")
# How much more often scenes contain people's favourite activities than other ones.
_USUAL_VERBS = {"hold": 4.0, "eat": 3.0, "ride": 2.7}
_NEEDS_OTHER = ("hold", "ride")
_KINDS = SOLIDS | THINGS
_CLEARLY = 0.12  # of the picture's side, from its middle


@dataclass(frozen=True)
class Fact:
    """A true statement about a scene together with a near miss that differs in one word.

    `subject` and `other` are indices of things; the texts have gaps for them, as in "{0} is to the left of {1}".
    """

    kind: str
    subject: int
    other: int | None
    true: str
    false: str


def kind_of(thing: Thing) -> Kind:
    """The common properties of all things of this noun."""
    return _KINDS[thing.noun]


def name(thing: Thing) -> str:
    """What people call a thing; a person is a man, a woman or a child.

    >>> from holdfast.world.scene import Box, Thing
    >>> name(Thing("person", "red", "small", "fabric", "plain", Box(0, 0, 0.5, 0.5)))
    'child'
    """
    return person_word(thing.size, thing.pattern) if thing.noun == "person" else singular(thing.noun)


def plural_name(thing: Thing) -> str:
    """What people call several things of this noun."""
    return plural(name(thing) if thing.noun == "person" else thing.noun)


def described(thing: Thing, attributes: Sequence[str] = ("colour",), **values: str) -> str:
    """A thing's name with some of its attributes, or with other values for them.

    >>> from holdfast.world.scene import Box, Thing
    >>> cat = Thing("cat", "black", "small", "fur", "striped", Box(0, 0, 0.5, 0.5))
    >>> described(cat, ("size", "colour")), described(cat, colour="white")
    ('small black cat', 'white cat')
    """
    told = {attribute: values.get(attribute, getattr(thing, attribute)) for attribute in attributes}
    if thing.noun == "person":  # a person's colour and pattern are those of the clothes
        clothes = [told[attribute] for attribute in ("pattern", "colour") if attribute in told]
        return name(thing) + (f" in {' '.join(clothes)}" if clothes else "")
    adjectives = [told[attribute] for attribute in ("size", "pattern", "colour", "material") if attribute in told]
    return " ".join([*adjectives, name(thing)])


def doing(verb: str) -> str:
    """An activity in the form that follows "is".

    >>> doing("lie"), doing("ride")
    ('lying', 'riding something')
    """
    return VERBS[verb][1] + (" something" if verb in _NEEDS_OTHER else "")


def other_value(thing: Thing, attribute: str, random: np.random.Generator) -> str | None:
    """Another value that the attribute might equally have had, or None if there is none.

    If the actual value is a common one (most things are plain), None is also returned just often enough that among the
    remaining cases all values are equally likely. The alternative is then as likely as the actual value, and before
    looking at the picture "the cat is plain" is no more likely to be true than "the cat is striped".

    >>> from holdfast.world.scene import Box, Thing
    >>> apple = Thing("apple", "red", "small", "food", "plain", Box(0, 0, 0.5, 0.5))
    >>> other_value(apple, "colour", np.random.default_rng(0)) in ("green", "yellow")
    True
    >>> other_value(apple, "verb", np.random.default_rng(0)) is None
    True
    """
    others, usual = _alternatives(thing.noun, thing.size, thing.pattern, attribute, getattr(thing, attribute))
    if not others or random.random() * usual > 1:
        return None
    return others[random.integers(len(others))]


@cache
def _alternatives(noun: str, size: str, pattern: str, attribute: str, actual: str) -> tuple[tuple[str, ...], float]:
    """The other values that an attribute might have had, and how much more common the actual one is than those."""
    kind = _KINDS[noun]
    values = {"colour": kind.colours, "pattern": kind.patterns, "verb": kind.verbs}[attribute]
    usual = 1.0
    if noun == "person":
        usual = _USUAL_VERBS.get(actual, 1.0) if attribute == "verb" else 1.0
        if attribute == "pattern":  # the attribute that distinguishes a man from a woman has been mentioned
            values = tuple(value for value in values if person_word(size, value) == person_word(size, pattern))
    elif attribute == "pattern" and actual == "plain":
        usual = len(values) + 1.0
    return tuple(value for value in values if value != actual) if actual else (), usual


def other_place(scene: Scene, random: np.random.Generator) -> str | None:
    """Another place in which everything in a scene might be found, or None if there is none."""
    fitting = _other_places(scene)
    return fitting[random.integers(len(fitting))] if fitting else None


@lru_cache(maxsize=64)
def _other_places(scene: Scene) -> tuple[str, ...]:
    possible = [kind_of(thing).places for thing in scene.things]
    return tuple(p for p in PLACES if p != scene.place and all(p in places for places in possible))


@lru_cache(maxsize=64)
def unique(scene: Scene) -> tuple[int, ...]:
    """The things that can be called "the cat": no other thing has that name, or one that ends with it.

    >>> from holdfast.world.scene import Box, Scene, Thing
    >>> nouns = ("dog", "cat", "dog", "bear", "teddy bear")
    >>> things = tuple(Thing(noun, "brown", "small", "fur", "plain", Box(0, 0, 0.5, 0.5)) for noun in nouns)
    >>> unique(Scene(0, "room", things))
    (1,)
    """
    heads = [thing.noun.split()[-1] if thing.noun != "person" else name(thing) for thing in scene.things]
    return tuple(i for i, head in enumerate(heads) if heads.count(head) == 1)


def absent(scene: Scene, random: np.random.Generator) -> tuple[Scene, int]:
    """Another random scene, and a thing in it whose name is unique there and does not occur in this scene."""
    names = {word for thing in scene.things for word in (thing.noun.split()[-1], name(thing).split()[-1])}
    while True:
        other = make_scene(*(int(number) for number in random.integers(2**31, size=2)))
        found = [i for i in unique(other) if name(other.things[i]).split()[-1] not in names]
        if found:
            return other, found[random.integers(len(found))]


def facts(scene: Scene, random: np.random.Generator, among: Sequence[int] | None = None) -> list[Fact]:
    """Facts about the things of a scene (or about some of them), each with a near miss drawn at random."""
    chosen = range(len(scene.things)) if among is None else among
    found: list[Fact] = []
    place = other_place(scene, random)
    for i in chosen:
        thing = scene.things[i]
        for attribute in ATTRIBUTES:
            other = other_value(thing, attribute, random)
            if other is not None:
                actual = getattr(thing, attribute)
                found.append(_attribute_fact(i, thing.noun == "person", attribute, actual, other))
        if place is not None:
            found.append(_place_fact(i, scene.place, place))
        across = thing.box.centre[0]
        if abs(across - 0.5) > _CLEARLY:
            found.append(_side_fact(i, across < 0.5))
    found += [_relation_fact(*each) for each in relations(scene) if each[0] in chosen and each[2] in chosen]
    return found


# The same few facts come up again and again, of one scene and of others.


@cache
def _attribute_fact(subject: int, person: bool, attribute: str, actual: str, other: str) -> Fact:
    told = "{{0}} is wearing {}" + (" clothes" if attribute == "pattern" else "") if person else "{{0}} is {}"
    if attribute == "verb":
        told, actual, other = "{{0}} is {}", doing(actual), doing(other)
    return Fact(attribute, subject, None, told.format(actual), told.format(other))


@cache
def _place_fact(subject: int, place: str, other: str) -> Fact:
    return Fact("place", subject, None, f"{{0}} is {PLACE_PHRASES[place]}", f"{{0}} is {PLACE_PHRASES[other]}")


@cache
def _side_fact(subject: int, left: bool) -> Fact:
    sides = ("left", "right") if left else ("right", "left")
    return Fact("side", subject, None, *(f"{{0}} is on the {side}" for side in sides))


@cache
def _relation_fact(subject: int, relation: str, other: int) -> Fact:
    phrases = (RELATION_PHRASES[word] for word in (relation, INVERSE[relation]))
    return Fact("relation", subject, other, *(f"{{0}} is {phrase} {{1}}" for phrase in phrases))
