"""SNLI-VE: a picture of Flickr30k and a hypothesis that it entails, contradicts or leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.language import hypothesis
from holdfast.world.writers import flickr30k_entities
from holdfast.world.writers.flickr30k_entities import flickr_scene, image_id, image_numbers, sentences, write_images
from holdfast.world.writers.json_files import write_json_lines
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
LABELS = ("entailment", "neutral", "contradiction")
COUNTS: dict[str, dict[str, tuple[int, int, int]]] = {
    "tiny": {"train": (180, 180, 180), "dev": (60, 60, 60), "test": (60, 60, 60)},
    "small": {"train": (4_000, 4_000, 4_000), "dev": (600, 600, 600), "test": (600, 600, 600)},
    "large": {"train": (50_000, 50_000, 50_000), "dev": (3_000, 3_000, 3_000), "test": (3_000, 3_000, 3_000)},
    "paper": {"train": (176_932, 176_045, 176_550), "dev": (5_959, 5_960, 5_939), "test": (5_973, 5_964, 5_964)},
}
"""How many rows of each split have each of the LABELS."""

_SPELLINGS = {20: "Flikr30kID", 40: "Flickr30kID"}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=901, pictures=130, pixels=6912, values=0)
    """
    records = sum(map(sum, at_scale(COUNTS, scale).values())) + 1  # including the row that has no majority
    return Amount(records, flickr30k_entities.amount(scale).pictures, flickr30k_entities.amount(scale).pixels)


def write(folder: Path, scale: str, seed: int, *, images: bool = True) -> None:
    """Write the three splits, the two lists of images and, with `images`, the pictures.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     sorted(path.name for path in Path(folder).glob("*.jsonl"))
    ['snli_ve_dev.jsonl', 'snli_ve_test.jsonl', 'snli_ve_train.jsonl']
    """
    counts = at_scale(COUNTS, scale)
    train, dev, test = _images(scale)
    for number, (split, numbers) in enumerate((("train", train), ("dev", dev), ("test", test))):
        labels = np.repeat(np.arange(3), counts[split])
        np.random.default_rng([seed, number, 3]).shuffle(labels)
        write_json_lines(folder / f"snli_ve_{split}.jsonl", _rows(split, numbers, labels.tolist(), seed))
    for name, numbers in (("train_val", train + dev), ("test", test)):
        text = "\n".join(image_id(number) for number in numbers)  # no newline at the end, as in the official lists
        (folder / f"flickr30k_{name}.lst").write_bytes(text.encode())
    if images:
        write_images(folder / "flickr30k_images", train + dev + test, seed)


def _images(scale: str) -> tuple[list[int], list[int], list[int]]:
    """The images of train, dev and test: the test set of Entities, but a dev set that only overlaps its val."""
    train, val, test = (image_numbers(split, scale) for split in ("train", "val", "test"))
    shared = max(1, 30 * len(val) // 1_000)
    own = len(val) - shared
    return val[shared:] + train[:-own], train[-own:] + val[:shared], test


def _rows(split: str, numbers: list[int], labels: list[int], seed: int) -> Iterator[dict[str, Any]]:
    each, left_over = divmod(len(labels), len(numbers))
    row = 0
    for index, number in enumerate(numbers):
        scene = flickr_scene(number, seed)
        random = np.random.default_rng([seed, scene.number, 15])
        premises = [" ".join(sentence.tokens) for sentence in sentences(number, seed)]
        for place in range(each + (index < left_over)):
            label = LABELS[labels[row]]
            text = hypothesis(scene, random, label)
            yield _row(number, place, premises[place % 5], text, label, _judgements(split, label, random), row)
            if split == "train" and row == 30:  # no majority among the annotators: raw SNLI has such rows
                judged = ["neutral", "entailment", "neutral", "entailment", "contradiction"]
                yield _row(number, place + 500, premises[place % 5], text, "-", judged, row)
            row += 1


def _judgements(split: str, label: str, random: np.random.Generator) -> list[str]:
    """One judgement in training; five elsewhere, at least three of them for the label."""
    if split == "train":
        return [label]
    others = [LABELS[int(number)] for number in random.integers(0, 3, size=2)]
    return [label, label, others[0], label, others[1]]


def _row(number: int, place: int, premise: str, text: str, label: str, judged: list[str], row: int) -> dict[str, Any]:
    caption_id = f"{image_id(number)}.jpg#{place % 5}"
    letter = (label if label != "-" else judged[0])[0]
    return {
        _SPELLINGS.get(row % 60, "Flickr30K_ID"): image_id(number),
        "annotator_labels": judged,
        "captionID": caption_id,
        "gold_label": label,
        "pairID": f"{caption_id}r{place // 5 + 1}{letter}",
        "sentence1": premise,
        "sentence1_binary_parse": _binary_parse(premise.split()),
        "sentence1_parse": _parse(premise.split()),
        "sentence2": text,
        "sentence2_binary_parse": _binary_parse(_tokens(text)),
        "sentence2_parse": _parse(_tokens(text)),
    }


def _tokens(text: str) -> list[str]:
    return (f"{text[:-1]} ." if text.endswith(".") else text).split()


def _binary_parse(tokens: list[str]) -> str:
    """A right-branching parse in the official format, made without a parser."""
    if len(tokens) < 2:
        return " ".join(tokens)
    return "".join(f"( {token} " for token in tokens[:-1]) + tokens[-1] + " )" * (len(tokens) - 1)


def _parse(tokens: list[str]) -> str:
    return "(ROOT (S " + " ".join(f"(X {token})" for token in tokens) + "))"
