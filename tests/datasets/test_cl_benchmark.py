import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.check import check
from holdfast.datasets.cl_benchmark import DATASET

RECORDS = {"agnews_train": 3, "agnews_dev": 1, "agnews_test": 1, "COPA_train": 1}
LABELS = ["World", "Sports"]
TRAIN = [
    {"label": "World", "sentence": "Title: Talks\nText: They met.\n"},
    {"sentence": "Title: Cup\nText: They won.\n", "label": "Sports"},
    {"label": "Sports", "sentence": "Title: Race\nText: She ran.\n"},
]
TEST = [{"label": "World", "sentence": "Text: A vote.\n"}]
ASKED = {"TC": [{"instruction_type": "zero-shot", "instruction": "What is it about?\n"}]}


def put(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def make(folder, root="CL_Benchmark", config="configs"):
    place = folder / root / "TC" / "agnews"
    for name, value in {"train": TRAIN, "dev": TEST, "test": TEST, "labels": LABELS}.items():
        put(place / f"{name}.json", value)
    put(folder / root / "COPA" / "COPA" / "train.json", [{"label": "B", "sentence": "Which?\nA: this\nB: that"}])
    put(folder / root / "COPA" / "COPA" / "labels.json", ["A", "B"])
    put(folder / config / "instruction_config.json", ASKED)


def test_sentences_come_with_their_labels_and_the_question_of_their_kind(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "agnews_train"))
    assert [(each.id, each.target) for each in found] == [
        ("agnews_train-0", "World"),
        ("agnews_train-1", "Sports"),
        ("agnews_train-2", "Sports"),
    ]
    assert found[0].text == TRAIN[0]["sentence"]
    assert found[0].choices == ("World", "Sports")
    assert found[0].extra == {"task": "agnews", "kind": "TC", "instruction": "What is it about?\n"}
    assert next(DATASET.examples(tmp_path, "COPA_train")).extra["instruction"] == ""


def test_the_folder_itself_may_be_named_and_the_questions_may_be_missing(tmp_path):
    make(tmp_path)
    inner = tmp_path / "CL_Benchmark"
    assert DATASET.holds(inner)
    assert next(DATASET.examples(inner, "agnews_train")).extra["instruction"] == "What is it about?\n"
    (tmp_path / "configs" / "instruction_config.json").unlink()
    assert next(DATASET.examples(tmp_path, "agnews_train")).extra["instruction"] == ""
    found = {each.split: each for each in check(tmp_path, {"cl_benchmark": DATASET})}
    assert found["agnews_train"].lacks == ("configs/instruction_config.json",)
    assert found["agnews_train"].verdict == "part"
    assert found["yelp_train"].verdict == "absent"


def test_a_sentence_without_agreement_is_set_aside(tmp_path):
    make(tmp_path)
    put(tmp_path / "CL_Benchmark" / "TC" / "agnews" / "test.json", [*TEST, {"label": "-", "sentence": "Text: Hm."}])
    reading = Reading()
    assert len(list(DATASET.examples(tmp_path, "agnews_test", reading))) == 1
    assert dict(reading.aside) == {"annotators did not agree": 1}


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"label": "Weather", "sentence": "a"}, "its label is 'Weather', not one of World, Sports"),
        ({"label": "World"}, "it has no 'sentence'"),
        ({"label": "World", "sentence": " "}, "its sentence is empty"),
        ({"label": 3, "sentence": "a"}, "its 'label' is 3, not str"),
        ("World", "is not a JSON object"),
    ],
)
def test_a_bad_record_is_reported_with_its_number(record, what, tmp_path):
    make(tmp_path)
    put(tmp_path / "CL_Benchmark" / "TC" / "agnews" / "train.json", [TRAIN[0], record, TRAIN[1]])
    with pytest.raises(DataError, match=rf"agnews/train\.json, record 2: .*{what}"):
        list(DATASET.examples(tmp_path, "agnews_train"))
    assert len(list(DATASET.examples(tmp_path, "agnews_train", Reading(skip=1)))) == 2


@pytest.mark.parametrize("labels", [{"World": 0}, [], ["World", "World"], ["World", 3], "World"])
def test_bad_labels_are_an_error_of_their_file(labels, tmp_path):
    make(tmp_path)
    put(tmp_path / "CL_Benchmark" / "TC" / "agnews" / "labels.json", labels)
    with pytest.raises(DataError, match=r"labels\.json"):
        list(DATASET.examples(tmp_path, "agnews_train"))


@pytest.mark.parametrize("config", [[], {"TC": "What?"}, {"TC": [{"instruction_type": "zero-shot"}]}, {"TC": [3]}])
def test_bad_questions_are_an_error_of_their_file(config, tmp_path):
    make(tmp_path)
    put(tmp_path / "configs" / "instruction_config.json", config)
    with pytest.raises(DataError, match=r"instruction_config\.json"):
        list(DATASET.examples(tmp_path, "agnews_train"))
