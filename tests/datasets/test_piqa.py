import json
import os
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.piqa import DATASET

RECORDS = {"train": 3, "valid": 2, "test": 1}


def rows(count, **more):
    questions = [{"goal": f"To dry shoe {n},", "sol1": "use paper.", "sol2": "use soup.", **more} for n in range(count)]
    return "".join(json.dumps(question) + "\n" for question in questions)


def make(folder):
    (folder / "train.jsonl").write_text(rows(3))
    (folder / "train-labels.lst").write_text("0\n1\n1\n")
    (folder / "valid.jsonl").write_text(rows(2))
    (folder / "valid-labels.lst").write_text("1\n0\n")
    (folder / "tests.jsonl").write_text(rows(1))


def test_labels_go_by_line(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target) for e in found] == [("train-0", 0), ("train-1", 1), ("train-2", 1)]
    assert (found[1].text, found[1].choices) == ("To dry shoe 1,", ("use paper.", "use soup."))
    assert [e.target for e in DATASET.examples(tmp_path, "test")] == [None]


def test_the_mirror_says_dev_and_has_ids(tmp_path):
    folder = tmp_path / "physicaliqa-train-dev"
    folder.mkdir()
    (folder / "dev.jsonl").write_text(rows(1, id="abc"))
    (folder / "dev-labels.lst").write_text("1\n")
    assert DATASET.present(tmp_path)
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "valid")] == [("abc", 1)]


def test_a_label_too_few_is_refused_as_all_would_shift(tmp_path):
    make(tmp_path)
    (tmp_path / "train-labels.lst").write_text("0\n1\n")
    with pytest.raises(DataError, match=r"its 2 labels do not match the 3 questions of train.jsonl"):
        list(DATASET.examples(tmp_path, "train"))


@pytest.mark.parametrize("row", ["", "{", '{"goal": "a", "sol1": "b"}', '{"goal": 1, "sol1": "b", "sol2": "c"}'])
def test_a_bad_row_does_not_shift_the_labels(tmp_path, row):
    make(tmp_path)
    first, _, last = rows(3).splitlines()
    (tmp_path / "train.jsonl").write_text("\n".join([first, row, last]))
    reading = Reading(skip=1)
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "train", reading)] == [("train-0", 0), ("train-2", 1)]
    assert reading.problems[0].record == "line 2"


def test_a_label_that_is_none_is_told(tmp_path):
    make(tmp_path)
    (tmp_path / "train-labels.lst").write_text("0\n2\n1\n")
    with pytest.raises(DataError, match="line 2: its label is '2'"):
        list(DATASET.examples(tmp_path, "train"))


@pytest.mark.slow
def test_the_real_files_have_the_official_counts():
    if "HOLDFAST_REAL_DATA" not in os.environ:
        pytest.skip("set HOLDFAST_REAL_DATA to a folder with language/piqa")
    folder = Path(os.environ["HOLDFAST_REAL_DATA"]) / "language" / "piqa"
    valid = [e.target for e in DATASET.examples(folder, "valid")]
    assert (valid.count(1), valid.count(0)) == (928, 910)
    assert sum(1 for _ in DATASET.examples(folder, "test")) == DATASET.counts["test"]
