"""Film reviews whose sentiment lies in words in context: negation, concession, expectation; never in length."""

from __future__ import annotations

import numpy as np

from holdfast.errors import UserError

GOOD = (
    *("wonderful", "moving", "funny", "clever", "fresh", "gripping", "warm", "honest", "elegant", "thrilling"),
    *("charming", "sharp", "tender", "vivid", "superb", "witty", "graceful", "rousing", "delightful", "inspired"),
    *("touching", "brilliant", "lively", "subtle"),
)
BAD = (
    *("dreadful", "dull", "tedious", "clumsy", "stale", "shallow", "cold", "false", "awkward", "boring"),
    *("lifeless", "blunt", "wooden", "muddy", "awful", "tiresome", "sloppy", "feeble", "hollow", "confused"),
    *("dreary", "crude", "flat", "pointless"),
)
ASPECTS = (
    *("the acting", "the plot", "the dialogue", "the music", "the pacing", "the ending", "the camera work"),
    *("the editing", "the script", "the humour", "the leading role", "the first half", "the second half"),
    *("the direction", "the final scene", "the whole cast", "the opening", "the love story", "the narration"),
    *("the set design", "the main idea", "the villain", "the long chase", "the soundtrack", "the costume work"),
    *("the supporting cast", "the middle part", "the family drama", "the last twist", "the lighting", "the hero"),
    *("the choice of words", "the sense of place", "the tone", "the world it builds", "the big speech"),
)
ADVERBS = (
    *("really", "quite", "often", "remarkably", "simply", "mostly", "rather", "truly", "surprisingly", "somehow"),
    *("frankly", "plainly", "at times", "to my mind"),
)
_ASIDES = (
    *(" from start to finish", " in every scene", " on the whole", " for a first film", " this time", " at every turn"),
    *(
        " as far as I can tell",
        " even on a small screen",
        " all evening long",
        " on a second viewing",
        " by any measure",
    ),
    *(" for this director", " in the dubbed version", " despite the rain outside", " from what I remember"),
)
NEUTRAL = (
    "I saw it on a rainy evening with two friends",
    "It runs for almost two hours",
    "The story follows a family over three summers",
    "It was shot in a small town by the sea",
    "The director made two films before this one",
    "Most of it takes place in a single house",
    "I had read the book some years ago",
    "The cinema was about half full",
)
VERDICTS = (
    ("I would see it again", "I would not see it again"),
    ("I can recommend it to anyone", "I cannot recommend it to anyone"),
    ("It was worth the ticket", "It was not worth the ticket"),
    ("I was sorry when it ended", "I was not sorry when it ended"),
    ("It does not waste a minute", "It does waste a minute, and then another"),
)


def review(random: np.random.Generator, positive: bool, *, sentences: int | None = None) -> str:
    """A film review, by default of three to seven sentences; more opinions agree with the label than not.

    >>> text = review(np.random.default_rng(3), positive=True)
    >>> text == review(np.random.default_rng(3), positive=True), text.endswith(".")
    (True, True)
    >>> review(np.random.default_rng(0), positive=False, sentences=1)
    'The villain is so sloppy that one forgets how lively the main idea is all evening long.'
    """
    if sentences is not None and sentences < 1:
        raise UserError(f"a review needs at least one sentence, not {sentences}")
    count = int(random.integers(3, 8)) if sentences is None else sentences
    against = min(int(random.binomial(count, 0.25)), (count - 1) // 2)
    plain = int(random.integers(0, 2)) if count - 2 * against > 1 else 0
    aspects = [ASPECTS[i] for i in random.permutation(len(ASPECTS))]
    told = []
    for number in range(count):
        if number < plain:
            told.append(NEUTRAL[random.integers(len(NEUTRAL))])
        else:
            first, second = aspects[2 * number % len(aspects)], aspects[(2 * number + 1) % len(aspects)]
            agrees = number >= plain + against
            told.append(
                _opinion(random, positive == agrees, first, second, outright=0.65 if sentences is None else 0.45)
            )
    ordered = [told[i] for i in random.permutation(count)]
    if sentences is None and random.random() < 0.6:
        ordered.append(VERDICTS[random.integers(len(VERDICTS))][0 if positive else 1])
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in ordered)


def opinions() -> int:
    """The number of different sentences of one sentiment, not counting a second aspect: SST-2 has 67,349.

    >>> opinions() > 200_000
    True
    """
    plain = len(ASPECTS) * len(GOOD) * (2 * len(ADVERBS) + 1)
    return (plain + 3 * len(ASPECTS) * len(BAD)) * (1 + len(_ASIDES))


def _opinion(random: np.random.Generator, positive: bool, aspect: str, other: str, outright: float) -> str:
    """One sentence of the given sentiment: outright (with that probability), or by denial, contrast or expectation."""
    agreeing, opposing = (GOOD, BAD) if positive else (BAD, GOOD)
    yes, no = str(random.choice(agreeing)), str(random.choice(opposing))
    adverb = str(random.choice(ADVERBS))
    form = random.random() if random.random() >= outright else None
    if form is None:
        forms = (f"{aspect} is {adverb} {yes}", f"{aspect} is {yes}", f"I found {aspect} {adverb} {yes}")
    elif form < 0.36:
        forms = (
            f"{aspect} is never {no}",
            f"there is nothing {no} about {aspect}",
            f"nobody could call {aspect} {no}",
        )
    elif form < 0.73:
        forms = (
            f"although {other} is {adverb} {no}, {aspect} is {yes}",
            f"{other} may be {no}, but {aspect} is {adverb} {yes}",
            f"{aspect} is so {yes} that one forgets how {no} {other} is",
        )
    else:
        forms = (
            f"I expected {aspect} to be {no}, and it turned out {yes}",
            f"{aspect} is {yes} where others of its kind are {no}",
            f"far from {no}, {aspect} is {yes}",
        )
    aside = _ASIDES[random.integers(len(_ASIDES))] if random.random() < 0.6 else ""
    return forms[random.integers(len(forms))] + aside
