"""iNaturalist 2019: species with only subtle differences, in a long tail, and categories whose names are hidden.

A genus is a kind of thing, a species its colour, pattern and size. The competition's lists use meaningless names; the
real names are in `categories.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import save_image
from holdfast.world.vocabulary import SIZES, THINGS
from holdfast.world.writers.json_files import list_file, write_json
from holdfast.world.writers.portraits import portrait, some_thing
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Species, genera, images of train in total and the side of a picture. Val has 3 of each species, test 35 (fewer at
# small scales).
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"species": 12, "genera": 4, "train": 160, "test": 2, "side": 48},
    "small": {"species": 60, "genera": 12, "train": 3_000, "test": 5, "side": 64},
    "large": {"species": 300, "genera": 36, "train": 30_000, "test": 10, "side": 96},
    "paper": {"species": 1_010, "genera": 72, "train": 265_213, "test": 35, "side": 256},
}
SUPERCATEGORIES = ("Amphibians", "Birds", "Fungi", "Insects", "Plants", "Reptiles")
_VAL = 3
_LEAST = 5
_Species = tuple[str, str, str, str]
_RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=220, pictures=220, pixels=2016, values=0)
    """
    counts = at_scale(COUNTS, scale)
    pictures = counts["train"] + counts["species"] * (_VAL + counts["test"])
    return Amount(pictures, pictures, counts["side"] ** 2 * 7 // 8)  # cropped to a random height


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `train_val2019`, `test2019`, their three JSON files and `categories.json`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['categories.json', 'test2019', 'test2019.json', 'train2019.json', 'train_val2019', 'val2019.json']
    """
    counts = at_scale(COUNTS, scale)
    species = _species(counts["species"], counts["genera"])
    write_json(folder / "categories.json", [_category(number, sort) for number, sort in enumerate(species)])
    random = np.random.default_rng([seed, 11])
    hidden = [_category(number, (random.bytes(4).hex(),) * 4) for number in range(len(species))]
    train = np.repeat(np.arange(len(species)), long_tail(counts["train"], len(species)))
    labels = {"train": train, "val": np.repeat(np.arange(len(species)), _VAL)}
    labels["test"] = np.repeat(np.arange(len(species)), counts["test"])
    first = 0
    for split, classes in labels.items():
        _write_split(folder, split, random.permutation(classes), first, species, hidden, random, counts["side"])
        first += len(classes)


def long_tail(total: int, classes: int) -> list[int]:
    """The number of images of each class: `total` in all, decreasing from class to class, with a minimum for each.

    >>> long_tail(100, 4)
    [37, 26, 20, 17]
    """
    weights = 1 / (np.arange(classes) + max(2, classes / 12))
    free = total - _LEAST * classes
    counts = np.floor(weights / weights.sum() * free).astype(int)
    counts[: free - int(counts.sum())] += 1
    return [int(count) + _LEAST for count in counts]


def _species(count: int, genera: int) -> list[_Species]:
    """Noun, colour, pattern and size of each species; the species of a genus are adjacent."""
    left = {
        noun: [
            (noun, colour, pattern, size)
            for size in SIZES[::-1]
            for pattern in kind.patterns
            for colour in kind.colours
        ]
        for noun, kind in THINGS.items()
    }
    found: list[_Species] = []
    for genus in range(genera):
        wanted = count // genera + (genus < count % genera)
        # Nouns take turns; one with many looks may serve two genera, which then share no look.
        noun = next(noun for noun in left if len(left[noun]) >= wanted)
        found += left[noun][:wanted]
        left[noun] = left.pop(noun)[wanted:]
    return found


def _category(number: int, sort: _Species) -> dict[str, Any]:
    noun, colour, pattern, size = sort
    ranks = dict.fromkeys(_RANKS, noun.replace(" ", "").capitalize())
    return {"id": number, "name": f"{ranks['genus']} {size} {pattern} {colour}", **ranks}


def _write_split(
    folder: Path,
    split: str,
    labels: np.ndarray,
    first: int,
    species: list[_Species],
    categories: list[dict[str, Any]],
    random: np.random.Generator,
    side: int,
) -> None:
    images = []
    for offset, label in enumerate(labels):
        noun, colour, pattern, size = species[label]
        name = f"{random.bytes(16).hex()}.jpg"
        home = SUPERCATEGORIES[label * len(SUPERCATEGORIES) // len(species)]
        path = f"test2019/{name}" if split == "test" else f"train_val2019/{home}/{label}/{name}"
        picture = portrait(random, some_thing(random, noun, colour=colour, size=size, pattern=pattern), side)
        height = side - int(random.integers(0, side // 4))
        save_image(folder / path, np.ascontiguousarray(picture[:height]))
        images.append({"id": first + offset, "width": side, "height": height, "file_name": path, "license": 1})
        images[-1]["rights_holder"] = f"observer {first + offset}"
    info = {
        "year": 2019,
        "version": "1",
        "description": f"The {split} images of a made world.",
        "contributor": "Holdfast",
    }
    head: dict[str, Any] = {"info": info | {"url": "", "date_created": "2019-03-01"}, "images": images}
    licenses = [{"id": 1, "name": "CC0", "url": "http://creativecommons.org/publicdomain/zero/1.0/"}]
    if split == "test":
        write_json(folder / "test2019.json", head | {"licenses": licenses})
        return
    with list_file(
        folder / f"{split}2019.json", head | {"categories": categories}, "annotations", {"licenses": licenses}
    ) as add:
        for image, label in zip(images, labels, strict=True):
            add({"id": image["id"], "image_id": image["id"], "category_id": int(label)})
