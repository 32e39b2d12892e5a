"""Phrases that we no longer use, because they read as translated, with words to use instead.

The list has the most frequent ones; it does not define good English. Line breaks and comment marks are removed before
matching, and texts of several pieces are joined, so that a phrase is also found if it is broken across lines.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PHRASES = {
    r"(is|are|was|were|be|been) told": "reported, listed, noted",
    r"so many": "N, that many, up to N",
    r"with a sentence": "with an error message",
    r"a sentence (where|that says|when)": "raises an error if",
    r'"""(Give|Tell)s? ': "an imperative or a noun phrase: Return, The ...",
    r"stands? twice": "occurs twice",
    r"of one's own": "your own",
    r"is another one\b": "differs",
    r"where there (is|are) none": "if there is none",
    r"(?<!there )(is|are|was|were) no (?!longer|such|other|more |less|fewer|larger|better|smaller)\w+": "is not a",
    r"in earnest": "say what happens",
    r"left aside": "set aside",
    r"has not got": "does not have",
    r"the end tells": "the summary lists",
    r"by what (waits|it|is)\b": "name the thing",
    r"(go|goes) on (where|without|step by step|with|from|to)\b": "continues",
    r"there is no \w+ (?=['\"{])": "unknown ...",
    r"and this benchmark(?= has|'s have)": "but this benchmark",
    r"what guessing scores": "the score of guessing",
    r"what (it|they|these|those|frozen \w+) gives?\b": "its output",
    r"epochs (are )?longer by": "epochs include",
    r"dealt out": "divided among, assigned to",
    r"of no (more )?use": "useless",
    r'"""Those of (?!the|a |an )': "name the thing",
}


def pages() -> list[Path]:
    return [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.toml"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs/tutorials").glob("*.py"),
        *(ROOT / "examples").rglob("*.py"),
        *ROOT.glob("*.md"),
    ]


def found(text: str) -> list[str]:
    """The phrases of the list that a text has."""
    flat = re.sub(r"\s*\n\s*(# )?", " ", re.sub(r"(?<![\"(,])\"\n\s*f?\"(?!\")", "", text))
    return [match[0] for phrase in PHRASES for match in re.finditer(rf"(?<!\w){phrase}", flat, re.I)]


def test_phrases_that_read_as_translated_stay_out():
    listed = {str(path.relative_to(ROOT)): found(path.read_text(encoding="utf-8")) for path in pages()}
    assert len(listed) > 300
    wrong = {path: phrases for path, phrases in listed.items() if phrases}
    assert not wrong, f"{wrong}: use {PHRASES}"


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("# a bad record is\n    # told with its file", ["is told"]),
        ('"""Give the ids."""', ['"""Give ']),
        ("Drop at most so\nmany bad records.", ["so many"]),
        ("There is no list, and its caller told us so.", []),
        ("a word is no number", ["is no number"]),
        ("It is no longer there; no file is there.", []),
        ("if there is none, the number is unknown", []),
        ('f"{name} has rows which "\n    "are no examples"', ["are no examples"]),
        ("There is no file 'a.txt'; there is no such file.", ["There is no file "]),
    ],
)
def test_a_phrase_is_found_across_lines(text, phrases):
    assert found(text) == phrases
