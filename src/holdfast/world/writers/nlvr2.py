"""NLVR2: a sentence that is true or false of two images; JSON lines, despite the names of the files.

Sets of eight images share a few nouns, and each sentence is used with one pair of which it is true and with one of
which it is false, so the sentence alone does not reveal the label. Kept from the original: the pictures come from the
web, so some are greyscale and some are JPEG although all are named .png; none is CMYK, which PNG does not support.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.world.draw import drawing, render, save_image
from holdfast.world.language import two_image_statement
from holdfast.world.scene import Scene, make_scene, nouns_in
from holdfast.world.vocabulary import PLACES
from holdfast.world.writers.json_files import write_json, write_json_lines
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
PLANTED = {"test2": 1}
"""Bad records of a split, such as the official files have, which a reader reports."""
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 240, "dev": 80, "test1": 80, "test2": 24},
    "small": {"train": 4_000, "dev": 800, "test1": 800, "test2": 200},
    "large": {"train": 40_000, "dev": 4_000, "test1": 4_000, "test2": 1_000},
    "paper": {"train": 86_373, "dev": 6_982, "test1": 6_967, "test2": 6_970},
}

_FIRST_SET = {"train": 0, "dev": 100_000, "test1": 200_000, "test2": 300_000}
_SCENE_NUMBERS = 30_000_000  # so that no picture is shared with COCO
_PAIRS = 4
_SHARES = {"in": 1.0, "only": 0.8, "fact": 0.4, "both": 0.25, "comparison": 0.1, "exactly": 0.03, "same": 0.01} | {
    "count": 0.005
}
"""How often each form of sentence is used, if a set of pictures has it: the harder, the more rarely."""


@dataclass(frozen=True)
class _Claim:
    """A sentence of a set, by its number, and whether it is true of a pair."""

    sentence: str
    number: int
    pair: int
    truth: bool


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=424, pictures=636, pixels=6912, values=0)
    """
    records = sum(at_scale(COUNTS, scale).values())
    return Amount(records, round(1.5 * records), 96 * 72)  # two pictures for each pair, and some pairs are used twice


def write(folder: Path, scale: str, seed: int, *, images: bool = True, flaws: bool = True) -> None:
    """Write all four splits, their balanced and unbalanced parts and, with `images`, the pictures and their hashes.

    With `flaws`, one image of test2 is missing, as many official ones are no longer available; a reader reports it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     sorted(path.name for path in (Path(folder) / "data").glob("*.json"))
    ['dev.json', 'test1.json', 'test2.json', 'train.json']
    """
    with drawing() as draw:
        for split, count in at_scale(COUNTS, scale).items():
            records: list[dict[str, Any]] = []
            hashes: dict[str, str] = {}
            for found in draw.map(_write_images, _pictures(folder, split, count, seed, images, records)):
                hashes |= found
            write_json_lines(folder / "data" / f"{split}.json", records)
            if split in ("dev", "test1"):
                for name, kept in _by_balance(records).items():
                    write_json_lines(folder / "data" / name / f"{name}_{split}.json", kept)
            if images and split != "test2":
                write_json(folder / "util" / "hashes" / f"{split}_hashes.json", hashes)
            if images and flaws and split == "test2":
                pairs = Counter(record["identifier"].rsplit("-", 1)[0] for record in records)
                (folder / split / f"{min(pairs, key=lambda pair: pairs[pair])}-img1.png").unlink()


def _pictures(
    folder: Path, split: str, count: int, seed: int, images: bool, records: list[dict[str, Any]]
) -> Iterator[tuple[Path, str, int, list[int], list[Scene]]]:
    """What is to be drawn for each set, whose records are added on the way."""
    for number, claims, scenes in sets(split, count, seed):
        records += [_record(split, number, claim, scenes, seed) for claim in claims]
        if images:
            yield folder, split, number, sorted({claim.pair for claim in claims}), scenes


def sets(split: str, count: int, seed: int) -> Iterator[tuple[int, list[_Claim], list[Scene]]]:
    """Sets with their claims, `count` claims in total; the last set may be cut short."""
    made = 0
    number = 0
    while made < count:
        scenes = _scenes(_FIRST_SET[split] + number, seed)
        claims = _claims(scenes, np.random.default_rng([seed, _FIRST_SET[split] + number, 4]))[: count - made]
        if claims:
            yield number, claims, scenes
        made += len(claims)
        number += 1
        assert number <= count + 100, "the language gives no sentence that is true of one pair and false of another"


def _scenes(number: int, seed: int) -> list[Scene]:
    """Eight scenes with one to three things each, of four nouns that occur in the same place."""
    random = np.random.default_rng([seed, number, 5])
    place = PLACES[int(random.integers(len(PLACES)))]
    here = nouns_in(place)
    pool = [here[int(index)] for index in random.permutation(len(here))[:4]]
    first = _SCENE_NUMBERS + 2 * _PAIRS * number
    return [
        make_scene(seed, first + index, nouns=random.choice(pool, int(random.integers(1, 4))).tolist())
        for index in range(2 * _PAIRS)
    ]


