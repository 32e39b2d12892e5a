"""The layout of the authors' code: one list for train, val and test, and one for each few-shot test."""

import json

import pytest

from holdfast.datasets.base import Reading
from holdfast.datasets.cpin import DATASET

RECORDS = {"train": 2, "val": 2, "test": 1, "noc": 1}
ONE, OTHER = ["Snake Head", "Bird Wing"], ["Car Tier", "Fish Fin", "Bird Foot"]
CONTINUAL = [
    {"newFileName": "continual/train/7.jpg", "label": ONE, "objects": [{}], "position": [1, 4]},
    {"newFileName": "continual/val/1.jpg", "label": ONE},
    {"newFileName": "continual/train/8.jpg", "label": OTHER},
    {"newFileName": "continual/val/2.jpg", "label": OTHER},
    {"newFileName": "continual/test/3.jpg", "label": ONE},
]
NOC = [{"newFileName": "fewshot/noc/119001.jpg", "label": ["Boat Sail", "Bottle Mouth"]}]


def make(folder):
    root = folder / "PIN" / "PIN"
    root.mkdir(parents=True)
    (root / "continual.json").write_text(json.dumps(CONTINUAL))
    (root / "noc_fewshot.json").write_text(json.dumps(NOC))
    for record in CONTINUAL + NOC:
        path = root / record["newFileName"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_the_folder_in_a_name_says_which_split_a_record_is_of(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    train = list(DATASET.examples(tmp_path, "train"))
    assert [(each.id, each.target) for each in train] == [("continual/train/7", 1), ("continual/train/8", 0)]
    assert train[0].images == (tmp_path / "PIN/PIN/continual/train/7.jpg",)
    assert train[0].extra == {"label": ("Bird Wing", "Snake Head"), "objects": [{}], "position": [1, 4]}
    assert [each.target for each in DATASET.examples(tmp_path, "val")] == [1, 0]
    assert [each.id for each in DATASET.examples(tmp_path, "test")] == ["continual/test/3"]
    assert [(each.id, each.target) for each in DATASET.examples(tmp_path, "noc")] == [("fewshot/noc/119001", 0)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"newFileName": "continual/train/77.jpg"}, "missing"),
        ({"newFileName": "continual/train/../../../x.jpg"}, "missing"),
        ({"newFileName": "continual/train/8.jpg"}, "occurred before"),
        ({"newFileName": "7.jpg"}, "missing"),
        ({"newFileName": None}, "newFileName"),
        ({"label": []}, "is empty"),
    ],
)
def test_a_bad_record_is_reported(tmp_path, change, words):
    make(tmp_path)
    records = [CONTINUAL[0] | change, *CONTINUAL[1:]]
    if change.get("newFileName") == "continual/train/8.jpg":
        records = [CONTINUAL[2], records[0], *CONTINUAL[3:]]
    (tmp_path / "PIN/PIN/continual.json").write_text(json.dumps(records))
    reading = Reading(skip=1)
    found = list(DATASET.examples(tmp_path, "train", reading))
    assert len(found) == 1
    (problem,) = reading.problems
    assert words in str(problem)
