"""Questions about a scene with four answers and four rationales, in tokens; as in VCR, things are tagged by index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.errors import UserError
from holdfast.world.describe import PLACE_PHRASES, Fact, facts
from holdfast.world.scene import Scene
from holdfast.world.vocabulary import PLACES

Tokens = list[str | list[int]]
SHARES = {"place": 1.0, "side": 1.0, "colour": 1.0, "relation": 0.8, "verb": 0.6, "pattern": 0.25}
"""How often a fact of each kind is used, if a scene has it: the harder to see, the more rarely."""


@dataclass(frozen=True)
class VisualQuestion:
    """A question, four answers and four rationales with the indices of the right ones; a list is a tag of things."""

    question: Tokens
    answers: tuple[Tokens, ...]
    answer_label: int
    rationales: tuple[Tokens, ...]
    rationale_label: int


_QUESTIONS = {  # by what the first part of the answer says
    "verb": ("What is {0} doing ?", "What is going on with {0} ?", "How does {0} spend this moment ?"),
    "colour": ("What does {0} look like ?", "How would you describe {0} ?"),
    "pattern": ("What does {0} look like ?", "How would you recognise {0} ?"),
    "place": ("Where is {0} ?", "Where does {0} seem to be ?"),
    "relation": ("Where is {0} ?", "How would you find {0} ?"),
    "side": ("Where is {0} ?", "Where would you look for {0} ?"),
    "both": ("Where are {0} ?", "What can you say about {0} ?"),
}


def visual_commonsense(scene: Scene, random: np.random.Generator) -> VisualQuestion:
    """A question whose answers and rationales join two facts: each fact or its near miss, in all combinations.

    Each half of a wrong answer also occurs in the right one or in another wrong one, so the four give nothing away by
    themselves.

    >>> from holdfast.world.scene import Box, Scene, Thing
    >>> cat = Thing("cat", "black", "small", "fur", "plain", Box(0.1, 0.4, 0.2, 0.2), verb="lie")
    >>> asked = visual_commonsense(Scene(7, "street", (cat,)), np.random.default_rng(1))
    >>> [0] in asked.question, len(asked.answers), asked.answers[asked.answer_label][0]
    (True, 4, [0])
    """
    if not scene.things:
        raise UserError(f"scene {scene.number} has no things to ask about: make it with at least one")
    found = _first_four(facts(scene, random), random)
    first, second, third, fourth = [*found, *_last_resorts(scene, random)][:4]
    tags: dict[str, list[int]] = {}
    if first.kind == "place" and len(scene.things) > 1 and random.random() < 0.5:
        # Two things in one tag: what is true of the place of one is true of the other.
        others = [i for i in range(len(scene.things)) if i != first.subject]
        pair = sorted([first.subject, others[random.integers(len(others))]])
        first = Fact(
            "both", first.subject, None, first.true.replace(" is ", " are "), first.false.replace(" is ", " are ")
        )
        tags["{0}"] = pair
    asked = _QUESTIONS[first.kind]
    question = _tokens(asked[random.integers(len(asked))], first, tags)
    answers, answer_label = _grid(first, second, tags, random)
    rationales, rationale_label = _grid(third, fourth, {}, random)
    return VisualQuestion(question, answers, answer_label, rationales, rationale_label)


def _first_four(found: Sequence[Fact], random: np.random.Generator) -> list[Fact]:
    """A fact of some kind first, then other facts about its subject, then others, without repeating any content."""
    if not found:
        return []
    many = Counter(fact.kind for fact in found)
    shares = np.array([SHARES[fact.kind] / many[fact.kind] for fact in found])
    drawn = random.choice(len(found), len(found), replace=False, p=shares / shares.sum())
    first, *rest = (found[i] for i in drawn.tolist())
    about = (first.subject, first.subject if first.other is None else first.other)
    rest.sort(key=lambda fact: (fact.subject != about[0], fact.subject != about[1]))
    kept: dict[tuple[object, ...], Fact] = {}
    for fact in (first, *rest):
        kept.setdefault(_content(fact), fact)
        if len(kept) == 4:
            break
    return list(kept.values())


def _content(fact: Fact) -> tuple[object, ...]:
    """What a fact is about: "left of" and, with the things swapped, "right of" say the same."""
    if fact.kind == "place":
        return (fact.kind,)
    if fact.kind == "relation":
        return fact.kind, "to" in fact.true.split(), frozenset((fact.subject, fact.other))
    return fact.kind, fact.subject


def _last_resorts(scene: Scene, random: np.random.Generator) -> list[Fact]:
    """Facts that hold for any thing at all: which half of the picture it is in, and what the place is."""
    across, down = scene.things[0].box.centre
    left, top = (
        ("left", "right") if across < 0.5 else ("right", "left"),
        ("upper", "lower") if down < 0.5 else ("lower", "upper"),
    )
    places = [place for place in PLACES if place != scene.place]
    place = places[random.integers(len(places))]
    return [
        Fact("relation", 0, None, *(f"{{0}} is in the {half} half of the picture" for half in left)),
        Fact("relation", 0, None, *(f"{{0}} is in the {half} half of the picture" for half in top)),
        Fact("place", 0, None, *(f"{{0}} is {PLACE_PHRASES[where]}" for where in (scene.place, place))),
        Fact("relation", 0, None, *(f"the {half} half of the picture has {{0}} in it" for half in left)),
    ]


def _grid(
    first: Fact, second: Fact, tags: dict[str, list[int]], random: np.random.Generator
) -> tuple[tuple[Tokens, ...], int]:
    """The two facts and their near misses, joined in all four combinations and shuffled."""
    ones = [_tokens(text, first, tags) for text in (first.true, first.false)]
    twos = [_tokens(text, second, {}) for text in (second.true, second.false)]
    four = [[*one, "and", *two, "."] for one in ones for two in twos]
    order = random.permutation(4)
    return tuple(four[i] for i in order), int(np.argmin(order))


def _tokens(text: str, fact: Fact, tags: dict[str, list[int]]) -> Tokens:
    """The words of a text, with a tag of things in each gap."""
    known = {"{0}": [fact.subject], "{1}": [fact.other if fact.other is not None else fact.subject]} | tags
    return [list(known[word]) if word in known else word for word in text.split()]
