"""Statements to judge by looking: about two pictures, true or false; about one, entailment, neutral or contradiction.

False and undecidable statements use the same words as true ones, and the form is chosen in the same way for all of
them, so the words alone give nothing away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import count

import numpy as np

from holdfast.errors import UserError
from holdfast.world.describe import (
    GROUPS,
    PLACE_PHRASES,
    Fact,
    absent,
    described,
    facts,
    kind_of,
    name,
    other_value,
    plural_name,
    unique,
)
from holdfast.world.grammar import article, number_word, plural
from holdfast.world.scene import Scene
from holdfast.world.vocabulary import PLACES

LABELS = ("entailment", "neutral", "contradiction")
_SIDES = ("left", "right")
_Pair = tuple[Scene, Scene]
_Stated = Callable[[_Pair, np.random.Generator, bool], str | None]


def two_image_statement(left: Scene, right: Scene, random: np.random.Generator, truth: bool) -> str:
    """A sentence about two pictures that is true, or false by one word.

    >>> from holdfast.world.scene import Box, Scene, Thing
    >>> apple = Thing("apple", "red", "small", "food", "plain", Box(0.4, 0.4, 0.2, 0.2))
    >>> banana = Thing("banana", "yellow", "small", "food", "plain", Box(0.4, 0.4, 0.2, 0.2))
    >>> pair = Scene(0, "kitchen", (apple,)), Scene(1, "kitchen", (banana, banana))
    >>> two_image_statement(*pair, np.random.default_rng(1), truth=False)
    'There is a banana in the left image.'
    """
    for form in random.permutation(len(_STATEMENTS)).tolist():
        state: _Stated = _STATEMENTS[form]
        sentence = state((left, right), random, truth)
        if sentence is not None:
            return sentence
    raise AssertionError("a statement about the number of things is always possible")


def hypothesis(scene: Scene, random: np.random.Generator, label: str) -> str:
    """A sentence that a picture entails, contradicts, or leaves open because its subject is not visible.

    >>> from holdfast.world.scene import Box, Scene, Thing
    >>> cat = Thing("cat", "black", "small", "fur", "plain", Box(0.4, 0.4, 0.2, 0.2), verb="lie")
    >>> hypothesis(Scene(7, "street", (cat,)), np.random.default_rng(1), "entailment")
    'The cat is lying.'
    """
    if label not in LABELS:
        raise UserError(f"a hypothesis is one of {', '.join(LABELS)}, not {label!r}")
    here = ((scene, i) for i in random.permutation(unique(scene)).tolist())
    told = _first_fact(here, random)
    if told is None:  # nothing in this scene has a unique name: then, whatever the label, several things are described
        return _sentence_of_several(scene, random, label)
    if label == "neutral":  # the subject is absent, and the statement is true in the scene where it is present
        told = _first_fact((absent(scene, random) for _ in count()), random)
        assert told is not None, "some scene has something to tell of"
    return _sentence(*told, label != "contradiction")


def _first_fact(focuses: Iterable[tuple[Scene, int]], random: np.random.Generator) -> tuple[Scene, Fact] | None:
    """A fact about the first of these things that has any: the kind of fact is chosen first, then the fact."""
    for scene, focus in focuses:
        found = [fact for fact in facts(scene, random, unique(scene)) if focus in (fact.subject, fact.other)]
        if found:
            return scene, _any_of_any_kind(found, random)
    return None


def _any_of_any_kind(found: Sequence[Fact], random: np.random.Generator) -> Fact:
    kinds = sorted({fact.kind for fact in found})
    kind = kinds[random.integers(len(kinds))]
    fitting = [fact for fact in found if fact.kind == kind]
    return fitting[random.integers(len(fitting))]


def _sentence_of_several(scene: Scene, random: np.random.Generator, label: str) -> str:
    thing, place = scene.things[random.integers(len(scene.things))], scene.place
    if label == "neutral":
        other, missing = absent(scene, random)
        thing, place = other.things[missing], other.place
    elif label == "contradiction":
        places = [each for each in kind_of(thing).places if each != place] or [each for each in PLACES if each != place]
        place = places[random.integers(len(places))]
    return f"The {plural_name(thing)} are {PLACE_PHRASES[place]}."


def _sentence(scene: Scene, fact: Fact, truth: bool) -> str:
    names = [f"the {name(scene.things[i])}" for i in (fact.subject, fact.other) if i is not None]
    text = (fact.true if truth else fact.false).format(*names)
    return f"{text[0].upper()}{text[1:]}."


def _side(random: np.random.Generator) -> int:
    return int(random.integers(2))


def _shows_such(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    """There is a red dog in the left image; false if it is a brown one."""
    side = _side(random)
    scene = pair[side]
    fitting = [(i, other) for i in unique(scene) if (other := other_value(scene.things[i], "colour", random))]
    if not fitting:
        return None
    i, other = fitting[random.integers(len(fitting))]
    words = described(scene.things[i]) if truth else described(scene.things[i], colour=other)
    return f"There is {article(words)} in the {_SIDES[side]} image."


def _shows(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    """There is a dog in the left image, or only there; it may be in the right one instead."""
    side = _side(random)
    alone = _on_each_side(*pair)[:2]
    if not alone[0] or not alone[1]:
        return None
    words = alone[side if truth else 1 - side]
    where = "only in the" if random.random() < 0.5 else "in the"
    return f"There is {article(words[random.integers(len(words))])} {where} {_SIDES[side]} image."


def _fact(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    """The dog is to the left of the cat, lying, or on a street, in the left image."""
    side = _side(random)
    scene = pair[side]
    found = [fact for fact in facts(scene, random, unique(scene)) if fact.kind != "colour"]
    if not found:
        return None
    sentence = _sentence(scene, _any_of_any_kind(found, random), truth)
    return f"{sentence.removesuffix('.')} in the {_SIDES[side]} image."


@lru_cache(maxsize=64)
def _on_each_side(left: Scene, right: Scene) -> tuple[list[str], list[str], list[str]]:
    """The names of the things that are only in the left picture, only in the right one, and in both."""
    names = [{name(thing) for thing in scene.things} for scene in (left, right)]
    return sorted(names[0] - names[1]), sorted(names[1] - names[0]), sorted(names[0] & names[1])


@lru_cache(maxsize=64)
def _counts(scene: Scene) -> dict[str, int]:
    groups = [kind_of(thing).supercategory for thing in scene.things]
    return {"thing": len(groups)} | {words: groups.count(group) for group, words in GROUPS.items()}


def _more(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    left, right = (_counts(scene) for scene in pair)
    unequal = [words for words in left if left[words] != right[words]]
    if not unequal:
        return None
    words = unequal[random.integers(len(unequal))]
    more = int(right[words] > left[words])
    many = random.random() < 0.5
    first = more if many == truth else 1 - more
    word = "more" if many else "fewer"
    sides = f"in the {_SIDES[first]} image than in the {_SIDES[1 - first]} image"
    return f"There are {word} {plural(words)} {sides}."


def _total(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    left, right = (_counts(scene) for scene in pair)
    totals = {words: left[words] + right[words] for words in left}
    numbers = sorted(set(totals.values()) - {0})
    number = numbers[random.integers(len(numbers))]
    if number == 1 and random.random() < 0.6:  # ones are frequent, and have no near miss below them
        return None
    fitting = [words for words in totals if totals[words] == number]
    words = fitting[random.integers(len(fitting))]
    if not truth:
        number += 1 if number == 1 or random.random() < 0.5 else -1
    told = f"are {number_word(number)} {plural(words)}" if number != 1 else f"is one {words}"
    return f"There {told} in the two images together."


def _quantified(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    """There is a dog in both images, or in exactly one; used if some thing is in both and some thing in only one."""
    left, right, both = _on_each_side(*pair)
    shown = {True: both, False: sorted(left + right)}
    if not shown[True] or not shown[False]:
        return None
    in_both = random.random() < 0.5
    words = article(shown[in_both][random.integers(len(shown[in_both]))])
    return f"There is {words} in {'both images' if in_both == truth else 'exactly one image'}."


def _same_colour(pair: _Pair, random: np.random.Generator, truth: bool) -> str | None:
    left, right = pair
    pairs = _by_colour(left, right)
    if not pairs[True] or not pairs[False]:
        return None
    same = random.random() < 0.5
    fitting = pairs[same == truth]
    i, j = fitting[random.integers(len(fitting))]
    colour = "the same color as" if same else "another color than"
    return f"The {name(left.things[i])} in the left image has {colour} the {name(right.things[j])} in the right image."


@lru_cache(maxsize=64)
def _by_colour(left: Scene, right: Scene) -> dict[bool, list[tuple[int, int]]]:
    """The pairs of a thing on the left and one on the right that have the same colour, and those that have not."""
    pairs: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for i in unique(left):
        for j in unique(right):
            pairs[left.things[i].colour == right.things[j].colour].append((i, j))
    return pairs


_STATEMENTS: tuple[_Stated, ...] = (_shows_such, _shows, _fact, _more, _total, _quantified, _same_colour)
