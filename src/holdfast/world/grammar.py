"""Small rules of English: articles, plurals, verb forms, numbers, and synonyms that people use."""

from __future__ import annotations

_PLURALS = {
    "person": "people",
    "man": "men",
    "woman": "women",
    "child": "children",
    "knife": "knives",
    "mouse": "mice",
    "leaf": "leaves",
    "shelf": "shelves",
    "sheep": "sheep",
    "fish": "fish",
}
_PIECES = {  # nouns without a count of their own
    "skis": "pair of skis",
    "scissors": "pair of scissors",
    "broccoli": "piece of broccoli",
    "grass": "patch of grass",
    "pants": "pair of pants",
    "glasses": "pair of glasses",
    "shorts": "pair of shorts",
    "leaves": "heap of leaves",
}
_AN = ("hour",)
_NOT_AN = ("uni", "use", "eu", "one")
_DOUBLED = ("sit", "run", "swim", "cut", "get", "put", "hit", "skip", "dig", "stop")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SYNONYMS: dict[str, tuple[str, ...]] = {
    "airplane": ("plane",),
    "bicycle": ("bike",),
    "motorcycle": ("motorbike",),
    "couch": ("sofa",),
    "tv": ("television",),
    "cell phone": ("phone",),
    "dining table": ("table",),
    "potted plant": ("plant",),
    "refrigerator": ("fridge",),
    "remote": ("remote control",),
    "donut": ("doughnut",),
    "hair drier": ("hair dryer",),
    "laptop": ("computer",),
    "cup": ("mug",),
    "sports ball": ("ball",),
    "large": ("big",),
    "small": ("little",),
    "gray": ("grey",),
    "purple": ("violet",),
    "street": ("road",),
    "sea": ("ocean", "water"),
    "beach": ("sand",),
    "field": ("grass",),
    "forest": ("woods",),
    "lying": ("lying down", "resting"),
    "standing": ("standing still",),
    "sitting": ("sitting down",),
    "child": ("kid",),
}


def article(words: str) -> str:
    """The words preceded by the indefinite article.

    >>> article("orange cat"), article("hourglass"), article("unicorn")
    ('an orange cat', 'an hourglass', 'a unicorn')
    """
    vowel = words.startswith(_AN) or (words[0] in "aeiou" and not words.startswith(_NOT_AN))
    return f"{'an' if vowel else 'a'} {words}"


def singular(noun: str) -> str:
    """The words for one thing of this noun.

    >>> singular("scissors"), singular("hot dog")
    ('pair of scissors', 'hot dog')
    """
    return _PIECES.get(noun, noun)


def plural(noun: str) -> str:
    """The words for several things of this noun.

    >>> plural("bus"), plural("person"), plural("wine glass"), plural("scissors"), plural("berry")
    ('buses', 'people', 'wine glasses', 'pairs of scissors', 'berries')
    """
    head, of, rest = _PIECES.get(noun, noun).partition(" of ")
    if of:
        return f"{plural(head)}{of}{rest}"
    before, space, last = noun.rpartition(" ")
    if last in _PLURALS:
        return before + space + _PLURALS[last]
    if last.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if last.endswith("y") and last[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def gerund(verb: str) -> str:
    """The -ing form of a phrase whose first word is the verb.

    >>> gerund("lie"), gerund("ride"), gerund("sit"), gerund("look at")
    ('lying', 'riding', 'sitting', 'looking at')
    """
    head, space, rest = verb.partition(" ")
    if head.endswith("ie"):
        head = f"{head[:-2]}y"
    elif head.endswith("e") and not head.endswith(("ee", "oe")):
        head = head[:-1]
    elif head in _DOUBLED:
        head += head[-1]
    return f"{head}ing{space}{rest}"


def third_person(verb: str) -> str:
    """The form that follows "it".

    >>> third_person("fly"), third_person("catch"), third_person("lie"), third_person("look at")
    ('flies', 'catches', 'lies', 'looks at')
    """
    head, space, rest = verb.partition(" ")
    if head.endswith(("s", "x", "ch", "sh", "o")):
        head += "es"
    elif head.endswith("y") and head[-2] not in "aeiou":
        head = f"{head[:-1]}ies"
    else:
        head += "s"
    return f"{head}{space}{rest}"


def number_word(number: int) -> str:
    """A count, spelt out if that is usual.

    >>> number_word(3), number_word(40)
    ('three', '40')
    """
    return NUMBERS[number] if number < len(NUMBERS) else str(number)
