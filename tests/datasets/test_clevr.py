import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.clevr import DATASET

RECORDS = {"train": 2, "val": 1, "test": 1}
PROGRAM = [
    {"inputs": [], "function": "scene", "value_inputs": []},
    {"inputs": [0], "function": "filter_color", "value_inputs": ["red"]},
    {"inputs": [1], "function": "count", "value_inputs": []},
]


def question(number, split, **more):
    return {
        "image_index": 0,
        "split": split,
        "image_filename": f"CLEVR_{split}_000000.png",
        "question_index": number,
        "question": "How many red things are there?",
        "answer": "2",
        "question_family_index": 12,
        "program": PROGRAM,
        **more,
    }


def write(folder, split, *questions):
    root = folder / "CLEVR_v1.0"
    for name in ("questions", f"images/{split}"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "images" / split / f"CLEVR_{split}_000000.png").write_bytes(b"")
    text = json.dumps({"info": {"split": split}, "questions": questions})
    (root / "questions" / f"CLEVR_{split}_questions.json").write_text(text)


def make(folder):
    write(folder, "train", question(0, "train"), question(1, "train", answer="yes"))
    write(folder, "val", question(0, "val"))
    hidden = ("answer", "program", "question_family_index")
    write(folder, "test", {name: value for name, value in question(0, "test").items() if name not in hidden})


def test_questions_come_with_programs(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    first, second = DATASET.examples(tmp_path, "train")
    assert (first.id, first.target, first.text) == ("0", "2", "How many red things are there?")
    assert second.target == "yes"
    assert first.images == (tmp_path / "CLEVR_v1.0/images/train/CLEVR_train_000000.png",)
    assert [node["function"] for node in first.extra["program"]] == ["scene", "filter_color", "count"]
    assert first.extra["program"][1] == {"function": "filter_color", "inputs": (0,), "value_inputs": ("red",)}
    assert first.extra["question_family_index"] == 12


def test_test_has_neither_answer_nor_program(tmp_path):
    make(tmp_path)
    (found,) = DATASET.examples(tmp_path, "test")
    assert found.target is None
    assert found.extra == {"image_index": 0}


def test_what_the_generator_writes_is_read_too(tmp_path):
    program = [{"type": "scene", "inputs": []}, {"type": "exist", "inputs": [0]}]
    write(tmp_path, "val", question(0, "val", answer=True, program=program), question(1, "val", answer=3))
    first, second = DATASET.examples(tmp_path, "val")
    assert (first.target, second.target) == ("yes", "3")
    assert first.extra["program"][-1] == {"function": "exist", "inputs": (0,), "value_inputs": ()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answer": "pink"}, "'pink' is not one of CLEVR's"),
        ({"answer": []}, "not one of CLEVR's"),
        ({"image_filename": "CLEVR_train_000009.png"}, "missing"),
        ({"image_filename": "../val/CLEVR_val_000000.png"}, "missing"),
        ({"program": []}, "empty"),
        ({"program": [PROGRAM[1]]}, "not earlier nodes"),
        ({"program": None}, "'program' is None"),
        ({"question_index": 0}, "occurred before"),
        ({"question": 7}, "'question' is 7"),
    ],
)
def test_a_bad_question_is_told(tmp_path, change, words):
    make(tmp_path)
    write(tmp_path, "train", question(0, "train"), question(1, "train", **change))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train", reading)] == ["0"]
    assert words in reading.problems[0].what


def test_a_file_cut_in_half_is_refused_after_what_was_whole(tmp_path):
    make(tmp_path)
    path = tmp_path / "CLEVR_v1.0" / "questions" / "CLEVR_train_questions.json"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="not valid JSON"):
        list(DATASET.examples(tmp_path, "train"))
