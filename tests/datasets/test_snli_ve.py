import json
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.snli_ve import DATASET


def record(pair: str, label: object = "neutral", key: str = "Flickr30K_ID", image: object = "123456") -> dict:
    return {
        key: image,
        "annotator_labels": [label],
        "captionID": "123456.jpg#2",
        "gold_label": label,
        "pairID": pair,
        "sentence1": "A boy holds a kite.",
        "sentence2": "A boy is at the beach.",
    }


def write(folder: Path) -> None:
    (folder / "flickr30k_images").mkdir(parents=True)
    for image in ("123456", "77"):
        (folder / "flickr30k_images" / f"{image}.jpg").write_bytes(b"")
    rows = [
        record("123456.jpg#2r1n"),
        record("123456.jpg#2r1e", "entailment", "Flikr30kID"),
        record("123456.jpg#2r1x", "-"),
        record("77.jpg#0r1c", "contradiction", "Flickr30kID", "77"),
    ]
    put(folder / "snli_ve_dev.jsonl", rows)


def put(path: Path, rows: list, end: str = "\n") -> None:
    path.write_bytes("".join(json.dumps(row) + end for row in rows).encode())


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def test_three_spellings_three_labels_and_a_row_without_one(folder):
    reading = Reading()
    examples = list(DATASET.examples(folder, "dev", reading))
    assert reading.aside == {"without a gold label": 1}
    assert [e.target for e in examples] == [2, 0, 1]
    assert [e.id for e in examples] == ["123456.jpg#2r1n", "123456.jpg#2r1e", "77.jpg#0r1c"]
    assert [e.images[0].name for e in examples] == ["123456.jpg", "123456.jpg", "77.jpg"]
    assert examples[0].text == "A boy is at the beach."
    assert examples[0].extra["sentence1"] == "A boy holds a kite."
    assert examples[2].extra["Flickr30K_ID"] == "77"


def test_line_ends_of_windows(folder):
    put(folder / "snli_ve_dev.jsonl", [record("a"), record("b")], end="\r\n")
    assert [e.id for e in DATASET.examples(folder, "dev")] == ["a", "b"]


def test_images_in_the_other_folder_beside_it(tmp_path):
    (tmp_path / "snli_ve").mkdir()
    (tmp_path / "flickr30k_entities" / "flickr30k-images").mkdir(parents=True)
    image = tmp_path / "flickr30k_entities" / "flickr30k-images" / "123456.jpg"
    image.write_bytes(b"")
    put(tmp_path / "snli_ve" / "snli_ve_test.jsonl", [record("a")])
    (example,) = DATASET.examples(tmp_path / "snli_ve", "test")
    assert example.images == (image,)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (record("p", "maybe"), "gold_label is 'maybe'"),
        (record("p", image="5"), "5.jpg is missing"),
        (record("p", image=123456), "not str"),
        (record("p", image="../flickr30k_images/77"), "does not name an image"),
        (record("p", key="image"), "no 'Flickr30K_ID'"),
        ({"pairID": "p"}, "no 'gold_label'"),
        (record("p") | {"sentence2": ""}, "sentence2 is empty"),
    ],
)
def test_bad_records_are_named(folder, bad, what):
    put(folder / "snli_ve_dev.jsonl", [bad, record("good")])
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "dev", reading)] == ["good"]
    assert reading.problems[0].record == "p"
    assert what in reading.problems[0].what


def test_a_line_cut_in_half(folder):
    path = folder / "snli_ve_dev.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="line 4: it is not JSON"):
        list(DATASET.examples(folder, "dev"))


def test_presence_and_absence(folder):
    assert DATASET.present(folder)
    assert not DATASET.present(folder / "flickr30k_images")
    with pytest.raises(DataError, match=r"snli_ve_train.jsonl: no such file"):
        list(DATASET.examples(folder, "train"))
