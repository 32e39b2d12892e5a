"""CoIN: eight tasks of instructions with pictures in the layout of its authors' download.

Questions of ScienceQA have no picture here; of the original's, some have one.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.world.instructions import counted, lettered, located, named, question, without_picture
from holdfast.world.writers.conversations import TaskLayout, amount_of, write_tasks
from holdfast.world.writers.scales import Amount

VERSION = 1
TASKS = {
    "ScienceQA": TaskLayout(without_picture, dict.fromkeys(("train", "test"), "ScienceQA/images")),
    "TextVQA": TaskLayout(question, {"train": "TextVQA/train_images", "test": "TextVQA/test_images"}),
    "ImageNet": TaskLayout(named, {"train": "ImageNet_withlabel/train", "test": "ImageNet_withlabel/val"}),
    "GQA": TaskLayout(lettered, dict.fromkeys(("train", "test"), "GQA/images")),
    "VizWiz": TaskLayout(question, {"train": "VizWiz/train", "test": "VizWiz/val"}),
    "Grounding": TaskLayout(located, dict.fromkeys(("train", "test"), "COCO2014/train2014"), "answer_bbox"),
    "VQAv2": TaskLayout(question, {"train": "COCO2014/train2014", "test": "COCO2014/val2014"}),
    "OCRVQA": TaskLayout(counted, dict.fromkeys(("train", "test"), "OCR-VQA/images")),
}
_FIRST = 50_000_000


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny").records
    288
    """
    return amount_of(len(TASKS), len(TASKS) - 1, scale)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `Instructions_Original/TASK/{train,test}.json`, and the pictures below `cl_dataset`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['Instructions_Original', 'cl_dataset']
    """
    names = {"train": "train.json", "test": "test.json"}
    write_tasks(folder / "Instructions_Original", folder / "cl_dataset", TASKS, names, scale, seed, _FIRST)
