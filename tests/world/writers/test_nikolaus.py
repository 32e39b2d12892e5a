from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.world.captions import Caption, Phrase
from holdfast.world.writers import nikolaus
from world.writers.written import digests


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nikolaus")
    nikolaus.write(path, "tiny", 3)
    return path


def content(folder: Path, name: str) -> Any:
    return json.loads((folder / "data" / name).read_text())


def ids(folder: Path, split: str) -> set[str]:
    captions = json.loads((folder / "annotations" / f"captions_{split}.json").read_text())
    return {str(entry["id"]) for entry in captions["images"]}


def test_the_same_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    nikolaus.write(tmp_path, "tiny", 3)
    assert digests(folder) == digests(tmp_path)


@pytest.mark.parametrize("split", [1, 2, 3, 4])
def test_a_split_follows_from_the_occurrences(folder: Path, split: int) -> None:
    parts = content(folder, f"dataset_splits/dataset_splits_{split}.json")
    assert list(parts) == ["train_images_split", "val_images_split", "test_images_split", "heldout_pairs"]
    assert len(parts["heldout_pairs"]) == 6
    holding = {"train2014": set(), "val2014": set()}  # type: dict[str, set[str]]
    for pair in parts["heldout_pairs"]:
        data = content(folder, f"occurrences/{pair}.json")["adjective_noun_occurrence_data"]
        for number, counts in data.items():
            if counts["pair_occurrences"] > 0:
                holding[counts["coco_split"]].add(number)
    train, val, test = (set(parts[f"{name}_images_split"]) for name in ("train", "val", "test"))
    assert val == holding["train2014"]
    assert test == holding["val2014"]
    assert train == ids(folder, "train2014") - val
    assert test <= ids(folder, "val2014")


def test_some_images_are_held_out(folder: Path) -> None:
    parts = [content(folder, f"dataset_splits/dataset_splits_{split}.json") for split in (1, 2, 3, 4)]
    assert sum(len(part["val_images_split"]) for part in parts) > 10
    assert sum(len(part["test_images_split"]) for part in parts) > 5


def test_the_other_two_splits(folder: Path) -> None:
    full = content(folder, "dataset_splits/dataset_splits_full_data.json")
    assert full["heldout_pairs"] == []
    assert set(full["val_images_split"]) == ids(folder, "val2014")
    names = {path.name for path in (folder / "test2014").iterdir()}
    assert names == {f"COCO_test2014_{int(number):012d}.jpg" for number in full["test_images_split"]}
    karpathy = content(folder, "dataset_splits/dataset_splits_karpathy.json")
    assert karpathy["heldout_pairs"] is None
    val, test = set(karpathy["val_images_split"]), set(karpathy["test_images_split"])
    assert not val & test
    assert val | test < ids(folder, "val2014")


def test_occurrences(folder: Path) -> None:
    for pair in (name for names in nikolaus.HELD_OUT.values() for name in names):
        data = content(folder, f"occurrences/{pair}.json")
        kind = "verb" if pair.split("_")[0] in ("eat", "fly", "hold", "lie", "ride", "stand") else "adjective"
        assert list(data) == ["nouns", f"{kind}s", "adjective_noun_occurrence_data"]
        for counts in data["adjective_noun_occurrence_data"].values():
            together = counts["pair_occurrences"]
            assert 0 <= together <= min(counts[f"{kind}_occurrences"], counts["noun_occurrences"]) <= 5
    early = content(folder, "occurrences/black_cat_val2014.json")["adjective_noun_occurrence_data"]
    assert all("coco_split" not in counts for counts in early.values())


def test_synonyms_begin_with_their_word(folder: Path) -> None:
    paths = list((folder / "data" / "synonyms").rglob("*.json"))
    assert {path.parent.name for path in paths} == {"adjectives", "nouns", "verbs"}
    for path in paths:
        assert json.loads(path.read_text())[0] == path.stem
    assert "seaplane bus" in content(folder, "synonyms/nouns/plane.json")


def said(text: str, *phrases: tuple[int, int]) -> Caption:
    return Caption(text, tuple(text.split()), tuple(Phrase(start, stop, 0) for start, stop in phrases))


@pytest.mark.parametrize(
    ("name", "caption", "expected"),
    [
        ("black_cat", said("A black cat lies with a dog .", (0, 3), (5, 7)), (True, True, True)),
        ("black_cat", said("A cat lies with a black dog .", (0, 2), (4, 7)), (False, True, True)),
        ("small_cat", said("A little kitten with a dog .", (0, 3), (4, 6)), (True, True, True)),
        ("lie_woman", said("A woman in red is lying with a man .", (0, 2), (7, 9)), (True, True, True)),
        ("lie_woman", said("A man lies with a woman .", (0, 2), (4, 6)), (False, True, True)),
        ("eat_horse", said("A bird flies .", (0, 2)), (False, False, False)),
        ("small_table", said("A small dining table in a room .", (0, 4)), (True, True, True)),
    ],
)
def test_a_pair_in_a_caption(name: str, caption: Caption, expected: tuple[bool, bool, bool]) -> None:
    pair = next(pair for pair in nikolaus._pairs() if pair.name == name)
    assert nikolaus._in(pair, caption) == expected
