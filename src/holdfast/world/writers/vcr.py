"""VCR: questions about film stills with four answers and four rationales, whose words refer to boxes.

Some films are black and white, so all their stills are greyscale; none is CMYK, since video has no such pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.language import VisualQuestion, visual_commonsense
from holdfast.world.scene import Box, Scene, Thing, make_scene, nouns_in
from holdfast.world.vocabulary import PLACES
from holdfast.world.writers.json_files import write_json, write_json_lines
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
PLANTED = {"test": 1}
"""Bad records of a split, such as the official files have, which a reader reports."""
COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "tiny": {"train": (240, 90), "val": (80, 30), "test": (30, 12)},
    "small": {"train": (4_000, 1_500), "val": (800, 300), "test": (300, 120)},
    "large": {"train": (50_000, 20_000), "val": (5_000, 2_000), "test": (2_000, 800)},
    "paper": {"train": (212_923, 80_418), "val": (26_534, 9_929), "test": (25_263, 9_557)},
}
"""Questions and images of each split."""

_SCENE_NUMBERS = {"train": 40_000_000, "val": 41_000_000, "test": 42_000_000}
_STILLS = 8  # per film
_CROWD = 55  # more things than any list of fifty names or colours
# Film formats differ, and so do the sizes of stills.
_SIZES = ((96, 72), (128, 54), (112, 63), (96, 52))

Tokens = list[str | list[int]]


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=350, pictures=132, pixels=6468, values=0)
    """
    counts = at_scale(COUNTS, scale).values()
    pixels = sum(width * height for width, height in _SIZES) // len(_SIZES)
    return Amount(sum(asked for asked, _ in counts), sum(stills for _, stills in counts), pixels)


def write(folder: Path, scale: str, seed: int, *, images: bool = True, flaws: bool = True) -> None:
    """Write the three splits and, with `images`, the pictures, each with a file of its boxes beside it.

    With `flaws`, one question of test refers to an object beyond the last, as rare official ones do; a reader reports
    it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['test.jsonl', 'train.jsonl', 'val.jsonl', 'vcr1images']
    """
    with drawing() as draw:
        for split, (questions, stills) in at_scale(COUNTS, scale).items():
            write_json_lines(
                folder / f"{split}.jsonl", _lines(split, questions, stills, seed, flaws and split == "test")
            )
            for number in range(stills):
                scene, name = _scene(split, number, seed), _name(split, number)
                path = folder / "vcr1images" / f"{name}.jpg"
                write_json(path.with_name(f"{path.stem}.json"), _metadata(scene, number))
                if images:
                    kind = "grey-jpeg" if number // _STILLS % 29 == 7 else "jpeg"
                    draw(save_scene, path, scene, _SIZES[number % 4], kind)


@lru_cache(maxsize=4_096)  # at small scales, a scene is made once for its questions and its picture
def _scene(split: str, number: int, seed: int) -> Scene:
    """One or two persons among other things of the same place; the fourth still of training shows a crowd."""
    first = _SCENE_NUMBERS[split] + number
    if (split, number) == ("train", 3):
        return _crowd(first, seed)
    random = np.random.default_rng([seed, first, 7])
    place = PLACES[int(random.integers(len(PLACES)))]
    here = nouns_in(place)
    others = [here[int(index)] for index in random.integers(len(here), size=int(random.integers(1, 3)))]
    return make_scene(seed, first, nouns=["person"] * int(random.integers(1, 3)) + others)


def _crowd(number: int, seed: int) -> Scene:
    """Rows of eleven persons: an ordinary scene has room for only a dozen things."""
    things: list[Thing] = []
    rows = _CROWD // 11
    for row in range(rows):
        for index, thing in enumerate(make_scene(seed, number + 500_000 + row, nouns=["person"] * 11).things):
            box = Box(0.02 + index * 0.088, 0.02 + row * 0.96 / rows, 0.07, 0.9 / rows)
            things.append(replace(thing, box=box, other=None))
    return Scene(number, make_scene(seed, number + 500_000, nouns=["person"]).place, tuple(things))


def _movie(split: str, number: int) -> tuple[str, str]:
    """The folder and the movie of a still; eight consecutive stills form a movie, which is in one split only."""
    film = number // _STILLS
    first = {"train": 1_000, "val": 50_000, "test": 80_000}[split]
    if film % 2:
        return f"movieclips_World_{first + film}", f"World_{first + film}"
    return f"lsmdc_{first + film}_WORLD", f"{first + film}_WORLD"


def _name(split: str, number: int) -> str:
    folder, movie = _movie(split, number)
    if folder.startswith("movieclips"):
        return f"{folder}/wOrLd-{number}@{number % 50}"
    time = f"00.{number // 60 % 60:02d}.{number % 60:02d}"
    return f"{folder}/{movie}_{time}.000-{time}.900@0"


