import json

import pytest

from holdfast.datasets.base import Reading
from holdfast.datasets.cobj import DATASET

RECORDS = {"train": 2, "val": 2, "test": 1, "noc": 1}
SPLITS = {
    "train": [
        {"imageId": 900316, "label": ["Person", "Glasses"], "imageName": "patch16/objects365_v2_00900316.jpg"},
        {"imageId": "5_1", "label": ["Bench", "Hat", "Person"]},
    ],
    "val": [{"imageId": 1, "label": ["Glasses", "Person"]}, {"image_id": 2, "label": ["Bench", "Hat", "Person"]}],
    "test": [{"imageId": 3, "label": ["Person", "Glasses"]}],
    "noc": [{"imageId": 4, "label": ["Vase", "Cup"]}],
}


def make(folder):
    root = folder / "COBJ" / "annotations"
    for split, records in SPLITS.items():
        continual = split != "noc"
        name = f"O365_continual_{split}_crop.json" if continual else f"O365_{split}_fewshot_crop.json"
        place = root / ("continual" if continual else "fewshot") / split
        place.mkdir(parents=True)
        (root / name).write_text(json.dumps(records))
        for record in records:
            (place / f"{record.get('imageId', record.get('image_id'))}.jpg").write_bytes(b"")


def test_a_class_is_a_combination_of_things(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target) for e in found] == [("900316", 1), ("5_1", 0)]
    assert found[0].images == (tmp_path / "COBJ/annotations/continual/train/900316.jpg",)
    assert found[0].extra["label"] == ("Glasses", "Person")
    assert [e.target for e in DATASET.examples(tmp_path, "val")] == [1, 0]
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "noc")] == [("4", 0)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"imageId": 77}, "missing"),
        ({"imageId": "../../x"}, "missing"),
        ({"imageId": 900316}, "occurred before"),
        ({"imageId": None}, "not an id"),
        ({"label": ["Person"]}, "not one of O365_continual_val_crop.json"),
        ({"label": "Person"}, "'label' is 'Person'"),
    ],
)
def test_a_bad_record_is_told(tmp_path, change, words):
    make(tmp_path)
    records = [SPLITS["train"][0], {**SPLITS["train"][1], **change}]
    (tmp_path / "COBJ/annotations/O365_continual_train_crop.json").write_text(json.dumps(records))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train", reading)] == ["900316"]
    assert words in reading.problems[0].what
