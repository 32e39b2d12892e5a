import json
import os
from pathlib import Path

import pytest

from holdfast.datasets.base import Reading
from holdfast.datasets.commonsenseqa import DATASET

RECORDS = {"train": 2, "dev": 1, "test": 1}
TEXTS = ["sky", "valley", "shoe", "lamp", "cloud"]
RAW = {
    "answerKey": "B",
    "id": "0f3c",
    "question": {
        "question_concept": "river",
        "choices": [{"label": label, "text": text} for label, text in zip("ABCDE", TEXTS, strict=True)],
        "stem": "Where does a river flow?",
    },
}
HUB = {
    "id": "77aa",
    "question": "Where does a river flow?",
    "question_concept": "river",
    "choices": {"label": list("ABCDE"), "text": TEXTS},
    "answerKey": "E",
}


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def make(folder):
    (folder / "train_rand_split.jsonl").write_text(lines(RAW, HUB))
    (folder / "dev_rand_split.jsonl").write_text(lines(RAW))
    unanswered = {name: value for name, value in RAW.items() if name != "answerKey"}
    (folder / "test_rand_split_no_answers.jsonl").write_text(lines(unanswered))


def test_the_owners_choices_and_the_hubs_are_the_same(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    raw, hub = DATASET.examples(tmp_path, "train")
    assert (raw.id, raw.target, hub.id, hub.target) == ("0f3c", 1, "77aa", 4)
    assert raw.choices == hub.choices == tuple(TEXTS)
    assert raw.text == hub.text == "Where does a river flow?"
    assert raw.extra == hub.extra == {"question_concept": "river"}


def test_test_has_no_answers(tmp_path):
    make(tmp_path)
    assert [e.target for e in DATASET.examples(tmp_path, "test")] == [None]


@pytest.mark.parametrize(
    "change",
    [
        {"answerKey": "F"},
        {"answerKey": ["A"]},
        {"answerKey": ""},
        {"id": None},
        {"id": "0f3c"},  # twice
        {"question": {**RAW["question"], "choices": RAW["question"]["choices"][:3]}},
        {"question": {**RAW["question"], "choices": "ABCDE"}},
        {"question": {**RAW["question"], "stem": 3}},
    ],
)
def test_a_bad_record_is_told_with_its_line(tmp_path, change):
    (tmp_path / "dev_rand_split.jsonl").write_text(lines(RAW, {**RAW, "id": "1", **change}))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "dev", reading)] == ["0f3c"]
    assert reading.problems[0].record == "line 2"


@pytest.mark.slow
def test_the_real_files_have_the_official_counts():
    if "HOLDFAST_REAL_DATA" not in os.environ:
        pytest.skip("set HOLDFAST_REAL_DATA to a folder with language/commonsenseqa")
    folder = Path(os.environ["HOLDFAST_REAL_DATA"]) / "language" / "commonsenseqa"
    for split, count in DATASET.counts.items():
        assert sum(1 for _ in DATASET.examples(folder, split)) == count
