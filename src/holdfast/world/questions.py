"""Questions about a scene, answered by ten people who do not always agree."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.errors import UserError
from holdfast.world.describe import (
    GROUPS,
    INVERSE,
    PLACE_PHRASES,
    RELATION_PHRASES,
    absent,
    described,
    doing,
    kind_of,
    name,
    other_place,
    other_value,
    plural_name,
    unique,
)
from holdfast.world.grammar import SYNONYMS, article, number_word, plural
from holdfast.world.scene import Scene, Thing, relations
from holdfast.world.vocabulary import COLOURS, PLACES, VERBS


@dataclass(frozen=True)
class Question:
    """A question, the right answer, ten people's answers, and the two types under which VQA files it."""

    text: str
    answer: str
    annotators: tuple[str, ...]
    question_type: str
    answer_type: str


# The question types that VQA names, longest first, as far as they occur here.
QUESTION_TYPES = tuple(
    sorted(
        (
            *("how many people are in", "how many people are", "how many", "what color is the", "what is the man"),
            *("what is the woman", "what is the person", "what is the", "what is", "what", "where is the", "which"),
            *("is the man", "is the woman", "is the person", "is the", "is there a", "is there", "are there any"),
            *("are there", "are the", "does the"),
        ),
        key=len,
        reverse=True,
    )
)
# How ten people's answers are divided, the right answer first, and how often.
_DIVISIONS = ((10,), (9, 1), (8, 2), (7, 3), (6, 3, 1), (5, 3, 2), (4, 3, 3))
_DIVISION_SHARES = (0.44, 0.16, 0.12, 0.13, 0.07, 0.05, 0.03)


def _cumulative(shares: Sequence[float]) -> list[float]:
    """For `bisect`, which then draws what `choice` would in much less time: at which number each item ends."""
    ends = (np.array(shares) / np.sum(shares)).cumsum()
    return [float(end) for end in ends / ends[-1]]


_CUMULATIVE_DIVISIONS = _cumulative(_DIVISION_SHARES)

_Asked = tuple[str, str, list[str]]  # the question, its answer, and plausible alternatives
_Asker = Callable[[Scene, np.random.Generator], _Asked | None]


def questions(scene: Scene, random: np.random.Generator, count: int = 3) -> list[Question]:
    """Different questions about a scene; about two in five are answered by yes or no, both equally often.

    >>> from holdfast.world.scene import Box, Scene, Thing
    >>> cat = Thing("cat", "black", "small", "fur", "plain", Box(0.4, 0.4, 0.2, 0.2), verb="lie")
    >>> asked = questions(Scene(7, "street", (cat,)), np.random.default_rng(6), count=20)
    >>> {question.answer for question in asked if question.text == "What color is the cat?"}
    {'black'}
    >>> asked[0].annotators.count(asked[0].answer) >= 4, len(asked[0].annotators)
    (True, 10)
    """
    if not scene.things:
        raise UserError(f"scene {scene.number} has no things to ask about: make it with at least one")
    found: dict[str, Question] = {}
    while len(found) < count:
        asked = _LISTED[bisect(_CUMULATIVE, random.random())](scene, random)
        if asked is None or asked[0] in found:
            continue
        text, answer, instead = asked
        kind = "yes/no" if answer in ("yes", "no") else "number" if answer.isdigit() else "other"
        lower = text.lower()
        prefix = next((start for start in QUESTION_TYPES if lower.startswith(f"{start} ")), "none of the above")
        found[text] = Question(text, answer, _annotators(answer, instead, random), prefix, kind)
    return list(found.values())


def _annotators(answer: str, instead: list[str], random: np.random.Generator) -> tuple[str, ...]:
    """Ten answers in random order, the right one more often than any other."""
    division = _DIVISIONS[bisect(_CUMULATIVE_DIVISIONS, random.random())]
    others = list(dict.fromkeys(other for other in instead if other != answer))
    chosen = [others[i] for i in random.permutation(len(others)).tolist()][: len(division) - 1]
    chosen += ["not sure", "unknown"][: len(division) - 1 - len(chosen)]
    given = [said for said, times in zip((answer, *chosen), division, strict=True) for _ in range(times)]
    return tuple([given[i] for i in random.permutation(10).tolist()])


