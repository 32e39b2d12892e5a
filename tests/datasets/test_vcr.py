import json
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.vcr import DATASET

STEM = "lsmdc_3015_X/3015_X_00.00.01.000-00.00.02.000@0"


def record(number: int, split: str = "train", **more: object) -> dict:
    found = {
        "movie": "3015_X",
        "objects": ["person", "person", "cup"],
        "img_fn": f"{STEM}.jpg",
        "metadata_fn": f"{STEM}.json",
        "question": ["How", "does", [1], "feel", "?"],
        "answer_choices": [["Happy", "."], [[1], "is", "tired", "."], [[0, 1], "are", "angry", "."], ["Cold", "."]],
        "answer_label": 1,
        "rationale_choices": [["a"], [[2], "is", "empty"], ["c"], ["d"]],
        "rationale_label": 3,
        "img_id": f"{split}-0",
        "annot_id": f"{split}-{number}",
    }
    return found | more


def crowd(count: int) -> dict:
    boxes = [[float(n), 0.0, n + 10.0, 9.0, 0.5] for n in range(count)]
    return {"boxes": boxes, "segms": [[]] * count, "names": ["person"] * count, "width": 1280, "height": 720}


def write(folder: Path) -> None:
    images = folder / "vcr1images"
    (images / "lsmdc_3015_X").mkdir(parents=True)
    (images / "movieclips_Y").mkdir()
    (images / f"{STEM}.jpg").write_bytes(b"")
    boxes = [[12.5, 8.0, 210.2, 300.9, 0.99], [220, 40, 330, 310, 0.97], [5.0, 5.0, 40.0, 40.0, 0.71]]
    meta = {"boxes": boxes, "segms": [[[[13.0, 9.0]]], [[[2.0, 4.0]]], []], "names": [], "width": 1280, "height": 720}
    (images / f"{STEM}.json").write_text(json.dumps(meta))
    (images / "movieclips_Y" / "AbC12@44.jpg").write_bytes(b"")
    (images / "movieclips_Y" / "AbC12@44.json").write_text(json.dumps(crowd(60)))
    place = {"img_fn": "movieclips_Y/AbC12@44.jpg", "metadata_fn": "movieclips_Y/AbC12@44.json"}
    put(folder / "train.jsonl", [record(0), record(1, objects=["person"] * 60, question=["Who", [55, 3]], **place)])
    unlabelled = record(0, "test")
    del unlabelled["answer_label"], unlabelled["rationale_label"]
    put(folder / "test.jsonl", [unlabelled])


def put(path: Path, records: list) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def test_tags_are_read_as_names_and_kept_as_indices(folder):
    example = next(DATASET.examples(folder, "train"))
    assert example.id == "train-0"
    assert example.text == "How does [person2] feel ?"
    assert example.choices == ("Happy .", "[person2] is tired .", "[person1] and [person2] are angry .", "Cold .")
    assert example.target == 1
    assert example.extra["question"] == ("How", "does", (1,), "feel", "?")
    assert example.extra["answer_choices"][2] == ((0, 1), "are", "angry", ".")
    assert example.images == (folder / "vcr1images" / f"{STEM}.jpg",)


def test_the_second_task_is_there_too(folder):
    extra = next(DATASET.examples(folder, "train")).extra
    assert extra["rationales"] == ("a", "[cup3] is empty", "c", "d")
    assert extra["rationale_choices"][1] == ((2,), "is", "empty")
    assert extra["rationale_label"] == 3
    assert extra["objects"] == ("person", "person", "cup")
    assert extra["boxes"][1] == (220.0, 40.0, 330.0, 310.0, 0.97)
    assert (extra["width"], extra["height"]) == (1280, 720)
    assert extra["metadata_fn"] == folder / "vcr1images" / f"{STEM}.json"


def test_more_than_fifty_objects(folder):
    example = list(DATASET.examples(folder, "train"))[1]
    assert example.text == "Who [person56] and [person4]"
    assert len(example.extra["boxes"]) == 60


def test_the_test_split_has_no_labels(folder):
    (example,) = DATASET.examples(folder, "test")
    assert example.target is None
    assert example.extra["rationale_label"] is None


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (record(7, question=["How", [3]]), "tag [3] is not among its 3 objects"),
        (record(7, question=["How", [-1]]), "tag [-1]"),
        (record(7, question=["How", []]), "neither a word nor a tag"),
        (record(7, question=[]), "empty"),
        (record(7, answer_choices=[["a"]] * 3), "3 answer_choices, not 4"),
        (record(7, answer_label=4), "answer_label 4"),
        (record(7, rationale_label="1"), "not int"),
        (record(7, rationale_choices=None), "not list"),
        (record(7, objects=["person", "person"]), "tag [2] is not among its 2"),
        (record(7, objects=["person"] * 4), "4 objects, but"),
        (record(7, img_fn="lsmdc_3015_X/other.jpg"), "other.jpg' is missing"),
        (record(7, img_fn="../../etc/passwd"), "is missing"),
        (record(7, metadata_fn="lsmdc_3015_X"), "is missing"),
    ],
)
def test_bad_records(folder, bad, what):
    put(folder / "train.jsonl", [bad, record(8)])
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "train", reading)] == ["train-8"]
    assert reading.problems[0].record == "train-7"
    assert what in reading.problems[0].what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"boxes": [[1, 1, 1, 5, 0.9], [0, 0, 2, 2, 1], [0, 0, 2, 2, 1]], "width": 9, "height": 9}', "has no size"),
        ('{"boxes": [[1, 1, 2, 5]], "width": 9, "height": 9}', "not a list of 5 numbers"),
        ('{"boxes": [[1, 1, NaN, 5, 1]], "width": 9, "height": 9}', "not a list of 5 numbers"),
        ('{"boxes": [], "width": 0, "height": 9}', "size 0 x 9"),
        ("[]", "not a JSON object"),
        ('{"boxes"', "not valid JSON"),
    ],
)
def test_bad_metadata_takes_the_questions_about_that_image_alone(folder, text, what):
    path = folder / "vcr1images" / f"{STEM}.json"
    path.write_text(text)
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "train", reading)] == ["train-1"]
    assert reading.problems[0].record == "train-0"
    assert reading.problems[0].file == str(path)
    assert what in reading.problems[0].what


def test_presence_looks_into_a_common_file_name(folder, tmp_path):
    assert DATASET.present(folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.jsonl").write_text('{"goal": "x", "sol1": "y"}\n')
    assert not DATASET.present(other)
    put(other / "val.jsonl", [record(0)])
    assert DATASET.present(other)
    with pytest.raises(DataError, match="no such file"):
        list(DATASET.examples(other, "test"))
