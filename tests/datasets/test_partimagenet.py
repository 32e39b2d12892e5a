import json

import pytest

from holdfast.datasets.base import Reading
from holdfast.datasets.imagenet import DATASET as IMAGENET
from holdfast.datasets.partimagenet import DATASET

RECORDS = {"train": 2, "val": 1, "test": 1}
NAMES = ["n01440764_10026.JPEG", "n01443537_7.JPEG"]


def content(count=2):
    annotation = {"area": 1750.0, "iscrowd": 0, "image_id": 0, "bbox": [10.0, 10.0, 50.0, 70.0]}
    return {
        "images": [{"file_name": name, "height": 375, "width": 500, "id": n} for n, name in enumerate(NAMES[:count])],
        "annotations": [
            {"segmentation": [[10.0, 10.0, 60.0, 10.0, 60.0, 80.0]], **annotation, "category_id": 9, "id": 0},
            {"segmentation": [[1.0, 1.0, 2.0, 2.0]], **annotation, "category_id": 0, "id": 1},  # two points only
        ],
        "categories": [{"id": 9, "name": "Fish Head", "supercategory": "Fish"}, {"id": 0, "name": "Quadruped Head"}],
    }


def make(folder):
    for split, count in RECORDS.items():
        (folder / f"{split}.json").write_text(json.dumps(content(count)))
        for name in NAMES[:count]:
            path = folder / split / name[:9] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")


def test_the_folder_of_a_picture_is_in_its_name(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    assert not IMAGENET.present(tmp_path)
    first, second = DATASET.examples(tmp_path, "train")
    assert first.images == (tmp_path / "train" / "n01440764" / NAMES[0],)
    assert (first.id, first.target, first.extra["wnid"]) == ("0", (0, 1), "n01440764")
    assert first.extra["labels"] == (9, 0)
    assert first.extra["boxes"][0] == (10, 10, 50, 70)
    assert first.extra["segmentation"][1] == [[1.0, 1.0, 2.0, 2.0]]
    assert second.target == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("n01443537_8.JPEG", "missing"),
        ("fish.JPEG", "not an ImageNet name"),
        ("../n01443537_7.JPEG.txt", "not an ImageNet name"),
    ],
)
def test_a_picture_that_is_not_there_is_told(tmp_path, name, words):
    make(tmp_path)
    value = content()
    value["images"][1]["file_name"] = name
    (tmp_path / "train.json").write_text(json.dumps(value))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train", reading)] == ["0"]
    assert words in reading.problems[0].what
