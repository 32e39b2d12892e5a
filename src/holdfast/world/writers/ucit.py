"""UCIT: six tasks of instructions with pictures, two of them captions, in the layout of its authors' download."""

from __future__ import annotations

from pathlib import Path

from holdfast.world.instructions import counted, described_briefly, lettered, named, question
from holdfast.world.writers.conversations import TaskLayout, amount_of, write_tasks
from holdfast.world.writers.scales import Amount

VERSION = 1
_CAPTIONS = "val_coco_type_3000.json"
TASKS = {
    "ImageNet-R": TaskLayout(named, {"train": "ImageNet-R/train", "test": "ImageNet-R/test"}),
    "ArxivQA": TaskLayout(lettered, dict.fromkeys(("train", "test"), "ArxivQA/images")),
    "VizWiz": TaskLayout(described_briefly, {"train": "VizWiz/train", "test": "VizWiz/val"}, captions=_CAPTIONS),
    "IconQA": TaskLayout(question, dict.fromkeys(("train", "test"), "IconQA/iconqa_data/iconqa")),
    "CLEVR": TaskLayout(counted, {"train": "CLEVR/images/train", "test": "CLEVR/images/test"}),
    "Flickr30k": TaskLayout(
        described_briefly, {"train": "Flickr30k/train", "test": "Flickr30k/val"}, captions=_CAPTIONS
    ),
}
_FIRST = 60_000_000


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny").records
    216
    """
    return amount_of(len(TASKS), len(TASKS), scale)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `instructions/TASK/{train,test_3000}.json`, and the pictures below `datasets`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['datasets', 'instructions']
    """
    names = {"train": "train.json", "test": "test_3000.json"}
    write_tasks(folder / "instructions", folder / "datasets", TASKS, names, scale, seed, _FIRST)
