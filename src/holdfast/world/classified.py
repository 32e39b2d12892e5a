"""Texts to classify, of many kinds: opinions, topics, entailment, paraphrase, stories, and senses of words.

Each is true to its label by its words alone, and labels are balanced by the caller.
"""

from __future__ import annotations

import numpy as np

from holdfast.world.describe import absent, described, facts, name, unique
from holdfast.world.language import review, story_ending
from holdfast.world.scene import Scene, make_scene

Random = np.random.Generator

_TOPICS = {
    "World": ("the minister", "the peace talks", "the border", "the election", "the embassy", "the refugees"),
    "Sports": ("the goalkeeper", "the final", "the coach", "the championship", "the sprint", "the penalty"),
    "Business": ("the shareholders", "the merger", "the oil price", "the profit", "the bank", "the market"),
    "Science or Technology": ("the telescope", "the chip", "the experiment", "the software", "the virus", "the probe"),
    "Company": ("the maker of pumps", "the airline", "the publisher", "the brewery", "the shipyard", "the retailer"),
    "Educational Institution": ("the college", "the grammar school", "the faculty", "the campus", "the academy"),
    "Artist": ("the painter", "the singer", "the composer", "the sculptor", "the guitarist", "the poet"),
    "Athlete": ("the striker", "the swimmer", "the cyclist", "the gymnast", "the pitcher", "the rower"),
    "Office Holder": ("the senator", "the mayor", "the governor", "the judge", "the ambassador", "the deputy"),
    "Mean of Transportation": ("the locomotive", "the frigate", "the biplane", "the tram", "the coupe", "the ferry"),
    "Building": ("the cathedral", "the lighthouse", "the town hall", "the mill", "the tower", "the chapel"),
    "Natural Place": ("the river", "the lake", "the mountain", "the glacier", "the bay", "the canyon"),
    "Village": ("the hamlet", "the parish", "the settlement", "the commune", "the small village", "the farmstead"),
    "Animal": ("the beetle", "the heron", "the squid", "the moth", "the lizard", "the antelope"),
    "Plant": ("the orchid", "the fern", "the shrub", "the moss", "the oak", "the thistle"),
    "Album": ("the debut album", "the live album", "the record", "the compilation", "the soundtrack", "the single"),
    "Film": ("the comedy", "the silent film", "the thriller", "the sequel", "the western", "the animated film"),
    "Written Work": ("the novel", "the magazine", "the play", "the comic", "the anthology", "the newspaper"),
    "Society & Culture": ("the wedding custom", "the prayer", "the holiday", "the belief", "the tradition"),
    "Science & Mathematics": ("the equation", "the molecule", "the triangle", "the theorem", "the planet"),
    "Health": ("the headache", "the diet", "the doctor", "the vaccine", "the allergy", "the dentist"),
    "Education & Reference": ("the exam", "the essay", "the dictionary", "the scholarship", "the teacher"),
    "Computers & Internet": ("the browser", "the password", "the hard disk", "the web page", "the printer"),
    "Business & Finance": ("the mortgage", "the salary", "the tax form", "the loan", "the pension"),
    "Entertainment & Music": ("the concert", "the band", "the talk show", "the lyrics", "the actor"),
    "Family & Relationships": ("the mother-in-law", "the boyfriend", "the divorce", "the cousin", "the date"),
    "Politics & Government": ("the senate", "the vote", "the law", "the campaign", "the constitution"),
}
_TOLD = (
    *("{0} was in the news again this week", "everybody was talking about {0}", "we looked at {0} for a while"),
    *("there is a long note on {0}", "{0} was mentioned twice", "nobody had expected {0}", "I asked about {0}"),
)
_GRADES = ("very negative", "negative", "neutral", "positive", "very positive")
_SENSES = {
    "bank": (("He sat on the bank of the river.", "Reeds grow on the bank."), ("The bank lent her money.",)),
    "crane": (("A crane flew over the marsh.", "The crane has long legs."), ("The crane lifted a beam.",)),
    "mouse": (("The mouse ate the cheese.", "A mouse hid in the barn."), ("Click with the left mouse button.",)),
    "bark": (("The bark of the birch is white.", "Beetles live under the bark."), ("The dog gave a bark.",)),
    "match": (("She lit a match.", "The match burned down."), ("They won the match by two goals.",)),
    "light": (("The light of the lamp is dim.", "Light fell through the door."), ("The bag is light to carry.",)),
    "spring": (("Spring begins in March.", "The garden blooms in spring."), ("The spring of the watch broke.",)),
    "ring": (("He gave her a ring.", "The ring is of gold."), ("They heard the ring of the bell.",)),
    "park": (("The children play in the park.", "We walked through the park."), ("You may not park here.",)),
    "watch": (("My watch is slow.", "He wound his watch."), ("They watch the birds.",)),
}
_PLACES = ("in the evening", "on Monday", "last year", "at home", "in town", "before noon", "once more", "by chance")
_OPENINGS = ("", "As he said: ", "She wrote: ", "It is true: ", "To be brief: ", "The note says: ")


