import json
import os
from pathlib import Path

import pytest

from holdfast.datasets.base import Reading
from holdfast.datasets.hellaswag import DATASET

RECORDS = {"train": 3, "val": 1, "test": 1}
ENDINGS = ["pours it.", "sings.", "drives.", "waits."]
FULL = {
    "ind": 92,
    "activity_label": "Making tea",
    "ctx_a": "A man fills a kettle.",
    "ctx_b": "the man",
    "ctx": "A man fills a kettle. the man",
    "split": "train",
    "split_type": "zeroshot",
    "label": 3,
    "endings": ENDINGS,
    "source_id": "activitynet~v_abc",
}
WIKIHOW = {
    **FULL,
    "ind": 4,
    "ctx_b": "",
    "ctx": "How to wave [header] Raise a hand.",
    "source_id": "wikihow~7",
    "label": 0,
}
REDUCED = {"ind": 7, "activity_label": "Tea", "ctx": "She", "label": "2", "endings": ENDINGS, "split": "train"}


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def make(folder):
    unlabelled = {name: value for name, value in FULL.items() if name != "label"}
    (folder / "hellaswag_train.jsonl").write_text(lines(FULL, WIKIHOW, REDUCED))
    (folder / "hellaswag_val.jsonl").write_text(lines({**FULL, "split": "val"}))
    (folder / "hellaswag_test.jsonl").write_text(lines(unlabelled))


def test_labels_are_read_as_numbers_and_as_strings(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target, e.text) for e in found] == [
        ("train-0", 3, "A man fills a kettle. the man"),
        ("train-1", 0, "How to wave [header] Raise a hand."),
        ("train-2", 2, "She"),
    ]
    assert found[0].choices == tuple(ENDINGS)
    assert found[0].extra["split_type"] == "zeroshot"
    assert found[0].extra["ind"] == 92
    assert "split_type" not in found[2].extra


def test_test_has_no_label_and_the_hub_has_an_empty_one(tmp_path):
    make(tmp_path)
    assert [e.target for e in DATASET.examples(tmp_path, "test")] == [None]
    (tmp_path / "hellaswag_test.jsonl").write_text(lines({**FULL, "label": ""}))
    assert [e.target for e in DATASET.examples(tmp_path, "test")] == [None]


def test_a_context_is_joined_where_it_is_not_given(tmp_path):
    parts = {name: value for name, value in FULL.items() if name != "ctx"}
    (tmp_path / "hellaswag_val.jsonl").write_text(lines(parts))
    assert next(DATASET.examples(tmp_path, "val")).text == FULL["ctx"]


@pytest.mark.parametrize(
    "change",
    [
        {"label": 4},
        {"label": ""},
        {"label": True},
        {"endings": ENDINGS[:3]},
        {"endings": [*ENDINGS[:3], 1]},
        {"ctx": None},
    ],
)
def test_a_bad_record_is_told_with_its_line(tmp_path, change):
    (tmp_path / "hellaswag_val.jsonl").write_text(lines(FULL, {**FULL, **change}, FULL))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "val", reading)] == ["val-0", "val-2"]
    assert reading.problems[0].record == "line 2"


@pytest.mark.slow
def test_the_real_validation_records_are_read_without_a_problem(tmp_path):
    if "HOLDFAST_REAL_DATA" not in os.environ:
        pytest.skip("set HOLDFAST_REAL_DATA to a folder with language/hellaswag")
    folder = Path(os.environ["HOLDFAST_REAL_DATA"]) / "language" / "hellaswag"
    for name, count in (("hellaswag_val_reduced.jsonl", 10_042), ("hellaswag_val_subset_officialformat.jsonl", 1_000)):
        (tmp_path / "hellaswag_val.jsonl").write_bytes((folder / name).read_bytes())
        assert sum(1 for _ in DATASET.examples(tmp_path, "val")) == count
