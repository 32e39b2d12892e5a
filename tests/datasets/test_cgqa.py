import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.cgqa import DATASET

RECORDS = {"train": 3, "val": 2, "test": 1, "sys": 2}


def record(name, *things, **more):
    objects = [
        {"imageName": "2416370", "objName": thing, "attributes": ["red"], "boundingBox": [52, 289, 34, 45]}
        for thing in things
    ]
    return {"newImageName": name, "comb": list(things), "objects": objects, "position": [4, 1], **more}


FILES = {
    "continual/train/train.json": [
        record("continual/train/0", "hat", "leaves"),
        record("continual/train/1", "leaves", "hat"),
        record("continual/train/2", "wall", "door"),
    ],
    "continual/val/val.json": [record("continual/val/0", "hat", "leaves"), record("continual/val/1", "door", "wall")],
    "continual/test/test.json": [record("continual/test/9", "hat", "leaves")],
    "fewshot/sys/sys_fewshot.json": [
        record("task/fewshot/sys/0", "shirt", "grass"),
        record("fewshot/sys/1", "grass", "car", "pole"),
    ],
}


def make(folder):
    root = folder / "CGQA" / "GQA_100"
    for name, records in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(records))
        for item in records:
            (root / f"{item['newImageName'].removeprefix('task/')}.jpg").write_bytes(b"")


def test_a_class_is_a_combination_in_any_order(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    # sorted: (door, wall) comes before (hat, leaves)
    assert [(e.id, e.target) for e in found] == [
        ("continual/train/0", 1),
        ("continual/train/1", 1),
        ("continual/train/2", 0),
    ]
    assert found[0].extra["comb"] == ("hat", "leaves")
    assert found[0].extra["objects"][0]["objName"] == "hat"
    assert found[0].images == (tmp_path / "CGQA/GQA_100/continual/train/0.jpg",)
    assert [e.target for e in DATASET.examples(tmp_path, "test")] == [1]


def test_a_few_shot_test_counts_its_own_combinations(tmp_path):
    make(tmp_path)
    found = list(DATASET.examples(tmp_path, "sys"))
    # (car, grass, pole) comes before (grass, shirt); the folder in front of a name is dropped
    assert [(e.id, e.target) for e in found] == [("fewshot/sys/0", 1), ("fewshot/sys/1", 0)]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (record("continual/train/7", "hat", "leaves"), "missing"),
        (record("continual/train/0", "hat", "leaves"), "occurred before"),
        (record("continual/train/2", "hat", "shoe"), "hat, shoe is not one of val.json"),
        (record("continual/train/2", "hat", "leaves", comb="hat"), "'comb' is 'hat'"),
        (record("continual/train/2", "hat", "leaves", comb=[]), "empty"),
        (record("continual/train/2", "hat", "leaves", comb=[["hat"]]), "not a string"),
        ("continual/train/2", "not a JSON object"),
    ],
)
def test_a_bad_record_is_told(tmp_path, bad, words):
    make(tmp_path)
    records = [*FILES["continual/train/train.json"][:2], bad]
    (tmp_path / "CGQA/GQA_100/continual/train/train.json").write_text(json.dumps(records))
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(tmp_path, "train", reading))) == 2
    assert words in reading.problems[0].what


def test_train_needs_the_classes_of_val(tmp_path):
    make(tmp_path)
    (tmp_path / "CGQA/GQA_100/continual/val/val.json").unlink()
    with pytest.raises(DataError, match=r"val.json: no such file"):
        list(DATASET.examples(tmp_path, "train"))