def graded(random: Random, label: str) -> str:
    """A review whose sentences are good to the degree of its label: one of five, or Good or Bad.

    >>> graded(np.random.default_rng(0), "very negative") != graded(np.random.default_rng(0), "very positive")
    True
    """
    if label in ("Good", "Bad"):
        return review(random, label == "Good", sentences=2)
    good = _GRADES.index(label)
    order = random.permutation(4) < good
    return " ".join(review(random, bool(each), sentences=1) for each in order)


def on_topic(random: Random, label: str) -> str:
    """Two sentences with words of the topic, and of no other topic.

    >>> text = on_topic(np.random.default_rng(0), "Plant")
    >>> any(words in text.lower() for words in ("orchid", "fern", "shrub", "moss", "oak", "thistle"))
    True
    """
    words = _TOPICS[label]
    first, second = (words[int(i)] for i in random.permutation(len(words))[:2])
    forms = [_TOLD[int(i)] for i in random.permutation(len(_TOLD))[:2]]
    told = [form.format(each) for form, each in zip(forms, (first, second), strict=True)]
    return " ".join(f"{each[0].upper()}{each[1:]} {_PLACES[int(random.integers(len(_PLACES)))]}." for each in told)


def pair_of_sentences(random: Random, label: str) -> tuple[str, str]:
    """Facts about a scene, and a statement that they entail, contradict, or leave open.

    >>> premise, statement = pair_of_sentences(np.random.default_rng(3), "entailment")
    >>> statement in premise
    True
    """
    scene = _scene(random)
    found = facts(scene, random, unique(scene))
    chosen = [found[int(i)] for i in random.permutation(len(found))[:3]]
    premise = " ".join(_sentence(scene, fact.true, fact.subject, fact.other) for fact in chosen)
    if label == "neutral":
        found = []
        while not found:  # some things have no attribute to ask about
            other, missing = absent(scene, random)
            found = [fact for fact in facts(other, random, [missing]) if fact.other is None]
        return premise, _sentence(other, found[0].true, missing, None)
    fact = chosen[int(random.integers(len(chosen)))]
    return premise, _sentence(scene, fact.true if label == "entailment" else fact.false, fact.subject, fact.other)


def two_questions(random: Random, same: bool) -> tuple[str, str]:
    """Two questions that ask for the same thing in other words, or for two things.

    >>> two_questions(np.random.default_rng(1), same=True) != two_questions(np.random.default_rng(1), same=False)
    True
    """
    first = second = _goods(random)
    while second == first:
        second = _goods(random)
    forms = ("Where can I buy a {0}?", "How much does a {0} cost?", "How do I clean a {0}?")
    others = ("Which shop sells a {0}?", "What is the price of a {0}?", "What is the best way to clean a {0}?")
    place = int(random.integers(len(forms)))
    return forms[place].format(first), others[place].format(first if same else second)


def _goods(random: Random) -> str:
    """Something that has a price, with its colour."""
    while True:
        things = [thing for thing in _scene(random).things if thing.noun != "person"]
        if things:
            return described(things[int(random.integers(len(things)))])


def two_endings(random: Random, right: int) -> tuple[str, tuple[str, str]]:
    """The start of a story, and two ways to go on: the one at `right` follows.

    >>> start, endings = two_endings(np.random.default_rng(1), right=0)
    >>> len(set(endings))
    2
    """
    start, endings, label, _ = story_ending(random)
    before, _, subject = start.rpartition(". ")
    wrong = next(ending for place, ending in enumerate(endings) if place != label)
    both = [f"{subject[0].upper()}{subject[1:]} {ending}." for ending in (endings[label], wrong)]
    return f"{before}.", (both[0], both[1]) if right == 0 else (both[1], both[0])


def two_uses(random: Random, same: bool) -> tuple[str, str, str]:
    """A word, and two sentences that use it in the same sense or in two.

    >>> word, first, second = two_uses(np.random.default_rng(2), same=True)
    >>> word in first.lower() and word in second.lower()
    True
    """
    word = list(_SENSES)[int(random.integers(len(_SENSES)))]
    (first, second), (other,) = _SENSES[word]
    pair = [first, second if same else other]
    opening, first_when, second_when = (some[int(random.integers(len(some)))] for some in (_OPENINGS, _PLACES, _PLACES))
    start, end = (pair[int(i)] for i in random.permutation(2))
    return word, f"{opening}{start[:-1]} {first_when}.", f"{end[:-1]} {second_when}."


def _scene(random: Random) -> Scene:
    """A random scene with several facts about things that have names of their own."""
    while True:
        scene = make_scene(*(int(number) for number in random.integers(2**31, size=2)))
        if len(facts(scene, random, unique(scene))) >= 3:
            return scene


def _sentence(scene: Scene, told: str, subject: int, other: int | None) -> str:
    names = [f"the {name(scene.things[i])}" for i in (subject, other) if i is not None]
    text = told.format(*names)
    return f"{text[0].upper()}{text[1:]}."