def _claims(scenes: list[Scene], random: np.random.Generator) -> list[_Claim]:
    """Up to two sentences, each with the same number of pairs of which it is true and of which it is false.

    A sentence is generated for a pair and a truth value: many are drawn, and those that occur with both are kept.
    """
    truths: dict[str, dict[int, bool]] = {}
    for pair in range(_PAIRS):
        for truth in (True, False):
            for _ in range(12):
                sentence = two_image_statement(scenes[2 * pair], scenes[2 * pair + 1], random, truth)
                assert truths.setdefault(sentence, {}).setdefault(pair, truth) == truth, sentence
    # Counts coincide more often than other sentences do: a form is chosen first, then one of its sentences.
    forms: dict[str, list[str]] = {}
    for sentence, by_pair in truths.items():
        if len(set(by_pair.values())) == 2:
            forms.setdefault(_form(sentence), []).append(sentence)
    claims: list[_Claim] = []
    for number in range(2):
        names = sorted(name for name in forms if forms[name])
        if not names:
            break
        shares = np.array([_SHARES[name] for name in names])
        found = forms[names[random.choice(len(names), p=shares / shares.sum())]]
        sentence = found.pop(int(random.integers(len(found))))
        true = [pair for pair, truth in truths[sentence].items() if truth]
        false = [pair for pair, truth in truths[sentence].items() if not truth]
        for right, wrong in zip(true[:2], false[:2], strict=False):
            claims += [_Claim(sentence, number, right, True), _Claim(sentence, number, wrong, False)]
    return claims


def _form(sentence: str) -> str:
    """The form of a sentence: "comparison", "count", "same", "fact", or a location."""
    words = sentence.rstrip(".").split()
    if "together" in words:
        return "count"
    if "than" in words:
        return "same" if "color" in words else "comparison"
    if words[0] == "The":
        return "same" if "color" in words else "fact"
    return next(word for word in ("both", "exactly", "only", "in") if word in words)


def _record(split: str, number: int, claim: _Claim, scenes: list[Scene], seed: int) -> dict[str, Any]:
    random = np.random.default_rng([seed, _FIRST_SET[split] + number, claim.pair, claim.number, 6])
    writer, *workers = (str(worker) for worker in random.choice(200, 6, replace=False))
    label = str(claim.truth)
    noun = scenes[0].things[0].noun
    urls = [f"https://pictures.example/{split}/{number}/{2 * claim.pair + side}.jpg" for side in (0, 1)]
    identifier = f"{split}-{number}-{claim.pair}-{claim.number}"
    if split == "train":  # the order of keys differs from the other files, as in the official ones
        return {
            "sentence": claim.sentence,
            "left_url": urls[0],
            "right_url": urls[1],
            "identifier": identifier,
            "label": label,
            "writer": writer,
            "validation": {workers[0]: label},
            "synset": noun,
            "query": f"{noun}s{number % 30}",
            "directory": number % 100,
        }
    judged = dict.fromkeys(workers[1 : 3 + number % 3], label)
    if number % 4 == 0:
        judged[workers[1]] = str(not claim.truth)
    return {
        "validation": {workers[0]: label},
        "sentence": claim.sentence,
        "left_url": urls[0],
        "writer": writer,
        "label": label,
        "right_url": urls[1],
        "synset": noun,
        "query": f"{noun}s{number % 30}",
        "identifier": identifier,
        "extra_validations": judged,
    }


def _by_balance(records: list[dict[str, Any]]) -> Mapping[str, list[dict[str, Any]]]:
    """The records of pairs that were used twice: with both labels, or with one."""
    pairs: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        pairs.setdefault(record["identifier"].rsplit("-", 1)[0], []).append(record)
    twice = [both for both in pairs.values() if len(both) == 2]
    return {
        "balanced": [record for both in twice if both[0]["label"] != both[1]["label"] for record in both],
        "unbalanced": [record for both in twice if both[0]["label"] == both[1]["label"] for record in both],
    }


def _write_images(folder: Path, split: str, number: int, pairs: list[int], scenes: list[Scene]) -> dict[str, str]:
    """Write the pictures of the pairs in use and return their hashes; some are JPEG, though all are named .png."""
    place = folder / "images" / "train" / str(number % 100) if split == "train" else folder / split
    place.mkdir(parents=True, exist_ok=True)
    hashes = {}
    for pair in pairs:
        for side in (0, 1):
            name = f"{split}-{number}-{pair}-img{side}.png"
            picture = render(scenes[2 * pair + side])
            kind = "jpeg" if (number + pair + side) % 9 == 1 else "grey-png" if (3 * number + pair) % 47 == 5 else "png"
            save_image(place / name, picture, kind)
            hashes[name] = _average_hash(picture)
    return hashes


def _average_hash(picture: NDArray[np.uint8]) -> str:
    """64 bits in hexadecimal: which of eight by eight tiles are brighter than their mean."""
    height, width = picture.shape[0] // 8, picture.shape[1] // 8
    tiles = picture[: 8 * height, : 8 * width].reshape(8, height, 8, width, 3).sum(axis=(1, 3, 4), dtype=np.int64)
    return np.packbits(tiles > tiles.mean()).tobytes().hex()