def _pick(indices: tuple[int, ...] | list[int], random: np.random.Generator) -> int:
    return indices[random.integers(len(indices))]


def _yes_or_no(random: np.random.Generator) -> tuple[str, list[str]]:
    return ("yes", ["no", "maybe"]) if random.random() < 0.5 else ("no", ["yes", "not sure"])


def _similar_colours(colour: str) -> list[str]:
    """The two colours most easily mistaken for a colour, and other words for it."""
    distance = {
        other: sum((a - b) ** 2 for a, b in zip(COLOURS[colour], COLOURS[other], strict=True)) for other in COLOURS
    }
    return [*sorted(distance, key=lambda other: distance[other])[1:3], *SYNONYMS.get(colour, ())]


def _colour(scene: Scene, random: np.random.Generator) -> _Asked | None:
    fitting = [i for i in unique(scene) if len(kind_of(scene.things[i]).colours) > 1]
    if not fitting:
        return None
    thing = scene.things[_pick(fitting, random)]
    wearing = " wearing" if thing.noun == "person" else ""
    return f"What color is the {name(thing)}{wearing}?", thing.colour, _similar_colours(thing.colour)


def _is_coloured(scene: Scene, random: np.random.Generator) -> _Asked | None:
    """A yes/no question about one attribute: its value is equally likely in a yes and in a no."""
    fitting = unique(scene)
    if not fitting:
        return None
    thing = scene.things[_pick(fitting, random)]
    attribute = "colour" if random.random() < 0.75 else "pattern"
    other = other_value(thing, attribute, random)
    if other is None:
        return None
    answer, instead = _yes_or_no(random)
    value = getattr(thing, attribute) if answer == "yes" else other
    if thing.noun == "person":
        value = f"wearing {value}" + (" clothes" if attribute == "pattern" else "")
    return f"Is the {name(thing)} {value}?", answer, instead


def _count(scene: Scene, random: np.random.Generator) -> _Asked | None:
    counts: dict[str, int] = {"things": len(scene.things)}
    for group, words in GROUPS.items():
        counts[plural(words)] = sum(kind_of(thing).supercategory == group for thing in scene.things)
    for thing in scene.things:
        counts[plural_name(thing)] = sum(name(other) == name(thing) for other in scene.things)
    if random.random() < 0.3:
        other, index = absent(scene, random)
        counts.setdefault(plural_name(other.things[index]), 0)
    numbers = sorted(set(counts.values()))  # all numbers equally likely, or else nearly all would be ones and zeros
    number = numbers[random.integers(len(numbers))]
    counted = [words for words, times in counts.items() if times == number]
    asked = counted[random.integers(len(counted))]
    instead = [number_word(number), str(number + 1), *([str(number - 1)] if number else ["none"])]
    ending = " in the picture" if random.random() < 0.5 else " there"
    return f"How many {asked} are{ending}?", str(number), instead


def _is_there(scene: Scene, random: np.random.Generator) -> _Asked | None:
    answer, instead = _yes_or_no(random)
    if answer == "yes":
        thing = scene.things[random.integers(len(scene.things))]
    else:
        other, index = absent(scene, random)
        thing = other.things[index]
    if random.random() < 0.5:
        return f"Is there {article(name(thing))} in the picture?", answer, instead
    return f"Are there any {plural_name(thing)}?", answer, instead


def _is_there_such(scene: Scene, random: np.random.Generator) -> _Asked | None:
    """Is there a red dog? No, because the only dog is brown."""
    fitting = unique(scene)
    if not fitting:
        return None
    thing = scene.things[_pick(fitting, random)]
    other = other_value(thing, "colour", random)
    if other is None:
        return None
    answer, instead = _yes_or_no(random)
    words = described(thing) if answer == "yes" else described(thing, colour=other)
    return f"Is there {article(words)}?", answer, instead


def _is_beside(scene: Scene, random: np.random.Generator) -> _Asked | None:
    known = set(unique(scene))
    found = [(i, relation, j) for i, relation, j in relations(scene) if i in known and j in known]
    if not found:
        return None
    i, relation, j = found[random.integers(len(found))]
    answer, instead = _yes_or_no(random)
    phrase = RELATION_PHRASES[relation if answer == "yes" else INVERSE[relation]]
    return f"Is the {name(scene.things[i])} {phrase} the {name(scene.things[j])}?", answer, instead


