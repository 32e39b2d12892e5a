"""CoIN: eight tasks of instructions with pictures, in LLaVA's JSON.

`TASK/{train,test}.json` lie in the folder, or in one of its folders `Instruction_Type1` or `Instructions_Original`;
pictures are named from the folder, or from `cl_dataset` in it. VizWiz, VQAv2 and TextVQA are tested on `val.json`.
"""

from __future__ import annotations

from holdfast.datasets.formats.conversations import Suite

VERSION = 1
TASKS = ("ScienceQA", "TextVQA", "ImageNet", "GQA", "VizWiz", "Grounding", "VQAv2", "OCRVQA")
"""The tasks, in the order in which the authors learn them."""

DATASET = Suite(
    name="coin",
    tasks={task: {"train": ["train.json"], "test": ["test.json", "val.json"]} for task in TASKS},
    folders=("Instructions_Original", "Instruction_Original", "Instruction_Type1", "Instruction_Type2"),
    pictures=("cl_dataset",),
    captions={},
    counts={},
).dataset()
