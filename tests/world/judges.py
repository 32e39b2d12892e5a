"""Judges that know a scene, and a guesser that knows only words: they share nothing with the code that writes."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np

from holdfast.world.scene import Scene, Thing
from holdfast.world.vocabulary import SOLIDS, THINGS

KINDS = THINGS | SOLIDS

SINGULARS = {"scissors": "pair of scissors", "skis": "pair of skis", "broccoli": "piece of broccoli"}
PLURALS = {"child": "children", "man": "men", "woman": "women", "knife": "knives", "mouse": "mice", "sheep": "sheep"}
PLURALS |= {"pair of scissors": "pairs of scissors", "pair of skis": "pairs of skis"}
PLURALS |= {"piece of broccoli": "pieces of broccoli", "person": "people", "bus": "buses", "bench": "benches"}
PLURALS |= {"wine glass": "wine glasses", "couch": "couches", "toothbrush": "toothbrushes", "sandwich": "sandwiches"}
GROUPS = {"animal": "animals", "vehicle": "vehicles", "person": "people", "food": "pieces of food"}
GROUPS |= {"furniture": "pieces of furniture"}
SEEMS = {"lie": "lying", "stand": "standing", "sit": "sitting", "walk": "walking", "eat": "eating", "fly": "flying"}
SEEMS |= {"hold": "holding something", "ride": "riding something"}


def called(thing: Thing) -> str:
    if thing.noun == "person":
        return "child" if thing.size == "small" else "man" if thing.pattern in ("plain", "striped") else "woman"
    return SINGULARS.get(thing.noun, thing.noun)


def calls(thing: Thing) -> str:
    return PLURALS.get(called(thing), f"{called(thing)}s")


def known(scene: Scene, name: str) -> Thing | None:
    found = [thing for thing in scene.things if called(thing) == name]
    return found[0] if len(found) == 1 else None


def group(scene: Scene, words: str) -> list[Thing]:
    """The things that a plural speaks of."""
    if words in ("thing", "things"):
        return list(scene.things)
    for supercategory, plural in GROUPS.items():
        singular = "person" if supercategory == "person" else plural.replace("pieces", "piece").removesuffix("s")
        if words in (plural, singular):
            return [thing for thing in scene.things if KINDS[thing.noun].supercategory == supercategory]
    return [thing for thing in scene.things if words in (called(thing), calls(thing))]


def beside(one: Thing, relation: str, other: Thing) -> bool:
    (x, y), (other_x, other_y) = one.box.centre, other.box.centre
    return {
        "to the left of": x < other_x,
        "to the right of": x > other_x,
        "above": y < other_y,
        "below": y > other_y,
    }[relation]


def holds(scene: Scene, subject: Thing, predicate: str, other: Thing | None = None) -> bool:
    """Whether "SUBJECT is PREDICATE" is true of a scene; the other thing replaces a name after a relation."""
    relation = re.fullmatch(r"(to the left of|to the right of|above|below)(?: the (.+))?", predicate)
    if relation:
        base = other or known(scene, relation[2])
        return base is not None and beside(subject, relation[1], base)
    place = re.fullmatch(r"(?:in|on) (?:an?|the) (\w+)", predicate)
    if place and place[1] not in ("left", "right"):
        return scene.place == place[1]
    half = re.fullmatch(r"in the (left|right|upper|lower) half of the picture", predicate)
    if half:
        across, down = subject.box.centre
        return (half[1] in ("left", "upper")) == ((across if half[1] in ("left", "right") else down) < 0.5)
    if side := re.fullmatch(r"on the (left|right)", predicate):
        return (side[1] == "left") == (subject.box.centre[0] < 0.5)
    words = predicate.removeprefix("wearing ").removesuffix(" clothes")
    return words in (subject.colour, subject.pattern, SEEMS.get(subject.verb))


def shows(scene: Scene, words: str) -> bool:
    """Whether there is such a thing: "a red dog", "a man in red", "an animal"."""
    words = re.sub(r"^an? ", "", words)
    if group(scene, words):
        return True
    return any(words in (f"{t.colour} {called(t)}", f"{called(t)} in {t.colour}") for t in scene.things)


def answer(scene: Scene, text: str) -> str:
    """The answer to a question, by looking."""
    if match := re.fullmatch(r"What color is the (.+?)( wearing)?\?", text):
        return known(scene, match[1]).colour
    if match := re.fullmatch(r"How many (.+) are (?:there|in the picture)\?", text):
        return str(len(group(scene, match[1])))
    if match := re.fullmatch(r"What is the (.+) doing\?", text):
        return SEEMS[known(scene, match[1]).verb].removesuffix(" something")
    if match := re.fullmatch(r"Where is the .+\?", text):
        return scene.place
    if match := re.fullmatch(r"What is (to the left of|to the right of|above|below) the (.+)\?", text):
        base = known(scene, match[2])
        axis = 0 if match[1].startswith("to") else 1
        found = [
            thing
            for thing in scene.things
            if beside(thing, match[1], base) and abs(thing.box.centre[axis] - base.box.centre[axis]) > 0.2
        ]
        assert len(found) == 1
        return called(found[0]) if found[0].noun == "person" else found[0].noun
    if match := re.fullmatch(r"Which is larger, the (.+) or the (.+)\?", text):
        pair = [known(scene, match[1]), known(scene, match[2])]
        large = max(pair, key=lambda thing: thing.box.width * thing.box.height)
        return called(large) if large.noun == "person" else large.noun
    if match := re.fullmatch(r"Is the (.+) on the left or the right\?", text):
        return "left" if known(scene, match[1]).box.centre[0] < 0.5 else "right"
    if match := re.fullmatch(r"(?:Is there|Are there any) (.+?)(?: in the picture)?\?", text):
        return "yes" if shows(scene, match[1]) else "no"
    for thing in sorted(scene.things, key=lambda thing: -len(called(thing))):
        if text.startswith(f"Is the {called(thing)} "):
            predicate = text.removeprefix(f"Is the {called(thing)} ").removesuffix("?")
            return "yes" if holds(scene, known(scene, called(thing)), predicate) else "no"
    raise AssertionError(text)


def label(scene: Scene, text: str) -> str:
    """Whether a picture entails a hypothesis, contradicts it, or does not show what it speaks of."""
    match = re.fullmatch(r"The (.+?) (?:is|are) (.+)\.", text)
    names = [match[1]]
    if relation := re.fullmatch(r"(?:to the left of|to the right of|above|below) the (.+)", match[2]):
        names.append(relation[1])
    if not all(group(scene, name) for name in names):
        return "neutral"
    return "entailment" if holds(scene, group(scene, names[0])[0], match[2]) else "contradiction"


def truth(left: Scene, right: Scene, text: str) -> bool:
    """Whether a sentence is true of two pictures."""
    sides = {"left": left, "right": right}
    other = {"left": right, "right": left}
    numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    if match := re.fullmatch(r"There is (an? .+) only in the (left|right) image\.", text):
        return shows(sides[match[2]], match[1]) and not shows(other[match[2]], match[1])
    if match := re.fullmatch(r"There is (an? .+) in the (left|right) image\.", text):
        return shows(sides[match[2]], match[1])
    if match := re.fullmatch(r"The (.+?) is (.+) in the (left|right) image\.", text):
        return holds(sides[match[3]], known(sides[match[3]], match[1]), match[2])
    if match := re.fullmatch(r"There are (more|fewer) (.+) in the (left|right) image than in the \w+ image\.", text):
        here, there = (len(group(pictures[match[3]], match[2])) for pictures in (sides, other))
        return here > there if match[1] == "more" else here < there
    if match := re.fullmatch(r"There (?:is|are) (\w+) (.+) in the two images together\.", text):
        return len(group(left, match[2])) + len(group(right, match[2])) == numbers.index(match[1])
    if match := re.fullmatch(r"There is (an? .+) in (both images|exactly one image)\.", text):
        return shows(left, match[1]) + shows(right, match[1]) == (2 if match[2].startswith("both") else 1)
    match = re.fullmatch(r"The (.+) in the left image has (.+) color \w+ the (.+) in the right image\.", text)
    same = known(left, match[1]).colour == known(right, match[3]).colour
    return same == (match[2] == "the same")


def words_of(text: str) -> list[str]:
    """The words of a text and its pairs of neighbours."""
    words = re.findall(r"[a-z]+", text.lower())
    return words + [" ".join(pair) for pair in pairwise(words)]


class Guesser:
    """Naive Bayes on words and pairs of neighbours."""

    def __init__(self, texts: list[str], labels: list[str]) -> None:
        self.counts = {label: Counter() for label in sorted(set(labels))}
        self.totals = Counter(labels)
        for text, label_ in zip(texts, labels, strict=True):
            self.counts[label_].update(set(words_of(text)))

    def score(self, text: str, label_: str) -> float:
        seen = [(self.counts[label_][word] + 1) / (self.totals[label_] + 2) for word in set(words_of(text))]
        return float(np.log(self.totals[label_]) + np.log(seen).sum())

    def __call__(self, text: str) -> str:
        return max(self.counts, key=lambda label_: self.score(text, label_))


def guessed(texts: list[str], labels: list[str]) -> float:
    """How often the guesser is right on the last third, having learnt from the rest."""
    cut = 2 * len(texts) // 3
    guesser = Guesser(texts[:cut], labels[:cut])
    return float(np.mean([guesser(text) == label_ for text, label_ in zip(texts[cut:], labels[cut:], strict=True)]))


def guessed_choice(choices: list[list[str]], labels: list[int]) -> float:
    """The same for choices: which of them looks most like a right one, by itself."""
    cut = 2 * len(choices) // 3
    rights = [
        (choice, str(i == right))
        for some, right in zip(choices[:cut], labels[:cut], strict=True)
        for i, choice in enumerate(some)
    ]
    guesser = Guesser([choice for choice, _ in rights], [right for _, right in rights])
    odds = [
        [guesser.score(choice, "True") - guesser.score(choice, "False") for choice in some] for some in choices[cut:]
    ]
    return float(np.mean([int(np.argmax(some)) == right for some, right in zip(odds, labels[cut:], strict=True)]))
