import os
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.sst2 import DATASET

RECORDS = {"train": 4, "dev": 2, "test": 2}


def make(folder):
    files = {
        "train.tsv": "sentence\tlabel\na warm little comedy \t1\n"
        '"quoted \t0\na "half quote \t1\nthe crème\u2028brûlée \t0\n',
        "dev.tsv": "sentence\tlabel\r\na slow , dull ride .\t0\r\nit 's fun .\t1\r\n",
        "test.tsv": "index\tsentence\n0\ta film .\n1\tanother film .",
    }
    (folder / "SST-2").mkdir(parents=True)
    for name, text in files.items():
        (folder / "SST-2" / name).write_bytes(text.encode())


def test_quotes_are_data_and_line_separators_are_not_line_ends(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = [(e.id, e.text, e.target) for e in DATASET.examples(tmp_path, "train")]
    assert found == [
        ("train-0", "a warm little comedy ", 1),
        ("train-1", '"quoted ', 0),
        ("train-2", 'a "half quote ', 1),
        ("train-3", "the crème\u2028brûlée ", 0),
    ]


def test_either_line_end_is_read_and_test_has_no_labels(tmp_path):
    make(tmp_path)
    assert [(e.text, e.target) for e in DATASET.examples(tmp_path, "dev")] == [
        ("a slow , dull ride .", 0),
        ("it 's fun .", 1),
    ]
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "test")] == [("test-0", None), ("test-1", None)]


@pytest.mark.parametrize("row", ["a film\t2", "a film", "a film\t1\t0", " \t1", "", "a film\t"])
def test_a_bad_row_is_told_with_its_line(tmp_path, row):
    (tmp_path / "train.tsv").write_text(f"sentence\tlabel\n{row}\ngood\t1\n")
    reading = Reading(skip=1)
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "train", reading)] == [("train-1", 1)]
    assert reading.problems[0].record == "line 2"
    with pytest.raises(DataError, match="line 2"):
        list(DATASET.examples(tmp_path, "train"))


def test_another_task_of_glue_is_not_taken_for_it(tmp_path):
    (tmp_path / "train.tsv").write_text("id\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n")
    assert not DATASET.present(tmp_path)
    with pytest.raises(DataError, match="header"):
        list(DATASET.examples(tmp_path, "train"))


@pytest.mark.slow
def test_the_real_files_have_the_official_counts():
    if "HOLDFAST_REAL_DATA" not in os.environ:
        pytest.skip("set HOLDFAST_REAL_DATA to a folder with language/sst2")
    folder = Path(os.environ["HOLDFAST_REAL_DATA"]) / "language" / "sst2"
    for split, count in DATASET.counts.items():
        assert sum(1 for _ in DATASET.examples(folder, split)) == count
