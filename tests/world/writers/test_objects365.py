from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdfast.world.writers import objects365
from world.writers.written import digests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("objects365")
    objects365.write(path, "tiny", 3)
    return path


def content(root: Path, split: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / f"zhiyuan_objv2_{split}.json").read_text())
    return value


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    objects365.write(tmp_path / "again", "tiny", 3)
    objects365.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


def test_categories_are_numbered_from_1_without_a_gap(root: Path) -> None:
    for split in ("train", "val"):
        listed = content(root, split)["categories"]
        assert [each["id"] for each in listed] == list(range(1, 366))
        names = [each["name"] for each in listed]
        assert len(set(names)) == 365
        assert names[:5] == ["Person", "Sneakers", "Chair", "Other Shoes", "Hat"]
        assert {"Moniter/TV", "Bakset", "Cigar/Cigarette ", "Formula 1 ", "Table Tennis "} <= set(names)


def test_one_image_is_listed_and_missing(root: Path) -> None:
    missing = []
    for image in content(root, "train")["images"]:
        assert list(image) == ["height", "id", "license", "width", "file_name", "url"]
        assert image["file_name"].startswith(("images/v1/patch", "images/v2/patch"))
        # The archives of train unpack to patchN, without the folders before it.
        path = root.joinpath(*image["file_name"].split("/")[-2:])
        if not path.is_file():
            missing.append(image["id"])
            continue
        with Image.open(path) as picture:
            assert picture.size == (image["width"], image["height"])
    assert len(missing) == 1
    assert all((root / image["file_name"]).is_file() for image in content(root, "val")["images"])


def test_boxes_lie_in_their_images(root: Path) -> None:
    flags = {"iscrowd": 0, "isfake": 0}
    for split in ("train", "val"):
        given = content(root, split)
        assert list(given) == ["images", "annotations", "categories", "licenses"]
        images = {image["id"]: image for image in given["images"]}
        keys = ["id", "iscrowd", "isfake", "area", "isreflected", "bbox", "image_id", "category_id"]
        assert len({note["id"] for note in given["annotations"]}) == len(given["annotations"])
        for note in given["annotations"]:
            assert list(note) == keys
            left, top, width, height = note["bbox"]
            image = images[note["image_id"]]
            assert width > 0
            assert height > 0
            assert left >= 0
            assert top >= 0
            assert left + width <= image["width"] + 0.1
            assert top + height <= image["height"] + 0.1
            assert note["area"] == pytest.approx(width * height, abs=1e-3)
            assert 1 <= note["category_id"] <= 365
            flags = {name: value + note[name] for name, value in flags.items()}
    assert all(count > 0 for count in flags.values())
