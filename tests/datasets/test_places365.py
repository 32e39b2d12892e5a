import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.places365 import DATASET

RECORDS = {"train": 3, "val": 2, "test": 1}
CATEGORIES = "/a/airfield 0\n/d/desert/sand 1\n/d/desert_road 2"  # no final newline, as published
TRAIN = "/a/airfield/00000001.jpg 0\n/d/desert/sand/00000001.jpg 1\n/d/desert_road/00000004.jpg 2\n"


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")


def make(folder):
    (folder / "categories_places365.txt").write_text(CATEGORIES)
    (folder / "places365_train_standard.txt").write_text(TRAIN)
    (folder / "places365_val.txt").write_text("Places365_val_00000001.jpg 2\nPlaces365_val_00000002.jpg 0\n")
    (folder / "places365_test.txt").write_text("Places365_test_00000001.jpg\n")
    for line in TRAIN.splitlines():
        touch(folder / "data_256" / line.split(" ")[0].lstrip("/"))
    for name in ("val_256/Places365_val_00000001.jpg", "val_256/Places365_val_00000002.jpg"):
        touch(folder / name)
    touch(folder / "test_256" / "Places365_test_00000001.jpg")


def test_train_paths_start_with_a_slash_and_may_be_nested(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target) for e in found] == [
        ("/a/airfield/00000001", 0),
        ("/d/desert/sand/00000001", 1),
        ("/d/desert_road/00000004", 2),
    ]
    assert found[1].images == (tmp_path / "data_256/d/desert/sand/00000001.jpg",)
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "val")] == [
        ("Places365_val_00000001", 2),
        ("Places365_val_00000002", 0),
    ]
    assert [e.target for e in DATASET.examples(tmp_path, "test")] == [None]


def test_the_large_pictures_are_found_too(tmp_path):
    make(tmp_path)
    (tmp_path / "data_256").rename(tmp_path / "data_large")
    assert len(list(DATASET.examples(tmp_path, "train"))) == 3


def test_the_easy_format_sorts_into_the_official_order(tmp_path):
    # joined with "_", desert_road would come before desert_sand, and the two classes would be swapped
    names = ["airfield", "desert-sand", "desert_road", *(f"zoo{number:03d}" for number in range(362))]
    for name in names:
        (tmp_path / "val" / name).mkdir(parents=True)
        touch(tmp_path / "val" / name / "1.jpg")
    touch(tmp_path / "train" / "desert_road" / "2.jpg")
    assert DATASET.present(tmp_path)
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "val")] == [(f"{n}/1", i) for i, n in enumerate(names)]
    # a part of train has the numbers of the whole, which val shows
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "train")] == [("desert_road/2", 2)]


def test_a_part_of_the_easy_format_is_numbered_by_the_list_and_never_by_its_folders(tmp_path):
    for name in ("desert-sand", "desert_road"):  # the first class is not here
        touch(tmp_path / "train" / name / "1.jpg")
    with pytest.raises(DataError, match=r"its 2 folders are not the 365 classes.*put categories_places365.txt in"):
        list(DATASET.examples(tmp_path, "train"))
    (tmp_path / "categories_places365.txt").write_text(CATEGORIES)
    found = [(e.id, e.target) for e in DATASET.examples(tmp_path, "train")]
    assert found == [("desert-sand/1", 1), ("desert_road/1", 2)]


def test_an_empty_class_folder_is_told(tmp_path):
    (tmp_path / "categories_places365.txt").write_text(CATEGORIES)
    touch(tmp_path / "train" / "airfield" / "1.jpg")
    (tmp_path / "train" / "desert_road").mkdir()
    with pytest.raises(DataError, match="desert_road: it has no pictures"):
        list(DATASET.examples(tmp_path, "train"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/a/airfield/00000001.jpg 1", "not that of '/a/airfield'"),
        ("/a/airfield/00000001.jpg 365", "label is '365'"),
        ("/a/airfield/00000009.jpg 0", "missing"),
        ("/a/../../x.jpg 0", "not that of"),
        ("/a/airfield/00000001.jpg", "label"),
        ("", "label"),
    ],
)
def test_a_bad_line_is_told(tmp_path, line, words):
    make(tmp_path)
    (tmp_path / "places365_train_standard.txt").write_text(line + "\n" + TRAIN)
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(tmp_path, "train", reading))) == 3
    assert words in reading.problems[0].what
    assert reading.problems[0].record == "line 1"


@pytest.mark.parametrize("text", ["", "/a/airfield 0\n/b/beach 0", "/a/airfield x"])
def test_broken_categories_are_refused(tmp_path, text):
    make(tmp_path)
    (tmp_path / "categories_places365.txt").write_text(text)
    with pytest.raises(DataError, match="categories_places365"):
        list(DATASET.examples(tmp_path, "val"))
