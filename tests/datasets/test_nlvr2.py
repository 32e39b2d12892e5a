import json
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.nlvr2 import DATASET


def record(identifier: str, label: object = "False", **more: object) -> dict:
    return {
        "validation": {"61": "False"},
        "sentence": "Both images show a red boat.",
        "label": label,
        "synset": "boat",
        "query": "red boats12",
        "identifier": identifier,
    } | more


def write(folder: Path) -> None:
    data = folder / "data"
    (data / "balanced").mkdir(parents=True)
    train = [record("train-7-0-0", directory=12), record("train-7-0-1", "True", directory="12")]
    put(data / "train.json", [*train, record("train-8-1-0", directory=3)])
    dev = [record("dev-850-0-1", "True", extra_validations={"1": "True"}), record("dev-850-1-0")]
    put(data / "dev.json", dev)
    put(data / "balanced" / "balanced_dev.json", dev[:1])
    pairs = [("train/12", "train-7-0"), ("train/3", "train-8-1"), ("dev", "dev-850-0"), ("dev", "dev-850-1")]
    for place, pair in pairs:
        (folder / "images" / place).mkdir(parents=True, exist_ok=True)
        for side in (0, 1):
            (folder / "images" / place / f"{pair}-img{side}.png").write_bytes(b"")


def put(path: Path, records: list) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def test_two_images_a_sentence_and_a_label_that_is_text(folder):
    first, second, third = DATASET.examples(folder, "train")
    assert (first.id, first.target, second.target, third.target) == ("train-7-0-0", 0, 1, 0)
    place = folder / "images" / "train" / "12"
    assert first.images == second.images == (place / "train-7-0-img0.png", place / "train-7-0-img1.png")
    assert first.extra["directory"] == second.extra["directory"] == "12"
    assert first.text == "Both images show a red boat."
    assert first.extra["synset"] == "boat"


def test_dev_and_its_subset(folder):
    assert [(e.id, e.target) for e in DATASET.examples(folder, "dev")] == [("dev-850-0-1", 1), ("dev-850-1-0", 0)]
    (example,) = DATASET.examples(folder, "balanced_dev")
    assert example.extra["extra_validations"] == {"1": "True"}


def test_training_images_in_one_folder(folder):
    for path in list((folder / "images" / "train").glob("*/*.png")):
        path.rename(folder / "images" / "train" / path.name)
    assert [e.images[0].parent for e in DATASET.examples(folder, "train")] == [folder / "images" / "train"] * 3


def test_training_images_are_found_without_the_directory(folder):
    put(folder / "data" / "train.json", [record("train-8-1-0")])
    (example,) = DATASET.examples(folder, "train")
    assert example.images[1] == folder / "images" / "train" / "3" / "train-8-1-img1.png"


def test_a_missing_image_is_reported(folder):
    (folder / "images" / "dev" / "dev-850-0-img1.png").unlink()
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "dev", reading)] == ["dev-850-1-0"]
    assert reading.problems[0].record == "dev-850-0-1"
    assert "dev-850-0-img1.png is missing" in reading.problems[0].what


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (record("dev-850-0-1", "false"), "label is 'false'"),
        (record("dev-850-0-1", False), "'label' is False"),
        (record("dev-850-0-1", "Maybe"), "label is 'Maybe'"),
        (record("../dev-850-0-1"), "identifier"),
        (record("dev-850-0-1", sentence=" "), "sentence is empty"),
        (record("dev-850-0-1", directory="../.."), "directory '../..' is not a number"),
        (record("dev-850-0-1", directory=True), "directory 'True' is not a number"),
        ({"identifier": "dev-850-0-1"}, "no 'label'"),
        ([], "not a JSON object"),
    ],
)
def test_bad_records(folder, bad, what):
    put(folder / "data" / "dev.json", [bad, record("dev-850-1-0")])
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "dev", reading)] == ["dev-850-1-0"]
    assert what in str(reading.problems[0])


def test_an_empty_file_is_refused(folder):
    (folder / "data" / "dev.json").write_bytes(b"\n")
    with pytest.raises(DataError, match=r"dev\.json: it has no records"):
        list(DATASET.examples(folder, "dev"))


def test_presence(folder, tmp_path):
    assert not DATASET.present(tmp_path / "images")
    put(folder / "data" / "test1.json", [])
    assert DATASET.present(folder)
