"""The compositional splits of Nikolaus et al. (2019): which COCO images have which word pairs in their captions.

The lists come with the COCO 2014 captions and pictures to which they refer, so that the folder is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.world.grammar import gerund, plural, third_person
from holdfast.world.language import Caption
from holdfast.world.vocabulary import VERBS
from holdfast.world.writers import coco
from holdfast.world.writers.coco import image_captions, image_ids, write_captions, write_images
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
HELD_OUT: dict[int, tuple[str, ...]] = {
    1: ("black_cat", "big_bird", "red_bus", "small_plane", "eat_man", "lie_woman"),
    2: ("brown_dog", "small_cat", "white_truck", "big_plane", "ride_woman", "fly_bird"),
    3: ("white_horse", "big_cat", "blue_bus", "small_table", "hold_child", "stand_bird"),
    4: ("black_bird", "small_dog", "white_boat", "big_truck", "eat_horse", "stand_child"),
}
"""The pairs that each of the four splits holds out of training."""

# A word and its synonyms. The published lists have odd members, which a reader must accept: buses among the
# planes, a surfboard among the boats, red and yellow in orange, boys among the men and girls among the women.
_SYNONYMS: dict[str, dict[str, tuple[str, ...]]] = {
    "adjectives": {
        "big": ("big", "large", "tall", "huge"),
        "small": ("small", "little", "tiny"),
        "black": ("black",),
        "blue": ("blue",),
        "brown": ("brown",),
        "orange": ("orange", "red", "yellow"),
        "red": ("red",),
        "white": ("white",),
    },
    "nouns": {
        "bird": ("bird",),
        "boat": ("boat", "ship", "surfboard"),
        "bus": ("bus",),
        "cat": ("cat", "kitten", "kitty"),
        "child": ("child", "kid", "boy", "girl"),
        "dog": ("dog", "puppy"),
        "horse": ("horse", "pony"),
        "man": ("man", "guy", "boy"),
        "plane": ("plane", "airplane", "seaplane bus", "minibus", "trolley"),
        "table": ("table", "desk"),
        "truck": ("truck",),
        "woman": ("woman", "lady", "girl"),
    },
    "verbs": {
        "eat": ("eat", "chew"),
        "fly": ("fly",),
        "hold": ("hold", "carry"),
        "lie": ("lie", "rest"),
        "ride": ("ride",),
        "stand": ("stand",),
    },
}
_TEST_2014 = 40_775 / 81_434  # the test set of 2014 is about half of the later one


@dataclass(frozen=True)
class _Pair:
    """A pair with all the forms in which a caption may express it."""

    name: str
    kind: str  # "adjectives" or "verbs"
    words: frozenset[str]
    nouns: frozenset[str]


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=250, pictures=250, pixels=6912, values=0)
    """
    counts = at_scale(coco.COUNTS, scale)
    pictures = counts["train2014"] + counts["val2014"] + round(counts["test2015"] * _TEST_2014)
    return Amount(pictures, pictures, coco.amount(scale).pixels)


def write(folder: Path, scale: str, seed: int, *, images: bool = True) -> None:
    """Write splits, synonyms and occurrences; the captions and, with `images`, the pictures of COCO 2014.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     len(list((Path(folder) / "data" / "dataset_splits").iterdir()))
    6
    """
    numbers = {split: image_ids(split, scale) for split in ("train2014", "val2014")}
    occurrences = _occurrences(numbers, seed)
    data = folder / "data"
    for kind, words in _SYNONYMS.items():
        for word, same in words.items():
            write_json(data / "synonyms" / kind / f"{word}.json", list(same))
    for name, by_image in occurrences.items():
        write_json(data / "occurrences" / f"{name}.json", _occurrence_file(name, by_image))
    _write_early_file(data, occurrences["black_cat"])
    for split, pairs in HELD_OUT.items():
        train, val, test = _divide(numbers, [occurrences[pair] for pair in pairs])
        write_json(data / "dataset_splits" / f"dataset_splits_{split}.json", _split(train, val, test, list(pairs)))
    test2014 = image_ids("test2015", scale)
    test2014 = test2014[: round(len(test2014) * _TEST_2014)]
    _write_other_splits(data / "dataset_splits", numbers, test2014)
    for name, split_numbers in numbers.items():
        write_captions(folder, name, scale, seed)
        if images:
            write_images(folder, name, split_numbers, seed)
    if images:
        write_images(folder, "test2014", test2014, seed)


