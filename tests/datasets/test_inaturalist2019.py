import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.inaturalist2019 import DATASET

RECORDS = {"train": 3, "val": 1, "test": 1}
PICTURES = {17: "train_val2019/Plants/1/0a.jpg", 4: "train_val2019/Birds/0/0b.jpg", 9: "train_val2019/Plants/1/0c.jpg"}


def content():
    return {
        "info": {"year": 2019},
        "images": [{"id": n, "width": 8, "height": 6, "file_name": name} for n, name in PICTURES.items()],
        "categories": [{"id": 1, "name": "f00d"}, {"id": 0, "name": "beef"}],
        # not in the order of the images: only the id joins them
        "annotations": [{"id": n, "image_id": n, "category_id": c} for n, c in ((9, 1), (4, 0), (17, 1))],
        "licenses": [],
    }


def write(folder, split, value):
    (folder / f"{split}2019.json").write_text(json.dumps(value))
    for image in value["images"]:
        path = folder / image["file_name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def make(folder):
    write(folder, "train", content())
    val = content()
    write(folder, "val", {**val, "images": val["images"][:1], "annotations": val["annotations"][2:]})
    write(folder, "test", {"info": {}, "images": [{"id": 5, "file_name": "test2019/ff.jpg"}], "licenses": []})
    (folder / "categories.json").write_text(json.dumps([{"id": 1, "name": "Rosa canina"}]))


def test_annotations_are_joined_by_image_id(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target, e.extra["name"]) for e in found] == [
        ("17", 1, "Rosa canina"),
        ("4", 0, "beef"),
        ("9", 1, "Rosa canina"),
    ]
    assert found[0].images == (tmp_path / PICTURES[17],)
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "test")] == [("5", None)]


@pytest.mark.parametrize(
    ("array", "number", "change", "words"),
    [
        ("annotations", 0, {"category_id": 7}, "category 7 is not in the list"),
        ("annotations", 0, {"image_id": 99}, "image 99 is not in the list"),
        ("annotations", 0, {"image_id": 4}, "annotated before"),
        ("images", 2, {"file_name": "train_val2019/Plants/1/no.jpg"}, "missing"),
        ("images", 2, {"file_name": "../outside.jpg"}, "missing"),
        ("images", 2, {"id": "nine"}, "its 'id' is 'nine'"),
    ],
)
def test_a_bad_record_is_told_and_the_others_are_read(tmp_path, array, number, change, words):
    make(tmp_path)
    (tmp_path.parent / "outside.jpg").write_bytes(b"")
    value = content()
    value[array][number].update(change)
    (tmp_path / "train2019.json").write_text(json.dumps(value))
    reading = Reading(skip=9)
    assert {"17", "4"} >= {e.id for e in DATASET.examples(tmp_path, "train", reading)} >= {"17"}
    assert any(words in problem.what for problem in reading.problems)


def test_a_file_cut_in_half_is_refused(tmp_path):
    make(tmp_path)
    path = tmp_path / "train2019.json"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="not valid JSON"):
        list(DATASET.examples(tmp_path, "train"))
