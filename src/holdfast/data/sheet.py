"""Contact sheets: examples as a person would look at them, with their text and what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from holdfast.data.images import decode
from holdfast.types import Example

CELL, GAP, LINE, LINES = 220, 10, 13, 7
INK, FAINT, PAPER = (20, 20, 20), (110, 110, 110), (255, 255, 255)


@dataclass(frozen=True)
class Card:
    """One example on a sheet: its pictures, a text, and a line below it."""

    images: tuple[Path | NDArray[np.uint8], ...]
    text: str
    target: str


def card(example: Example) -> Card:
    """What a person needs to see of an example.

    >>> card(Example("7", 1, text="Which one?", choices=("this", "that"))).text
    'Which one? a) this b) that'
    """
    choices = (f"{chr(97 + number)}) {choice}" for number, choice in enumerate(example.choices))
    text = " ".join([example.text, *choices]).strip()
    return Card(example.images, text, f"{example.id}: {example.target}")


def sheet(cards: Sequence[Card], columns: int = 4) -> Image.Image:
    """The cards as one picture, row by row."""
    rows = -(-len(cards) // columns)
    picture_height = CELL * 3 // 4 if any(c.images for c in cards) else 0
    height = picture_height + LINE * (LINES + 1) + GAP
    page = Image.new("RGB", (columns * (CELL + GAP) + GAP, rows * (height + GAP) + GAP), PAPER)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default()
    for number, each in enumerate(cards):
        left, top = GAP + number % columns * (CELL + GAP), GAP + number // columns * (height + GAP)
        width = CELL // max(len(each.images), 1)
        for position, source in enumerate(each.images):
            picture = Image.fromarray(decode(source, None))
            scale = min(width / picture.width, picture_height / picture.height)
            size = max(round(picture.width * scale), 1), max(round(picture.height * scale), 1)
            page.paste(picture.resize(size), (left + position * width, top))
        lines = wrap(each.text, 36)
        lines = lines if len(lines) <= LINES else [*lines[: LINES - 1], lines[LINES - 1][:34] + " …"]
        for row, line in enumerate(lines):
            pen.text((left, top + picture_height + row * LINE), line, INK, font)
        pen.text((left, top + picture_height + LINES * LINE), each.target[:38], FAINT, font)
    return page
