import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.gqa import DATASET

RECORDS = {"train": 2, "val": 1, "train_questions": 2, "test_questions": 1}
CHAIR = {
    "name": "chair",
    "x": 220,
    "y": 310,
    "w": 50,
    "h": 80,
    "attributes": ["brown", "wooden"],
    "relations": [{"name": "near", "object": "279472"}],
}
TABLE = {"name": "table", "x": 0, "y": 0, "w": 5, "h": 8, "attributes": [], "relations": []}
GRAPH = {
    "width": 640,
    "height": 480,
    "location": "kitchen",
    "weather": "sunny",
    "objects": {"271881": CHAIR, "279472": TABLE},
}
BARE = {"width": 10, "height": 10, "objects": {}}
QUESTION = {
    "semantic": [{"operation": "select", "dependencies": [], "argument": "table (12)"}],
    "question": "What is on the table?",
    "imageId": "n578564",
    "isBalanced": True,
    "groups": {"global": "thing", "local": "14-table_on,s"},
    "answer": "cup",
    "types": {"detailed": "relS", "semantic": "rel", "structural": "query"},
    "fullAnswer": "The cup is on the table.",
}


def make(folder):
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for name in ("2407890", "1", "n578564"):
        (folder / "images" / f"{name}.jpg").write_bytes(b"")
    files = {
        "train_sceneGraphs.json": {"2407890": GRAPH, "1": BARE},
        "val_sceneGraphs.json": {"1": BARE},
        "train_balanced_questions.json": {"202218649": QUESTION, "7": {**QUESTION, "imageId": "1"}},
        "test_balanced_questions.json": {"8": {"imageId": "1", "question": "Is it?", "isBalanced": True}},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))


def test_a_scene_graph_is_an_image_with_its_objects(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    first, second = DATASET.examples(tmp_path, "train")
    assert (first.id, first.images) == ("2407890", (tmp_path / "images" / "2407890.jpg",))
    assert first.extra["boxes"] == ((220, 310, 50, 80), (0, 0, 5, 8))
    assert first.extra["labels"] == ("chair", "table")
    assert first.extra["objects"]["271881"]["attributes"] == ("brown", "wooden")
    assert first.extra["objects"]["271881"]["relations"] == (("near", "279472"),)
    assert first.extra["weather"] == "sunny"
    assert "location" not in second.extra


def test_relations_may_be_a_dictionary(tmp_path):
    make(tmp_path)
    chair = {**CHAIR, "relations": {"5": {"name": "near", "object": "279472"}}}
    graph = {**GRAPH, "objects": {"271881": chair, "279472": TABLE}}
    (tmp_path / "val_sceneGraphs.json").write_text(json.dumps({"1": graph}))
    (found,) = DATASET.examples(tmp_path, "val")
    assert found.extra["objects"]["271881"]["relations"] == (("near", "279472"),)


def test_questions_have_answers_but_for_test(tmp_path):
    make(tmp_path)
    first, _ = DATASET.examples(tmp_path, "train_questions")
    assert (first.id, first.target, first.text) == ("202218649", "cup", "What is on the table?")
    assert first.images == (tmp_path / "images" / "n578564.jpg",)
    assert first.extra["types"]["structural"] == "query"
    assert [e.target for e in DATASET.examples(tmp_path, "test_questions")] == [None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"w": 0}, "has no size"),
        ({"h": "80"}, "is not a list of 4 numbers"),
        ({"attributes": [1]}, "not a string"),
        ({"relations": [{"name": "near", "object": "1"}]}, "not in the image"),
        ({"name": None}, "'name' is None"),
    ],
)
def test_a_bad_object_is_dropped_and_told_and_its_image_stays(tmp_path, change, words):
    make(tmp_path)
    graph = {**GRAPH, "objects": {"271881": {**CHAIR, **change}, "279472": TABLE}}
    (tmp_path / "val_sceneGraphs.json").write_text(json.dumps({"1": graph}))
    reading = Reading(skip=1)
    (found,) = DATASET.examples(tmp_path, "val", reading)
    assert found.extra["labels"] == ("table",)
    assert words in reading.problems[0].what
    assert reading.problems[0].record == "image 1, object 271881"


def test_a_missing_image_and_a_missing_answer_are_told(tmp_path):
    make(tmp_path)
    (tmp_path / "images" / "n578564.jpg").unlink()
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train_questions", reading)] == ["7"]
    assert reading.problems[0].record == "question 202218649"
    (tmp_path / "train_balanced_questions.json").write_text('{"5": {"imageId": "1", "question": "Is it?"}}')
    with pytest.raises(DataError, match="question 5: it has no 'answer'"):
        list(DATASET.examples(tmp_path, "train_questions"))


def test_a_second_record_of_the_same_id_is_told(tmp_path):
    make(tmp_path)
    (tmp_path / "val_sceneGraphs.json").write_text(f'{{"1": {json.dumps(BARE)}, "1": {json.dumps(GRAPH)}}}')
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(tmp_path, "val", reading))) == 1
    assert reading.problems[0].what == "it occurred before"


@pytest.mark.parametrize("text", ["{}", "[]", "", '{"1": {"width": 10', '{"1": 2} {}'])
def test_a_file_that_is_no_object_of_records_is_refused(tmp_path, text):
    make(tmp_path)
    (tmp_path / "val_sceneGraphs.json").write_text(text)
    with pytest.raises(DataError, match=r"val_sceneGraphs.json"):
        list(DATASET.examples(tmp_path, "val", Reading(skip=9)))
