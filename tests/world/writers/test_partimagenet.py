from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdfast.world.writers import partimagenet
from world.writers.written import digests, look


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partimagenet")
    partimagenet.write(path, "tiny", 3)
    return path


def content(root: Path, split: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / f"{split}.json").read_text())
    return value


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    partimagenet.write(tmp_path / "again", "tiny", 3)
    partimagenet.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


def test_the_forty_parts_are_numbered_from_0(root: Path) -> None:
    listed = content(root, "val")["categories"]
    assert [each["id"] for each in listed] == list(range(40))
    by_id = {each["id"]: each["name"] for each in listed}
    # Corners of the official table.
    table = {0: "Quadruped Head", 4: "Biped Head", 9: "Fish Head", 13: "Bird Head", 18: "Snake Head"}
    table |= {20: "Reptile Head", 24: "Car Body", 25: "Car Tier", 26: "Car Side Mirror", 27: "Bicycle Body"}
    table |= {31: "Boat Body", 33: "Aeroplane Head", 37: "Aeroplane Tail", 38: "Bottle Mouth", 39: "Bottle Body"}
    assert {number: by_id[number] for number in table} == table
    assert all(each["supercategory"] == each["name"].split()[0] for each in listed)


def test_files_lie_in_the_folder_of_their_wnid_and_splits_share_no_class(root: Path) -> None:
    classes = {}
    for split, (count, images) in partimagenet.COUNTS["tiny"].items():
        given = content(root, split)["images"]
        assert len(given) == images
        for image in given:
            assert list(image) == ["file_name", "height", "width", "id"]
            with Image.open(root / split / image["file_name"][:9] / image["file_name"]) as picture:
                assert picture.size == (image["width"], image["height"])
        classes[split] = {image["file_name"][:9] for image in given}
        assert len(classes[split]) == count
        assert sorted(image["id"] for image in given) == list(range(images))
    assert not classes["train"] & classes["val"]
    assert not classes["train"] & classes["test"]
    assert not classes["val"] & classes["test"]
    assert "PNG" in {look(path)[0] for path in root.rglob("*.JPEG")}


def test_polygons_fit_their_boxes_but_for_the_trap(root: Path) -> None:
    for split in ("train", "val", "test"):
        given = content(root, split)
        short, twice = 0, set()
        seen = set()
        for index, note in enumerate(given["annotations"]):
            assert note["id"] == index
            left, top, width, height = note["bbox"]
            (polygon,) = note["segmentation"]
            if len(polygon) < 6:
                assert len(polygon) == 4
                short += 1
                continue
            across, down = polygon[::2], polygon[1::2]
            assert (min(across), min(down)) == pytest.approx((left, top))
            assert (max(across) - left, max(down) - top) == pytest.approx((width, height), abs=0.02)
            key = (note["image_id"], note["category_id"])
            twice |= {key} & seen
            seen.add(key)
        assert short == 1
        assert twice


def test_parts_belong_to_what_the_image_shows(root: Path) -> None:
    given = content(root, "train")
    names = {each["id"]: each["supercategory"] for each in given["categories"]}
    groups: dict[int, set[str]] = {}
    for note in given["annotations"]:
        groups.setdefault(note["image_id"], set()).add(names[note["category_id"]])
    assert all(len(group) == 1 for group in groups.values())
    assert len(groups) == len(given["images"])
