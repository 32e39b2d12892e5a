from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdfast.world.writers import inaturalist2019
from world.writers.written import digests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inaturalist2019")
    inaturalist2019.write(path, "tiny", 3)
    return path


def content(root: Path, split: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / f"{split}2019.json").read_text())
    return value


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    inaturalist2019.write(tmp_path / "again", "tiny", 3)
    inaturalist2019.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


def test_every_image_is_where_its_label_says(root: Path) -> None:
    seen = set()
    for split in ("train", "val"):
        given = content(root, split)
        assert list(given) == ["info", "images", "categories", "annotations", "licenses"]
        labels = {note["image_id"]: note["category_id"] for note in given["annotations"]}
        assert [note["image_id"] for note in given["annotations"]] == [image["id"] for image in given["images"]]
        for image in given["images"]:
            assert list(image) == ["id", "width", "height", "file_name", "license", "rights_holder"]
            pattern = rf"train_val2019/[A-Z][a-z]+/{labels[image['id']]}/[0-9a-f]{{32}}\.jpg"
            assert re.fullmatch(pattern, image["file_name"])
            with Image.open(root / image["file_name"]) as picture:
                assert picture.size == (image["width"], image["height"])
            seen.add(image["id"])
    assert len(seen) == 160 + 36


def test_species_of_a_class_are_of_one_supercategory(root: Path) -> None:
    homes: dict[str, set[str]] = {}
    for path in (root / "train_val2019").glob("*/*"):
        homes.setdefault(path.name, set()).add(path.parent.name)
    assert sorted(map(int, homes)) == list(range(12))
    assert all(len(home) == 1 for home in homes.values())
    assert {next(iter(home)) for home in homes.values()} <= set(inaturalist2019.SUPERCATEGORIES)


def test_train_has_a_long_tail_and_val_is_even(root: Path) -> None:
    train = Counter(note["category_id"] for note in content(root, "train")["annotations"])
    assert sum(train.values()) == 160
    assert train[0] > 3 * train[11] >= 3
    assert Counter(note["category_id"] for note in content(root, "val")["annotations"]) == dict.fromkeys(range(12), 3)


def test_test_has_images_without_labels(root: Path) -> None:
    given = content(root, "test")
    assert "annotations" not in given
    assert all(re.fullmatch(r"test2019/[0-9a-f]{32}\.jpg", image["file_name"]) for image in given["images"])
    assert all((root / image["file_name"]).is_file() for image in given["images"])


def test_names_of_the_competition_are_hidden(root: Path) -> None:
    real = json.loads((root / "categories.json").read_text())
    hidden = content(root, "train")["categories"]
    assert [each["id"] for each in real] == [each["id"] for each in hidden] == list(range(12))
    assert not {each["name"] for each in real} & {each["name"] for each in hidden}
    assert len({each["name"] for each in real}) == 12
    keys = ["id", "name", "kingdom", "phylum", "class", "order", "family", "genus"]
    assert list(real[0]) == list(hidden[0]) == keys


def test_the_papers_numbers_can_be_reached() -> None:
    counts = inaturalist2019.COUNTS["paper"]
    tail = inaturalist2019.long_tail(counts["train"], counts["species"])
    assert sum(tail) == 265_213
    assert tail == sorted(tail, reverse=True)
    species = inaturalist2019._species(counts["species"], counts["genera"])
    assert len(set(species)) == len(species) == 1_010