def _what_is_beside(scene: Scene, random: np.random.Generator) -> _Asked | None:
    known = unique(scene)
    if not known:
        return None
    base = _pick(known, random)
    found = relations(scene)
    alone = {}
    for relation in RELATION_PHRASES:
        beside = [i for i, said, j in found if j == base and said == relation]
        if len(beside) == 1:
            alone[relation] = beside[0]
    if not alone:
        return None
    relation = list(alone)[random.integers(len(alone))]
    answer = _answer_name(scene.things[alone[relation]])
    others = [_answer_name(thing) for i, thing in enumerate(scene.things) if i != base]
    text = f"What is {RELATION_PHRASES[relation]} the {name(scene.things[base])}?"
    return text, answer, [*others, *SYNONYMS.get(answer, ())]


def _answer_name(thing: Thing) -> str:
    return name(thing) if thing.noun == "person" else thing.noun


def _doing(scene: Scene, random: np.random.Generator) -> _Asked | None:
    fitting = [i for i in unique(scene) if len(kind_of(scene.things[i]).verbs) > 1 and scene.things[i].verb]
    if not fitting:
        return None
    thing = scene.things[_pick(fitting, random)]
    answer = VERBS[thing.verb][1]
    others = [VERBS[verb][1] for verb in kind_of(thing).verbs if verb != thing.verb]
    return f"What is the {name(thing)} doing?", answer, [*others[:3], *SYNONYMS.get(answer, ())]


def _is_doing(scene: Scene, random: np.random.Generator) -> _Asked | None:
    fitting = [i for i in unique(scene) if scene.things[i].verb]
    if not fitting:
        return None
    thing = scene.things[_pick(fitting, random)]
    other = other_value(thing, "verb", random)
    if other is None:
        return None
    answer, instead = _yes_or_no(random)
    return f"Is the {name(thing)} {doing(thing.verb if answer == 'yes' else other)}?", answer, instead


def _where(scene: Scene, random: np.random.Generator) -> _Asked | None:
    known = unique(scene)
    if not known:
        return None
    near = [place for place in PLACES if place != scene.place]
    instead = [*SYNONYMS.get(scene.place, ()), near[random.integers(len(near))]]
    return f"Where is the {name(scene.things[_pick(known, random)])}?", scene.place, instead


def _is_in_place(scene: Scene, random: np.random.Generator) -> _Asked | None:
    known, other = unique(scene), other_place(scene, random)
    if not known or other is None:
        return None
    answer, instead = _yes_or_no(random)
    place = PLACE_PHRASES[scene.place if answer == "yes" else other]
    return f"Is the {name(scene.things[_pick(known, random)])} {place}?", answer, instead


def _larger(scene: Scene, random: np.random.Generator) -> _Asked | None:
    known = unique(scene)
    areas = {i: scene.things[i].box.width * scene.things[i].box.height for i in known}
    pairs = [(i, j) for i in known for j in known if areas[i] > 1.5 * areas[j]]
    if not pairs:
        return None
    large, small = pairs[random.integers(len(pairs))]
    first, second = (large, small) if random.random() < 0.5 else (small, large)
    text = f"Which is larger, the {name(scene.things[first])} or the {name(scene.things[second])}?"
    return text, _answer_name(scene.things[large]), [_answer_name(scene.things[small]), "same size"]


def _side(scene: Scene, random: np.random.Generator) -> _Asked | None:
    sided = [i for i in unique(scene) if abs(scene.things[i].box.centre[0] - 0.5) > 0.1]
    if not sided:
        return None
    thing = scene.things[_pick(sided, random)]
    answer = "left" if thing.box.centre[0] < 0.5 else "right"
    return f"Is the {name(thing)} on the left or the right?", answer, ["middle", "center"]


_ASKERS: dict[_Asker, float] = {
    _colour: 0.15,
    _count: 0.11,
    _what_is_beside: 0.04,
    _doing: 0.11,
    _where: 0.10,
    _larger: 0.04,
    _side: 0.07,
    _is_coloured: 0.10,
    _is_there: 0.12,
    _is_there_such: 0.05,
    _is_beside: 0.03,
    _is_doing: 0.06,
    _is_in_place: 0.04,
}
_LISTED, _CUMULATIVE = list(_ASKERS), _cumulative(list(_ASKERS.values()))
