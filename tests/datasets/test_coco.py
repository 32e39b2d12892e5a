import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.coco import ANNOTATIONS, DATASET

CATEGORIES = [
    {"supercategory": "kitchen", "id": 51, "name": "bowl"},
    {"supercategory": "person", "id": 1, "name": "person"},
    {"supercategory": "outdoor", "id": 13, "name": "stop sign"},
]


def image(number: int, name: str) -> dict:
    return {"license": 1, "file_name": name, "height": 480, "width": 640, "id": number}


def thing(number: int, image_id: int, category: int, box: object = None, crowd: int = 0) -> dict:
    segmentation = {"counts": [272, 2], "size": [480, 640]} if crowd else [[10.0, 10.0, 60.0, 10.0, 60.0, 80.0]]
    return {
        "segmentation": segmentation,
        "area": 12.5,
        "iscrowd": crowd,
        "image_id": image_id,
        "bbox": box or [10.0, 10.0, 50.0, 70.0],
        "category_id": category,
        "id": number,
    }


def instances(images: list, things: list, categories: list = CATEGORIES) -> dict:
    return {"info": {}, "licenses": [], "images": images, "annotations": things, "categories": categories}


def captions(images: list, texts: list[tuple[int, int, str]]) -> dict:
    notes = [{"image_id": image_id, "id": number, "caption": text} for number, image_id, text in texts]
    return {"info": {}, "images": images, "licenses": [], "annotations": notes}


def write(folder: Path) -> None:
    for split, names in {"val2017": "{:012d}.jpg", "val2014": "COCO_val2014_{:012d}.jpg"}.items():
        (folder / split).mkdir(parents=True)
        images = [image(number, names.format(number)) for number in (9, 7, 3)]
        for picture in images:
            (folder / split / picture["file_name"]).write_bytes(b"")
        crowd = thing(900000000001, 9, 1, [1, 2, 3, 4], 1)
        things = [thing(1, 9, 51), thing(2, 7, 13), crowd, thing(3, 9, 51, [0, 0, 1, 1])]
        put(folder, f"instances_{split}", instances(images, things))
        texts = [(5, 7, "A sign."), (6, 9, "A cup on a table. \n"), (7, 9, "Bowls"), (8, 3, "Nothing.")]
        put(folder, f"captions_{split}", captions(images, texts))


def put(folder: Path, name: str, content: object) -> None:
    (folder / "annotations").mkdir(exist_ok=True)
    (folder / "annotations" / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "coco")
    return tmp_path / "coco"


@pytest.mark.parametrize("split", ["val2014", "val2017"])
def test_one_example_an_image_in_the_order_of_the_file(folder, split):
    first, second, third = DATASET.examples(folder, split)
    assert (first.id, second.id, third.id) == ("9", "7", "3")
    # The ids 1, 13, 51 have gaps: in order they are 0, 1, 2.
    assert (first.target, second.target, third.target) == ((0, 2), (1,), ())
    assert first.extra["labels"] == ("bowl", "person", "bowl")
    assert first.extra["category_ids"] == (51, 1, 51)
    assert first.extra["boxes"] == ((10.0, 10.0, 50.0, 70.0), (1.0, 2.0, 3.0, 4.0), (0.0, 0.0, 1.0, 1.0))
    assert first.extra["iscrowd"] == (0, 1, 0)
    assert first.extra["captions"] == ("A cup on a table.", "Bowls")
    assert first.extra["caption_ids"] == (6, 7)
    assert (first.extra["width"], first.extra["height"]) == (640, 480)
    assert first.images[0].parent == folder / split


def test_the_images_of_2014_serve_the_annotations_of_2017(folder):
    for path in list((folder / "val2017").iterdir()):
        path.unlink()
    names = [e.images[0].name for e in DATASET.examples(folder, "val2017")]
    assert names == [f"COCO_val2014_{number:012d}.jpg" for number in (9, 7, 3)]


def test_annotations_are_read_without_the_files_of_the_images(folder):
    whole = [replace(example, images=()) for example in DATASET.examples(folder, "val2017")]
    assert list(ANNOTATIONS.examples(folder, "val2017")) == whole
    for split in ("val2014", "val2017"):
        shutil.rmtree(folder / split)
    assert list(ANNOTATIONS.examples(folder, "val2017")) == whole
    with pytest.raises(DataError, match=r"000000000009.jpg is missing: unpack val2017.zip"):
        list(DATASET.examples(folder, "val2017"))


