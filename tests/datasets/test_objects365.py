import json

import numpy as np
import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.objects365 import DATASET

RECORDS = {"train": 2, "val": 1}
IMAGES = [
    {
        "height": 512,
        "id": 420917,
        "license": 5,
        "width": 769,
        "file_name": "images/v1/patch8/objects365_v1_00420917.jpg",
    },
    {"height": 5, "id": 3, "license": 5, "width": 7, "file_name": "images/v2/patch16/objects365_v2_00000003.jpg"},
]
# v1 does not sort its categories, and one name has a trailing blank
CATEGORIES = [{"name": "Cigar/Cigarette ", "id": 3}, {"name": "Person", "id": 1}, {"name": "Lamp", "id": 2}]


def annotation(number, category, image=420917, box=(491.4, 88.2, 35.7, 44.4), **more):
    flags = {"iscrowd": 0, "isfake": 0, "isreflected": 1}
    return {"id": number, **flags, "bbox": list(box), "image_id": image, "category_id": category, **more}


def content(*more):
    annotations = [annotation(51, 3), annotation(52, 1), annotation(53, 3, iscrowd=1), *more]
    return {"images": IMAGES, "annotations": annotations, "categories": CATEGORIES, "licenses": []}


def make(folder):
    (folder / "zhiyuan_objv2_train.json").write_text(json.dumps(content()))
    (folder / "zhiyuan_objv2_val.json").write_text(json.dumps({**content(), "images": IMAGES[:1]}))
    for name in ("train/patch8/objects365_v1_00420917.jpg", "train/patch16/objects365_v2_00000003.jpg"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (folder / "val" / "patch8").mkdir(parents=True)
    (folder / "val" / "patch8" / "objects365_v1_00420917.jpg").write_bytes(b"")


def test_boxes_are_joined_to_pictures_in_their_patches(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    first, second = DATASET.examples(tmp_path, "train")
    assert (first.id, first.target) == ("420917", (0, 2))
    assert first.images == (tmp_path / "train/patch8/objects365_v1_00420917.jpg",)
    assert first.extra["labels"] == (3, 1, 3)
    assert first.extra["boxes"][0] == (491.4, 88.2, 35.7, 44.4)
    assert first.extra["iscrowd"] == (0, 0, 1)
    assert first.extra["isreflected"] == (1, 1, 1)
    assert (second.id, second.target, second.extra["boxes"]) == ("3", (), ())


def test_the_pictures_may_lie_as_listed(tmp_path):
    make(tmp_path)
    listed = tmp_path / IMAGES[0]["file_name"]
    listed.parent.mkdir(parents=True)
    (tmp_path / "val/patch8/objects365_v1_00420917.jpg").rename(listed)
    (found,) = DATASET.examples(tmp_path, "val")
    assert found.images == (listed,)


def test_a_listed_picture_that_is_missing_is_told(tmp_path):
    make(tmp_path)
    (tmp_path / "train/patch16/objects365_v2_00000003.jpg").unlink()
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train", reading)] == ["420917"]
    assert reading.problems[0].record == "image 3"
    assert "--skip-bad 3" in reading.problems[0].remedy
    with pytest.raises(DataError):
        list(DATASET.examples(tmp_path, "train"))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (annotation(9, 1, box=(1, 1, 5)), "not a list of 4 numbers"),
        (annotation(9, 1, box=(1, 1, 5, float("nan"))), "not a list of 4 numbers"),
        (annotation(9, 4), "category 4 is not in the list"),
        (annotation(9, 1, image=8), "image 8 is not in the list"),
        (annotation(9, 1, image=10**30), "far too large"),
        (annotation(9, 1, isfake=1000), "far too large"),
        (7, "not a JSON object"),
    ],
)
def test_a_bad_box_is_dropped_and_told_and_its_image_stays(tmp_path, bad, words):
    make(tmp_path)
    (tmp_path / "zhiyuan_objv2_train.json").write_text(json.dumps(content(bad)))
    reading = Reading(skip=1)
    found = list(DATASET.examples(tmp_path, "train", reading))
    assert [len(e.extra["boxes"]) for e in found] == [3, 0]
    assert words in reading.problems[0].what
    assert reading.problems[0].record == "annotations 4"


def test_a_box_without_size_is_told_and_its_category_stays_in_the_target(tmp_path):
    make(tmp_path)
    (tmp_path / "zhiyuan_objv2_train.json").write_text(json.dumps(content(annotation(9, 2, box=(1, 1, 0, 5)))))
    reading = Reading(skip=1)
    first, _ = DATASET.examples(tmp_path, "train", reading)
    assert (first.target, first.extra["labels"], len(first.extra["boxes"])) == ((0, 1, 2), (3, 1, 3), 3)
    assert str(reading.problems[0]).endswith("annotations 4: its box [1.0, 1.0, 0.0, 5.0] has no size")


def test_annotations_in_any_order_go_to_their_images(tmp_path):
    """Against a join of dictionaries, as one would write it without a thought for memory."""
    random = np.random.default_rng(0)
    ids = random.permutation(1000)[:40].tolist()
    images = [{"id": number, "file_name": f"p/{number}.jpg"} for number in ids]
    numbers = [3, 1, 7, 2]
    annotations = [
        annotation(n, numbers[random.integers(4)], ids[random.integers(40)], random.random(4) + 1, iscrowd=n % 2)
        for n in range(300)
    ]
    arrays = {"annotations": annotations, "categories": [{"id": n, "name": str(n)} for n in numbers], "images": images}
    (tmp_path / "objects365_val.json").write_text(json.dumps(arrays))
    (tmp_path / "p").mkdir()
    for number in ids:
        (tmp_path / "p" / f"{number}.jpg").touch()
    found = list(DATASET.examples(tmp_path, "val"))
    assert [example.id for example in found] == [str(number) for number in ids]
    for example in found:
        mine = [a for a in annotations if str(a["image_id"]) == example.id]
        assert example.extra["boxes"] == tuple(tuple(a["bbox"]) for a in mine)
        assert example.extra["labels"] == tuple(a["category_id"] for a in mine)
        assert example.extra["iscrowd"] == tuple(a["iscrowd"] for a in mine)
        assert example.target == tuple(sorted({sorted(numbers).index(a["category_id"]) for a in mine}))
