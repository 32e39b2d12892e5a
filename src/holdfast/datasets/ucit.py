"""UCIT: six tasks of instructions with pictures, in LLaVA's JSON, two of them captions.

`TASK/train*.json` and `TASK/test_3000.json` lie in the folder or in `instructions`; pictures are named from the folder,
or from `datasets` in it. All captions of a test picture are in `val_coco_type_3000.json`, by its record's number.
"""

from __future__ import annotations

from holdfast.datasets.formats.conversations import Suite

VERSION = 1
TASKS = ("ImageNet-R", "ArxivQA", "VizWiz", "IconQA", "CLEVR", "Flickr30k")
"""The tasks, in the order in which the authors learn them."""
CAPTIONS = ("VizWiz", "Flickr30k")
"""The tasks whose answers are captions."""
_TRAIN = ("train.json", "train_4w.json", "train_brief_4w.json")

DATASET = Suite(
    name="ucit",
    tasks={task: {"train": _TRAIN, "test": ("test_3000.json",)} for task in TASKS},
    folders=("instructions",),
    pictures=("datasets",),
    captions=dict.fromkeys(CAPTIONS, "val_coco_type_3000.json"),
    counts={f"{task}_test": 3_000 for task in TASKS} | {f"{task}_train": 40_000 for task in ("ArxivQA", "CLEVR")},
).dataset()
