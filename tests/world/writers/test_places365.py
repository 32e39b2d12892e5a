from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from holdfast.world.writers import places365
from world.writers.written import digests, look


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("places365")
    places365.write(path, "tiny", 3)
    return path


def rows(root: Path, name: str) -> list[list[str]]:
    text = (root / name).read_bytes().decode()
    return [line.split(" ") for line in text.removesuffix("\n").split("\n")]


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    places365.write(tmp_path / "again", "tiny", 3)
    places365.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


def test_categories_are_numbered_and_the_last_line_is_open(root: Path) -> None:
    text = (root / "categories_places365.txt").read_bytes()
    assert text.count(b"\n") == 11
    names = rows(root, "categories_places365.txt")
    assert [number for _, number in names] == [str(index) for index in range(12)]
    assert all(name.startswith(f"/{name[3]}/") for name, _ in names)
    nested = [name for name, _ in names if name.count("/") == 3]
    assert 0 < len(nested) < 6


def test_only_a_hyphen_keeps_the_order_when_levels_are_joined() -> None:
    names = places365.categories(365)
    assert len(set(names)) == 365
    flat = [name[3:] for name in names]
    assert sorted(name.replace("/", "-") for name in flat) == [name.replace("/", "-") for name in flat]
    assert sorted(name.replace("/", "_") for name in flat) != [name.replace("/", "_") for name in flat]


def test_train_paths_begin_with_a_slash_and_their_category(root: Path) -> None:
    names = {number: name for name, number in rows(root, "categories_places365.txt")}
    listed = rows(root, "places365_train_standard.txt")
    assert len(listed) == 170
    for path, label in listed:
        assert path.rsplit("/", 1)[0] == names[label]
        assert (root / "data_256" / path[1:]).is_file()
    assert listed[0][0].endswith("/00000001.jpg")


def test_val_and_test_are_flat(root: Path) -> None:
    val = rows(root, "places365_val.txt")
    assert [name for name, _ in val] == [f"Places365_val_{number:08d}.jpg" for number in range(1, 61)]
    assert Counter(label for _, label in val) == {str(label): 5 for label in range(12)}
    test = rows(root, "places365_test.txt")
    assert all(len(row) == 1 and (root / "test_256" / row[0]).is_file() for row in test)
    for name, _ in val:
        with Image.open(root / "val_256" / name) as image:
            assert image.size == (64, 64)
    kinds = Counter(look(path)[1] for path in root.rglob("*.jpg"))
    assert kinds["L"] > 0
    assert kinds["RGB"] > 200


def test_pictures_of_a_category_are_more_alike_than_others(root: Path) -> None:
    # Nearest mean picture, learnt from train, does much better on val than one in twelve.
    size = (16, 16)

    def pixels(path: Path) -> np.ndarray:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB").resize(size), dtype=float).ravel()

    train = rows(root, "places365_train_standard.txt")
    inputs = np.array([pixels(root / "data_256" / path[1:]) for path, _ in train])
    labels = np.array([int(label) for _, label in train])
    means = np.array([inputs[labels == label].mean(0) for label in range(12)])
    val = rows(root, "places365_val.txt")
    right = [int(label) == ((means - pixels(root / "val_256" / name)) ** 2).sum(1).argmin() for name, label in val]
    assert np.mean(right) > 0.4
