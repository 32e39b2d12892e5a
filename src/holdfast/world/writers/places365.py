"""Places365-Standard: pictures of places, labelled by lists.

In the synthetic version, a category is a place with a thing that belongs to it. Kept from the original: paths of train
start with a slash and a letter, some categories have a second level, the list of categories has no final newline, some
pictures are greyscale, and joining the levels with `_` instead of `-` would change the order.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.scene import make_scene
from holdfast.world.vocabulary import PLACES, THINGS
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Categories; images of train in total, of a category in val and test; side of the squashed pictures.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"classes": 12, "train": 170, "val": 5, "test": 3, "side": 64},
    "small": {"classes": 60, "train": 3_000, "val": 10, "test": 5, "side": 96},
    "large": {"classes": 200, "train": 30_000, "val": 20, "test": 10, "side": 128},
    "paper": {"classes": 365, "train": 1_803_460, "val": 100, "test": 900, "side": 256},
}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=266, pictures=266, pixels=4096, values=0)
    """
    counts = at_scale(COUNTS, scale)
    pictures = counts["train"] + counts["classes"] * (counts["val"] + counts["test"])
    return Amount(pictures, pictures, counts["side"] ** 2)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the four lists, and `data_256`, `val_256` and `test_256`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "data_256").iterdir())
    ['b', 'f', 'k', 'o', 'r', 's']
    """
    counts = at_scale(COUNTS, scale)
    names = categories(counts["classes"])
    folder.mkdir(parents=True, exist_ok=True)
    rows = "\n".join(f"{name} {index}" for index, name in enumerate(names))
    (folder / "categories_places365.txt").write_bytes(rows.encode())
    with drawing() as draw:
        train = ""
        for label, name in enumerate(names):
            count = counts["train"] // len(names) + (label < counts["train"] % len(names))
            for number in range(1, count + 1):
                file = f"{name}/{number:08d}.jpg"
                train += f"{file} {label}\n"
                draw(
                    _save, folder / "data_256" / file.removeprefix("/"), name, seed, (0, label, number), counts["side"]
                )
        (folder / "places365_train_standard.txt").write_bytes(train.encode())
        for stream, split in enumerate(("val", "test"), 1):
            random = np.random.default_rng([seed, 12, stream])
            lines = ""
            for number, label in enumerate(random.permutation(np.arange(len(names) * counts[split]) % len(names)), 1):
                file = f"Places365_{split}_{number:08d}.jpg"
                lines += f"{file} {label}\n" if split == "val" else f"{file}\n"
                draw(
                    _save,
                    folder / f"{split}_256" / file,
                    names[label],
                    seed,
                    (stream, int(label), number),
                    counts["side"],
                )
            (folder / f"places365_{split}.txt").write_bytes(lines.encode())


def categories(count: int) -> list[str]:
    """The paths of categories in the official order; some of a place's categories are nested below it.

    >>> categories(12)[2:5]
    ['/f/field/person', '/f/field_bicycle', '/f/forest_person']
    """
    # The nouns that belong to a place first, then any others.
    turns = {place: sorted(THINGS, key=lambda noun: place not in THINGS[noun].places) for place in PLACES}
    names: list[str] = []
    turn = 0
    while len(names) < count:
        for place in PLACES:
            if len(names) < count:
                # A nested name that comes after a flat one of its place reveals which sign joined the levels.
                level = "/" if (turn + PLACES.index(place)) % 5 == 0 else "_"
                names.append(f"/{place[0]}/{place}{level}{turns[place][turn].replace(' ', '-')}")
        turn += 1
    return sorted(names)


def _save(path: Path, name: str, seed: int, key: tuple[int, int, int], side: int) -> None:
    """Write a picture of the place with one to three of the category's thing."""
    place, _, noun = name[3:].replace("/", "_").partition("_")
    random = np.random.default_rng([seed, 12, *key])
    number = int(random.integers(1 << 40))
    scene = make_scene(seed, number, nouns=[noun.replace("-", " ")] * int(random.integers(1, 4)))
    kind = "grey-jpeg" if random.random() < 0.03 else "jpeg"
    save_scene(path, replace(scene, place=place), (side, side), kind)
