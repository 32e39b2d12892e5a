import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.coin import DATASET

RECORDS = {"GQA_train": 2, "GQA_test": 2, "ScienceQA_train": 1}


def said(*values):
    return [{"from": ("human", "gpt")[turn % 2], "value": value} for turn, value in enumerate(values)]


TRAIN = [
    {"id": "7", "image": "./GQA/images/7.jpg", "conversations": said("<image>\nWhat color?\nOne word.", "Red")},
    {"id": 9, "image": "GQA/images/9.jpg", "conversations": said("<image>\nHow many?", "2")},
]
TEST = [
    {"question_id": 3, "image": "./GQA/images/7.jpg", "text": "What is it?", "answer": "cat"},
    {"question_id": 4, "image": "./GQA/images/9.jpg", "text": "Where?", "answer": ["here", "there"]},
]


def put(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def make(folder, instructions="Instructions_Original", pictures="cl_dataset"):
    place = folder / instructions
    put(place / "GQA" / "train.json", TRAIN)
    put(place / "GQA" / "test.json", TEST)
    put(place / "ScienceQA" / "train.json", [{"id": "1", "conversations": said("Why?\nA. so\nB. not", "A")}])
    for name in ("7.jpg", "9.jpg"):
        path = folder / pictures / "GQA" / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_each_answer_is_an_example_after_the_turns_before_it(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    longer = {**TRAIN[1], "conversations": said("<image>\nHow many?", "2", "And dogs?", "1")}
    put(tmp_path / "Instructions_Original" / "GQA" / "train.json", [TRAIN[0], longer])
    found = list(DATASET.examples(tmp_path, "GQA_train"))
    assert [(each.id, each.text, each.target) for each in found] == [
        ("GQA_train-1", "What color?\nOne word.", "Red"),
        ("GQA_train-2.1", "How many?", "2"),
        ("GQA_train-2.2", "How many?\n2\nAnd dogs?", "1"),
    ]
    assert found[0].images == (tmp_path / "cl_dataset" / "GQA" / "images" / "7.jpg",)
    assert found[1].extra == {"answers": ("2",), "official_id": "9", "task": "GQA"}


def test_test_records_have_one_answer_or_several_or_a_box(tmp_path):
    make(tmp_path)
    found = list(DATASET.examples(tmp_path, "GQA_test"))
    assert [each.extra["answers"] for each in found] == [("cat",), ("here", "there")]
    box = {**TEST[0], "answer_bbox": [0.1, 0.2, 0.3, 0.4]}
    del box["answer"]
    put(tmp_path / "Instructions_Original" / "Grounding" / "test.json", [box])
    assert [each.target for each in DATASET.examples(tmp_path, "Grounding_test")] == ["[0.1, 0.2, 0.3, 0.4]"]
    put(tmp_path / "Instructions_Original" / "VizWiz" / "val.json", TEST)
    assert len(list(DATASET.examples(tmp_path, "VizWiz_test"))) == 2


@pytest.mark.parametrize(("instructions", "pictures"), [("", "."), ("Instruction_Type1", "")])
def test_other_ways_to_lay_it_out(instructions, pictures, tmp_path):
    make(tmp_path, instructions, pictures)
    assert DATASET.present(tmp_path)
    assert [len(list(DATASET.examples(tmp_path, split))) for split in RECORDS] == list(RECORDS.values())


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"image": "GQA/images/8.jpg"}, "its image GQA/images/8.jpg is missing"),
        ({"image": "../../secret.png"}, r"its image \.\./\.\./secret\.png is missing"),
        ({"image": 7}, "its 'image' is 7, not str"),
        ({"image": None}, "it has no 'image', but its question has <image>"),
        ({"conversations": said("<image>\nWhat?")}, "its conversation has 1 turns"),
        ({"conversations": []}, "its conversation has 0 turns"),
        ({"conversations": said("a", "b")[::-1]}, "its conversation does not alternate between human and gpt"),
        ({"conversations": said("a", " ")}, "its value is empty"),
        ({"conversations": said("a", 3)}, "its 'value' is 3, not str"),
        ({"conversations": "a"}, "its 'conversations' is 'a', not list"),
    ],
)
def test_a_bad_record_is_reported_with_its_number(change, what, tmp_path):
    make(tmp_path)
    put(tmp_path / "Instructions_Original" / "GQA" / "train.json", [TRAIN[0], {**TRAIN[0], **change}, TRAIN[0]])
    with pytest.raises(DataError, match=rf"GQA/train\.json, record 2: {what}"):
        list(DATASET.examples(tmp_path, "GQA_train"))
    assert len(list(DATASET.examples(tmp_path, "GQA_train", Reading(skip=1)))) == 2


@pytest.mark.parametrize("answer", [None, "", [], [""], [3], {"a": 1}])
def test_a_test_record_without_an_answer_is_reported(answer, tmp_path):
    make(tmp_path)
    put(tmp_path / "Instructions_Original" / "GQA" / "test.json", [TEST[0], {**TEST[0], "answer": answer}])
    with pytest.raises(DataError, match=r"record 2: .*answer"):
        list(DATASET.examples(tmp_path, "GQA_test"))