def _metadata(scene: Scene, number: int) -> dict[str, Any]:
    width, height = _SIZES[number % 4]
    boxes: list[list[float]] = []
    outlines: list[list[list[list[float]]]] = []
    for index, thing in enumerate(scene.things):
        left, top = round(thing.box.left * width, 2), round(thing.box.top * height, 2)
        right = round((thing.box.left + thing.box.width) * width, 2)
        bottom = round((thing.box.top + thing.box.height) * height, 2)
        boxes.append([left, top, right, bottom, round(0.99 - 0.04 * (index % 7), 2)])
        outline = [[left, top], [right, top], [right, bottom], [left, bottom]]
        match (number + index) % 10:
            case 0:
                outlines.append([])  # the detector returned a box without an outline
            case 1:
                outlines.append([outline[:1]])  # or an outline of a single point
            case _:
                outlines.append([outline])
    names = [_object(thing) for thing in scene.things]
    return {"boxes": boxes, "segms": outlines, "names": names, "width": width, "height": height}


def _object(thing: Thing) -> str:
    return thing.noun.replace(" ", "")


def _lines(split: str, questions: int, stills: int, seed: int, flaws: bool) -> Iterator[dict[str, Any]]:
    each, left_over = divmod(questions, stills)
    row = 0
    for number in range(stills):
        scene = _scene(split, number, seed)
        random = np.random.default_rng([seed, _SCENE_NUMBERS[split] + number, 8])
        for place in range(each + (number < left_over)):
            asked = visual_commonsense(scene, random)
            if len(scene.things) == _CROWD:
                asked = _about_the_last(asked, scene, random)
            if flaws and row == 1:
                beyond: Tokens = [*asked.question[:-1], "near", [len(scene.things) + 3], *asked.question[-1:]]
                asked = replace(asked, question=beyond)
            yield _line(split, number, place, row, asked, scene, random)
            row += 1


def _about_the_last(asked: VisualQuestion, scene: Scene, random: np.random.Generator) -> VisualQuestion:
    """A question about a crowd that refers to someone beyond the fiftieth person, if possible."""
    for _ in range(100):
        texts = (asked.question, *asked.answers, *asked.rationales)
        if any(index > 50 for tokens in texts for token in tokens if isinstance(token, list) for index in token):
            break
        asked = visual_commonsense(scene, random)
    return asked


def _line(
    split: str, number: int, place: int, row: int, asked: VisualQuestion, scene: Scene, random: np.random.Generator
) -> dict[str, Any]:
    name = _name(split, number)
    answers, answer_label = _turned(asked.answers, asked.answer_label, int(random.integers(4)))
    rationales, rationale_label = _turned(asked.rationales, asked.rationale_label, int(random.integers(4)))
    question: Tokens = list(asked.question)
    fold = f"{split}-{row % 20}"
    record: dict[str, Any] = {
        "movie": _movie(split, number)[1],
        "objects": [_object(thing) for thing in scene.things],
        "interesting_scores": [int(score) for score in random.integers(-1, 2, 3)],
        "answer_likelihood": ("possible", "likely", "unlikely")[int(random.integers(3))],
        "img_fn": f"{name}.jpg",
        "metadata_fn": f"{name}.json",
        "answer_orig": _spoken(answers[answer_label]),
        "question_orig": _spoken(question),
        "rationale_orig": _spoken(rationales[rationale_label]),
        "question": question,
        "answer_match_iter": _places(answer_label),
        "answer_sources": _sources(answer_label, random),
        "answer_choices": answers,
        "answer_label": answer_label,
        "rationale_choices": rationales,
        "rationale_sources": _sources(rationale_label, random),
        "rationale_match_iter": _places(rationale_label),
        "rationale_label": rationale_label,
        "img_id": f"{split}-{number}",
        "question_number": place,
        "annot_id": f"{split}-{row}",
        "match_fold": fold,
        "match_index": row // 20,
    }
    if split == "test":  # remove everything that would reveal the right choice
        endings = ("orig", "label", "match_iter", "sources")
        hidden = {f"{name}_{ending}" for name in ("answer", "rationale") for ending in endings}
        record = {key: value for key, value in record.items() if key not in hidden}
    return record


def _turned(choices: Any, label: int, by: int) -> tuple[list[Tokens], int]:
    """The choices rotated, so that the right one is equally often in each position."""
    count = len(choices)
    return [list(choices[(index - by) % count]) for index in range(count)], (label + by) % count


def _places(label: int) -> list[int]:
    rest = iter((3, 2, 1))
    return [0 if index == label else next(rest) for index in range(4)]


def _sources(label: int, random: np.random.Generator) -> list[int]:
    return [0 if index == label else int(random.integers(1, 10_000)) for index in range(4)]


def _spoken(tokens: Tokens) -> str:
    """The text as its author typed it: numbers, from 1, in place of the tags."""
    words = [" and ".join(str(i + 1) for i in token) if isinstance(token, list) else token for token in tokens]
    return " ".join(words).replace(" ?", "?").replace(" .", ".").replace(" ,", ",")
