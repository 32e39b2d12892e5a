"""What all readers share: lines and text in small parts, splits without examples, files that do not open."""

import json
import os
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from holdfast.datasets import base, cifar100, clevr, hellaswag, imdb, inaturalist2019, piqa, region_features, sst2
from holdfast.datasets.base import DataError, Dataset, Reading, read_json_lines, read_lines, read_text
from holdfast.datasets.check import check
from holdfast.datasets.whole import prepare_all
from holdfast.types import Example


def test_json_lines_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"id": n, "text": "x" * 2_000}) + "\n" for n in range(5_000)))
    tracemalloc.start()
    numbers = [record["id"] for _, record in read_json_lines(path, Reading())]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert numbers == list(range(5_000))
    assert peak < 2e6  # of ten megabytes


def test_each_line_that_is_no_object_is_told_alone(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n{"a": \xff}\n[2]\n{"a": \n{"a": 5}')
    reading = Reading(skip=3)
    assert list(read_json_lines(path, reading)) == [(1, {"a": 1}), (6, {"a": 5})]
    assert [(p.record, p.what.split(" (")[0]) for p in reading.problems] == [
        ("line 3", "it is not UTF-8 text"),
        ("line 4", "it is not a JSON object"),
        ("line 5", "it is not JSON"),
    ]


def test_a_line_that_never_ends_is_one_bad_line(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_LONGEST_LINE", 8)
    (tmp_path / "a").write_bytes(b"1234567\n12345678\n" + b"x" * 99 + b"\nlast")
    assert list(read_lines(tmp_path / "a")) == [(1, b"1234567\n"), (2, None), (3, None), (4, b"last")]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100])
def test_text_is_the_same_in_parts_of_any_size(tmp_path, monkeypatch, size):
    monkeypatch.setattr(base, "_BLOCK", size)
    for text in ("", "Très 😀\r\n", "\ufeffa"):
        (tmp_path / "a.txt").write_text(text, encoding="utf-8", newline="")
        assert read_text(tmp_path / "a.txt") == text.removeprefix("\ufeff")
    for start, content in ((4, b"abcd\xffef"), (6, b"\xef\xbb\xbfabc\xff"), (2, b"ab\xf0\x9f\x98")):
        (tmp_path / "a.txt").write_bytes(content)
        with pytest.raises(DataError, match=f"byte {start}: it is not UTF-8 text"):
            read_text(tmp_path / "a.txt")


def dataset(*examples: Example, bad: int = 0) -> Dataset:
    def read(folder, split, reading):
        for number in range(bad):
            reading.bad("a.json", f"record {number}", "it is bad")
        yield from examples

    return Dataset("nothing", ("train",), read, lambda folder: True, {})


def test_a_split_without_examples_is_no_split(tmp_path):
    with pytest.raises(DataError, match="nothing, train: it has no examples: download its files again"):
        list(dataset().examples(tmp_path, "train"))
    with pytest.raises(DataError, match="nothing, train: none of its records can be used"):
        list(dataset(bad=2).examples(tmp_path, "train", Reading(skip=2)))
    assert len(list(dataset(Example("1"), bad=2).examples(tmp_path, "train", Reading(skip=2)))) == 1


def _make_inaturalist(folder: Path) -> None:
    arrays = {"images": [], "annotations": [], "categories": [{"id": 0, "name": "a"}]}
    (folder / "train2019.json").write_text(json.dumps(arrays))


EMPTIED = {
    "hellaswag": (hellaswag.DATASET, lambda folder: (folder / "hellaswag_train.jsonl").touch()),
    "piqa": (piqa.DATASET, lambda folder: [(folder / n).touch() for n in ("train.jsonl", "train-labels.lst")]),
    "sst2": (sst2.DATASET, lambda folder: (folder / "train.tsv").write_text("sentence\tlabel\n")),
    "clevr": (
        clevr.DATASET,
        lambda folder: [
            (folder / "questions").mkdir(),
            (folder / "questions" / "CLEVR_train_questions.json").write_text('{"questions": []}'),
        ],
    ),
    "imdb": (imdb.DATASET, lambda folder: [(folder / "train" / n).mkdir(parents=True) for n in ("pos", "neg")]),
    "inaturalist2019": (inaturalist2019.DATASET, _make_inaturalist),
}


@pytest.mark.parametrize("name", EMPTIED)
def test_preparation_and_check_tell_of_a_file_that_was_emptied(name, tmp_path):
    found, make = EMPTIED[name]
    (tmp_path / "data").mkdir()
    make(tmp_path / "data")
    with pytest.raises(DataError, match=r"it has no (records|examples|reviews)"):
        prepare_all(found, tmp_path / "data", tmp_path / "out")
    finding = check(tmp_path / "data", {name: found})[0]
    assert (finding.split, finding.verdict, len(finding.problems)) == ("train", "bad", 1)


def forbid(monkeypatch, path: Path) -> None:
    """Let a file be one that may not be read: the tests may run as a user who may read everything."""
    opened, listed = os.open, os.scandir

    def refuse(place):
        if Path(place) == path:
            raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(os, "open", lambda place, *a, **k: refuse(place) or opened(place, *a, **k))
    monkeypatch.setattr(os, "scandir", lambda place: refuse(place) or listed(place))


def _hdf5(folder: Path) -> Path:
    with h5py.File(folder / "faster_rcnn_coco_train.h5", "w") as file:
        file["bbox_features"] = np.zeros((1, 1, 2048), np.float32)
        file["bboxes"] = np.array([[[0, 0, 1, 1]]], np.float32)
        file["num_boxes"] = [1]
    return folder / "faster_rcnn_coco_train.h5"


def _cifar(folder: Path) -> Path:
    (folder / "train").write_bytes(b"")
    return folder / "train"


def _table(folder: Path) -> Path:
    rows = [{"goal": "a", "sol1": "b", "sol2": "c", "label": 0}]
    parquet.write_table(arrow.Table.from_pylist(rows), folder / "train.parquet")
    return folder / "train.parquet"


def _lines(folder: Path) -> Path:
    (folder / "hellaswag_train.jsonl").touch()
    return folder / "hellaswag_train.jsonl"


def _pictures(folder: Path) -> Path:
    (folder / "questions").mkdir()
    question = {"question_index": 0, "image_filename": "a.png", "image_index": 0}
    (folder / "questions" / "CLEVR_train_questions.json").write_text(json.dumps({"questions": [question]}))
    (folder / "images" / "train").mkdir(parents=True)
    return folder / "images" / "train"


@pytest.mark.parametrize(
    ("found", "split", "make"),
    [
        (hellaswag.DATASET, "train", _lines),
        (cifar100.DATASET, "train", _cifar),
        (region_features.DATASET, "coco_train", _hdf5),
        (piqa.DATASET, "train", _table),
        (clevr.DATASET, "train", _pictures),
    ],
    ids=["lines", "pickle", "hdf5", "table", "folder of pictures"],
)
def test_what_may_not_be_read_is_not_told_as_damage(tmp_path, monkeypatch, found, split, make):
    path = make(tmp_path)
    forbid(monkeypatch, path)
    with pytest.raises(DataError) as caught:
        list(found.examples(tmp_path, split, Reading(skip=9)))
    assert str(caught.value) == f"{path}: it cannot be opened (permission denied): ask for the right to read it"
