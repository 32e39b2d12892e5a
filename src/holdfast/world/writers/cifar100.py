"""CIFAR-100, the Python version: three pickles as written by Python 2, with byte strings as keys.

Python 3 cannot write such byte strings (it would ask the reader to call a function), so this module writes the few
pickle instructions that are needed. The class names are the official ones. A class is drawn as itself if the synthetic
world has that thing, and otherwise as a thing that stands in for it.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.vocabulary import THINGS
from holdfast.world.writers.portraits import portrait, some_thing
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
# Images of each class.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 8, "test": 2},
    "small": {"train": 50, "test": 10},
    "large": {"train": 500, "test": 100},
    "paper": {"train": 500, "test": 100},
}
COARSE = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
FINE = sorted(name for names in COARSE.values() for name in names.split())
_PEOPLE = {
    "baby": ("small", "plain"),
    "boy": ("small", "striped"),
    "girl": ("small", "spotted"),
    "man": ("large", "plain"),
    "woman": ("large", "spotted"),
}
_SAME = {"cattle": "cow", "telephone": "cell phone", "television": "tv", "pickup_truck": "truck"}
_SAME |= dict.fromkeys(_PEOPLE, "person")
_SAME |= {"house": "building", "rose": "flower", "plain": "grass", "oak_tree": "leaves", "aquarium_fish": "fish"}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=1000, pictures=1000, pixels=1024, values=0)
    """
    pictures = 100 * sum(at_scale(COUNTS, scale).values())
    return Amount(pictures, pictures, 32 * 32)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `cifar-100-python` with `train`, `test`, `meta` and the stray `file.txt~`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "cifar-100-python").iterdir())
    ['file.txt~', 'meta', 'test', 'train']
    """
    root = folder / "cifar-100-python"
    root.mkdir(parents=True, exist_ok=True)
    coarse = {name: number for number, names in enumerate(COARSE.values()) for name in names.split()}
    nouns = drawn()
    for stream, (split, title) in enumerate((("train", "training"), ("test", "testing"))):
        random = np.random.default_rng([seed, 20, stream])
        labels = random.permutation(np.repeat(np.arange(100), at_scale(COUNTS, scale)[split]))
        data = np.empty((len(labels), 3072), dtype=np.uint8)
        for row, label in enumerate(labels):
            size, pattern = _PEOPLE.get(FINE[label], ("", ""))
            thing = some_thing(random, nouns[FINE[label]], size=size, pattern=pattern)
            picture = portrait(random, thing, 32)
            data[row] = picture.transpose(2, 0, 1).reshape(-1)  # all of red, then green, then blue
        seen = np.zeros(100, dtype=int)
        names = []
        for label in labels:
            seen[label] += 1
            names.append(f"{FINE[label]}_s_{seen[label]:06d}.png".encode())
        content = {
            b"filenames": names,
            b"batch_label": f"{title} batch 1 of 1".encode(),
            b"fine_labels": [int(label) for label in labels],
            b"coarse_labels": [coarse[FINE[label]] for label in labels],
            b"data": data,
        }
        (root / split).write_bytes(python2_pickle(content))
    names_of = {b"fine_label_names": FINE, b"coarse_label_names": list(COARSE)}
    meta = {key: [name.encode() for name in names] for key, names in names_of.items()}
    (root / "meta").write_bytes(python2_pickle(meta))
    (root / "file.txt~").write_bytes(b"")


def drawn() -> dict[str, str]:
    """The noun that is drawn for each class: all different, except for people, whose clothes and size differ.

    >>> drawn()["apple"], drawn()["cattle"], len(set(drawn().values()))
    ('apple', 'cow', 96)
    """
    chosen = {name: _SAME.get(name, name) for name in FINE if _SAME.get(name, name) in THINGS}
    left = iter([noun for noun in THINGS if noun not in chosen.values()])
    return {name: chosen.get(name) or next(left) for name in FINE}


def python2_pickle(value: Any) -> bytes:
    """Pickle dictionaries, lists, byte strings, whole numbers and uint8 tables as Python 2 does (protocol 2).

    >>> import pickle
    >>> pickle.loads(python2_pickle({b"labels": [0, 300]}), encoding="bytes")
    {b'labels': [0, 300]}
    """
    return b"\x80\x02" + _opcodes(value) + b"."


def _opcodes(value: Any) -> bytes:
    if isinstance(value, bytes):
        length = len(value)
        return (b"U" + bytes([length]) if length < 256 else b"T" + struct.pack("<i", length)) + value
    if isinstance(value, int):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        return b"M" + struct.pack("<H", value) if 0 <= value < 65_536 else b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(_opcodes(item) for item in value) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_opcodes(key) + _opcodes(item) for key, item in value.items()) + b"u"
    assert isinstance(value, np.ndarray), type(value)
    assert value.dtype == np.uint8, value.dtype
    # numpy's own encoding: an empty array of unsigned bytes, then its shape, type and content.
    empty = b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + b"K\x00\x85" + _opcodes(b"b") + b"\x87R"
    kind = b"cnumpy\ndtype\n" + _opcodes(b"u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + _opcodes(b"|") + b"NNN" + _opcodes(-1) * 2 + b"K\x00tb"
    shape = b"(" + b"".join(_opcodes(int(side)) for side in value.shape) + b"t"
    return empty + b"(K\x01" + shape + kind + b"\x89" + _opcodes(value.tobytes()) + b"tb"
