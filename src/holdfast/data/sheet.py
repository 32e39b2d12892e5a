"""Contact sheets: examples for a person to look at, with their text and the correct answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from holdfast.data.images import decode
from holdfast.types import Example

CELL, GAP, LINE = 240, 12, 13
LINES = 12
"""The maximum number of lines of a question or review; the rest is cut, but choices and targets are always complete."""
INK, FAINT, RIGHT, PAPER = (20, 20, 20), (120, 120, 120), (0, 120, 40), (255, 255, 255)
_NAMES = ("gold_label", "fine_label_name", "name", "category", "comb", "label", "wnid")
"""The fields in which readers put the name of a class, in their datasets' own words."""

Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont
_Line: TypeAlias = tuple[str, tuple[int, int, int]]


@dataclass(frozen=True)
class Card:
    """One example on a sheet: its pictures, a text, choices (one may be correct), the target in words, the id."""

    images: tuple[Path | NDArray[np.uint8], ...]
    text: str
    target: str
    id: str = ""
    choices: tuple[str, ...] = ()
    right: int | None = None


def card(example: Example, names: Mapping[int, str] | None = None) -> Card:
    """What a person needs to see of an example; `names` are the class names to use if the example has none.

    >>> shown = card(Example("7", 1, text="Which one?", choices=("this", "that")))
    >>> shown.choices, shown.right
    (('a) this', 'b) that'), 1)
    >>> card(Example("8", (0, 2)), {0: "cat", 2: "dog"}).target
    'cat, dog'
    """
    choices = tuple(f"{chr(97 + number)}) {choice}" for number, choice in enumerate(example.choices))
    right = example.target if choices and isinstance(example.target, int) else None
    text = example.text or " ".join(str(caption) for caption in example.extra.get("captions", ())[:1])
    target = "" if choices and right is not None else ", ".join(_target(example, names or {}))
    return Card(example.images, text, target, example.id, choices, right)


def _target(example: Example, names: Mapping[int, str]) -> Iterator[str]:
    """The target in words, or a description of the picture if there is no target."""
    target, extra = example.target, example.extra
    things = [name for name in extra.get("labels", ()) if isinstance(name, str)]
    if isinstance(target, str):
        yield target
    elif isinstance(target, tuple):
        yield from dict.fromkeys(things) if things else [names.get(number, f"class {number}") for number in target]
    elif target is None:
        yield from dict.fromkeys(things)
    elif target in names:
        yield names[target]
    else:
        found = next((extra[key] for key in _NAMES if isinstance(extra.get(key), str | tuple)), f"class {target}")
        yield found if isinstance(found, str) else " + ".join(str(word) for word in found)


def sheet(cards: Sequence[Card], columns: int = 4) -> Image.Image:
    """The cards as one picture, row by row; a row is as high as its tallest card."""
    font = ImageFont.load_default()
    rows = [_Row.of(cards[first : first + columns], font) for first in range(0, len(cards), columns)]
    page = Image.new("RGB", (columns * (CELL + GAP) + GAP, sum(row.height + GAP for row in rows) + GAP), PAPER)
    pen, top = ImageDraw.Draw(page), GAP
    for row in rows:
        for column, (pictures, lines) in enumerate(zip(row.pictures, row.lines, strict=True)):
            left = GAP + column * (CELL + GAP)
            for position, picture in enumerate(pictures):
                page.paste(picture, (left + position * CELL // len(pictures), top))
            for place, (line, colour) in enumerate(lines):
                pen.text((left, top + row.picture_height + place * LINE), line, colour, font)
        top += row.height + GAP
    return page


@dataclass(frozen=True)
class _Row:
    """A row of cards: the pictures of each, as large as the cell allows, with lines of text below."""

    pictures: list[list[Image.Image]]
    lines: list[list[_Line]]

    @classmethod
    def of(cls, cards: Sequence[Card], font: Font) -> _Row:
        return cls([_pictures(each) for each in cards], [_lines(each, font) for each in cards])

    @property
    def picture_height(self) -> int:
        return max((picture.height + 6 for pictures in self.pictures for picture in pictures), default=0)

    @property
    def height(self) -> int:
        return self.picture_height + LINE * max(len(lines) for lines in self.lines) + GAP


def _pictures(each: Card) -> list[Image.Image]:
    width, height = CELL // max(len(each.images), 1) - 2, CELL * 3 // 4
    found = []
    for source in each.images:
        picture = Image.fromarray(decode(source, None))
        scale = min(width / picture.width, height / picture.height)
        found.append(picture.resize((max(round(picture.width * scale), 1), max(round(picture.height * scale), 1))))
    return found


def _lines(each: Card, font: Font) -> list[_Line]:
    """The text below the pictures, line by line, each with its colour: the right choice and the target in green."""
    text = wrapped(each.text, font)
    if len(text) > LINES:
        text = [*text[: LINES - 1], f"{text[LINES - 1]} …"]
    lines = [(line, INK) for line in text]
    for number, choice in enumerate(each.choices):
        mark, colour = ("> ", RIGHT) if number == each.right else ("", INK)
        lines += [(line, colour) for line in wrapped(mark + choice, font)]
    lines += [(line, RIGHT) for line in wrapped(each.target, font)]
    return [*lines, *((line, FAINT) for line in wrapped(each.id, font))]


def wrapped(text: str, font: Font, width: int = CELL) -> list[str]:
    """A text in lines that fit; a word that is too long for a line is broken.

    >>> font = ImageFont.load_default()
    >>> lines = wrapped("a long question " * 5 + "x" * 90, font)
    >>> all(font.getlength(line) <= CELL for line in lines), "".join(lines).count("x")
    (True, 90)
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        while font.getlength(word) > width:
            fits = next(end for end in range(len(word), 0, -1) if font.getlength(word[:end]) <= width)
            lines += [line, word[:fits]] if line else [word[:fits]]
            line, word = "", word[fits:]
        longer = f"{line} {word}".strip()
        if font.getlength(longer) <= width:
            line = longer
        else:
            lines.append(line)
            line = word
    return [*lines, line] if line else lines