def _pairs() -> list[_Pair]:
    pairs = []
    for name in (name for names in HELD_OUT.values() for name in names):
        word, noun = name.split("_")
        kind = "verbs" if word in _SYNONYMS["verbs"] else "adjectives"
        words = set(_SYNONYMS[kind][word])
        if kind == "verbs":
            words |= {form for verb in _SYNONYMS[kind][word] for form in (gerund(verb), third_person(verb))}
            words |= set(VERBS[word])
        nouns = {form for same in _SYNONYMS["nouns"][noun] for form in (same, plural(same))}
        pairs.append(_Pair(name, kind, frozenset(words), frozenset(nouns)))
    return pairs


def _occurrences(numbers: Mapping[str, Sequence[int]], seed: int) -> dict[str, dict[str, dict[str, Any]]]:
    """For each pair and each image: the number of captions with the pair, with its first word, and with its noun."""
    pairs = _pairs()
    found: dict[str, dict[str, dict[str, Any]]] = {pair.name: {} for pair in pairs}
    for split, split_numbers in numbers.items():
        for number in split_numbers:
            said = image_captions(number, seed)[:5]
            for pair in pairs:
                together, words, nouns = (sum(column) for column in zip(*(_in(pair, one) for one in said), strict=True))
                if together or words or nouns:
                    found[pair.name][str(number)] = {
                        "pair_occurrences": together,
                        f"{pair.kind[:-1]}_occurrences": words,
                        "noun_occurrences": nouns,
                        "coco_split": split,
                    }
    return found


def _in(pair: _Pair, caption: Caption) -> tuple[bool, bool, bool]:
    """Whether a caption has the pair (adjective in the noun's phrase, or noun as the verb's subject), and each half."""
    tokens = [token.lower() for token in caption.tokens]
    together = noun = False
    for index, phrase in enumerate(caption.phrases):
        if not {tokens[phrase.stop - 1], " ".join(tokens[phrase.stop - 2 : phrase.stop])} & pair.nouns:
            continue
        noun = True
        if pair.kind == "adjectives":
            around = tokens[phrase.start : phrase.stop]
        else:  # words up to the next phrase refer to this one
            following = caption.phrases[index + 1 :]
            around = tokens[phrase.stop : following[0].start if following else len(tokens)]
        together = together or bool(pair.words & set(around))
    return together, bool(pair.words & set(tokens)), noun


def _occurrence_file(name: str, by_image: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    word, noun = name.split("_")
    kind = "verbs" if word in _SYNONYMS["verbs"] else "adjectives"
    return {
        "nouns": list(_SYNONYMS["nouns"][noun]),
        kind: list(_SYNONYMS[kind][word]),
        "adjective_noun_occurrence_data": by_image,  # so named for verbs too
    }


def _write_early_file(data: Path, by_image: Mapping[str, Mapping[str, Any]]) -> None:
    """Write an early file: validation images only, without their split."""
    kept = {
        number: {key: value for key, value in counts.items() if key != "coco_split"}
        for number, counts in by_image.items()
        if counts["coco_split"] == "val2014"
    }
    write_json(data / "occurrences" / "black_cat_val2014.json", _occurrence_file("black_cat", kept))


def _divide(
    numbers: Mapping[str, Sequence[int]], occurrences: Sequence[Mapping[str, Mapping[str, Any]]]
) -> tuple[list[int], list[int], list[int]]:
    """Train without any held-out pair; images of train2014 and val2014 with such a pair go into val and test."""

    def has(number: int) -> bool:
        return any(by.get(str(number), {}).get("pair_occurrences", 0) for by in occurrences)

    train = [number for number in numbers["train2014"] if not has(number)]
    val = [number for number in numbers["train2014"] if has(number)]
    return train, val, [number for number in numbers["val2014"] if has(number)]


def _split(
    train: Sequence[int], val: Sequence[int], test: Sequence[int], pairs: list[str] | None
) -> dict[str, list[str] | None]:
    return {
        "train_images_split": [str(number) for number in train],
        "val_images_split": [str(number) for number in val],
        "test_images_split": [str(number) for number in test],
        "heldout_pairs": pairs,
    }


def _write_other_splits(folder: Path, numbers: Mapping[str, Sequence[int]], test: Sequence[int]) -> None:
    train, val = numbers["train2014"], numbers["val2014"]
    write_json(folder / "dataset_splits_full_data.json", _split(train, val, test, []))
    part = round(len(val) * 5_000 / 40_504)
    write_json(folder / "dataset_splits_karpathy.json", _split(train, val[:part], val[part : 2 * part], None))