def test_without_captions_or_without_instances(folder):
    (folder / "annotations" / "captions_val2017.json").unlink()
    assert [e.extra["captions"] for e in DATASET.examples(folder, "val2017")] == [(), (), ()]
    (folder / "annotations" / "instances_val2014.json").unlink()
    examples = list(DATASET.examples(folder, "val2014"))
    assert [e.target for e in examples] == [None, None, None]
    assert examples[1].extra["captions"] == ("A sign.",)
    with pytest.raises(DataError, match=r"instances_train2014.json: no such file"):
        list(DATASET.examples(folder, "train2014"))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (thing(4, 7, 1, [5, 5, 9]), "not a list of 4 numbers"),
        (thing(4, 7, 1, [5, 5, 9, float("nan")]), "not a list of 4 numbers"),
        (thing(4, 7, 1, [5, 5, 9, 10**400]), "not a list of 4 numbers"),
        (thing(4, 7, 12), "unknown category 12"),
        (thing(4, 99, 1), "unknown image 99"),
        (thing(4, 7, 1) | {"image_id": "7"}, "not int"),
        (thing(4, 7, 1) | {"bbox": {}}, "not list"),
    ],
)
def test_a_bad_annotation_leaves_the_image(folder, bad, what):
    picture = image(7, "000000000007.jpg")
    put(folder, "instances_val2017", instances([picture], [bad, thing(5, 7, 13)]))
    put(folder, "captions_val2017", captions([picture], []))
    reading = Reading(skip=1)
    (example,) = DATASET.examples(folder, "val2017", reading)
    assert example.target == (1,)
    assert reading.problems[0].record == "annotation 4"
    assert what in reading.problems[0].what


@pytest.mark.parametrize("box", [[5, 5, 0, 9], [5, 5, 9, 0], [5, 5, -1, 9]])
def test_a_box_without_size_is_told_and_its_category_stays_in_the_target(folder, box):
    put(folder, "instances_val2017", instances([image(7, "000000000007.jpg")], [thing(4, 7, 1, box), thing(5, 7, 13)]))
    (folder / "annotations" / "captions_val2017.json").unlink()
    reading = Reading(skip=1)
    (example,) = DATASET.examples(folder, "val2017", reading)
    assert example.target == (0, 1)
    assert example.extra["labels"] == ("stop sign",)
    assert len(example.extra["boxes"]) == 1
    assert [(problem.record, problem.what) for problem in reading.problems] == [
        ("annotation 4", f"its box {[float(side) for side in box]} has no size")
    ]
    with pytest.raises(DataError, match="has no size"):
        list(DATASET.examples(folder, "val2017"))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (image(9, "000000000099.jpg") | {"id": 99}, "000000000099.jpg is missing"),
        (image(7, "x.jpg"), "occurred before"),
        (image(9, "../x.jpg"), "not a plain name"),
        ({"id": 9}, "no 'width'"),
        (9, "not a JSON object"),
    ],
)
def test_a_bad_image_is_reported_once_for_all_that_belongs_to_it(folder, bad, what):
    good = image(7, "000000000007.jpg")
    put(folder, "instances_val2017", instances([good, bad], [thing(5, 7, 13)]))
    put(folder, "captions_val2017", captions([good], [(1, 7, "One.")]))
    reading = Reading(skip=1)
    (example,) = DATASET.examples(folder, "val2017", reading)
    assert example.id == "7"
    assert what in reading.problems[0].what


def test_captions_of_nothing_are_reported(folder):
    picture = image(7, "000000000007.jpg")
    put(folder, "instances_val2017", instances([picture], []))
    put(folder, "captions_val2017", captions([picture, image(8, "8.jpg")], [(1, 8, "x"), (2, 6, "y"), (3, 7, " ")]))
    reading = Reading(skip=9)
    assert [e.id for e in DATASET.examples(folder, "val2017", reading)] == ["7"]
    assert [p.record for p in reading.problems] == ["annotation 3", "image 8", "annotation 2"]


def test_presence(folder):
    assert DATASET.present(folder)
    assert DATASET.present(folder / "annotations")
    assert not DATASET.present(folder / "val2017")
