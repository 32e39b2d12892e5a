import json
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.nikolaus import _PAIRS, DATASET

ONE = ["black_cat", "big_bird", "red_bus", "small_plane", "eat_man", "lie_woman"]


def lists(train: list, val: list, test: list, pairs: object) -> dict:
    return {"train_images_split": train, "val_images_split": val, "test_images_split": test, "heldout_pairs": pairs}


def occurrences(pair: str, counts: dict[str, int]) -> dict:
    first, noun = pair.split("_")
    kind = "verbs" if first in ("eat", "lie") else "adjectives"
    data = {i: {"pair_occurrences": n, "noun_occurrences": n, "coco_split": "val2014"} for i, n in counts.items()}
    return {"nouns": [noun], kind: [first], "adjective_noun_occurrence_data": data}


def write(folder: Path) -> None:
    put(folder, "dataset_splits/dataset_splits_1.json", lists(["451893", "9"], ["322870"], ["281733", "42"], ONE))
    put(folder, "dataset_splits/dataset_splits_full_data.json", lists(["9"], ["42"], ["1"], []))
    put(folder, "dataset_splits/dataset_splits_karpathy.json", lists(["9"], ["42"], ["281733"], None))
    for pair in ONE:
        counts = {"281733": 3 * (pair == "red_bus") + (pair == "lie_woman"), "42": 2 * (pair == "red_bus"), "9": 0}
        put(folder, f"occurrences/{pair}.json", occurrences(pair, counts))
    for name, numbers in {"train2014": [451893, 9, 322870], "val2014": [281733, 42]}.items():
        (folder / name).mkdir(parents=True)
        for number in numbers:
            (folder / name / f"COCO_{name}_{number:012d}.jpg").write_bytes(b"")


def put(folder: Path, name: str, content: object) -> None:
    (folder / "data" / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / "data" / name).write_text(json.dumps(content))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "nikolaus")
    return tmp_path / "nikolaus"


def test_the_parts_of_a_list(folder):
    ids = {part: [e.id for e in DATASET.examples(folder, f"{part}_1")] for part in ("train", "val", "test")}
    assert ids == {"train": ["451893", "9"], "val": ["322870"], "test": ["281733", "42"]}
    first, second = DATASET.examples(folder, "test_1")
    assert first.extra["heldout_pairs"] == tuple(ONE)
    assert first.extra["pair_occurrences"] == {"red_bus": 3, "lie_woman": 1}
    assert first.target == (2, 5)
    assert second.target == (2,)
    assert second.images == (folder / "val2014" / "COCO_val2014_000000000042.jpg",)


def test_lists_without_pairs(folder):
    (example,) = DATASET.examples(folder, "test_karpathy")
    assert (example.target, example.extra["heldout_pairs"]) == (None, ())
    (example,) = DATASET.examples(folder, "train_full_data")
    assert (example.target, example.extra["heldout_pairs"]) == (None, ())


def test_lists_alone_without_images_or_occurrences(folder, tmp_path):
    other = tmp_path / "elsewhere" / "lists"
    put(other, "dataset_splits/dataset_splits_1.json", lists([], [], ["281733"], ONE))
    (example,) = DATASET.examples(other, "test_1")
    assert (example.target, example.images) == (None, ())


def test_the_images_of_a_coco_folder_beside_it(folder, tmp_path):
    (folder / "train2014").rename(tmp_path / "moved")
    (tmp_path / "coco").mkdir()
    (tmp_path / "moved").rename(tmp_path / "coco" / "train2014")
    assert [e.images[0].parent for e in DATASET.examples(folder, "train_1")] == [tmp_path / "coco" / "train2014"] * 2


@pytest.mark.parametrize("bad", [451893, None, "x", "-4", "1" * 13, "9", []])
def test_bad_ids(folder, bad):
    put(folder, "dataset_splits/dataset_splits_1.json", lists(["9", bad], [], [], ONE))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "train_1", reading)] == ["9"]
    assert reading.problems[0].record == "train image 2"


def test_a_missing_image_and_an_unknown_pair_and_a_bad_count(folder):
    put(folder, "dataset_splits/dataset_splits_1.json", lists([], [], ["5", "42"], [*ONE, "pink_cat"]))
    put(folder, "occurrences/red_bus.json", occurrences("red_bus", {"281733": -1, "42": 1}))
    reading = Reading(skip=3)
    assert [e.id for e in DATASET.examples(folder, "test_1", reading)] == ["42"]
    whats = [problem.what for problem in reading.problems]
    assert whats == [
        "'pink_cat' is not one of the 24 pairs",
        "its pair_occurrences -1 is not a count",
        "its file is missing",
    ]


@pytest.mark.parametrize("content", [[], {}, {"heldout_pairs": None}, {"heldout_pairs": "x", "train_images_split": []}])
def test_a_file_that_is_no_list_of_images(folder, content):
    put(folder, "dataset_splits/dataset_splits_1.json", content)
    with pytest.raises(DataError, match=r"dataset_splits_1.json"):
        list(DATASET.examples(folder, "train_1", Reading(skip=9)))


def test_the_pairs_and_counts_are_the_published_ones(folder):
    assert len(set(_PAIRS)) == 24
    assert all(DATASET.counts[f"train_{n}"] + DATASET.counts[f"val_{n}"] == 82_783 for n in (1, 2, 3, 4))
    assert set(DATASET.counts) == set(DATASET.splits)
    assert DATASET.present(folder)
    assert not DATASET.present(folder.parent)
