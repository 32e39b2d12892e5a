from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from holdfast.world.draw import render
from holdfast.world.scene import make_scene
from holdfast.world.writers import coco
from world.writers.written import digests, look

SPLITS = ("train2014", "val2014", "train2017", "val2017")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("coco")
    coco.write(path, "tiny", 3)
    return path


def annotations(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "annotations" / name).read_text())
    return content


def test_the_same_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    coco.write(tmp_path / "again", "tiny", 3)
    assert digests(folder) == digests(tmp_path / "again")
    coco.write(tmp_path / "other", "tiny", 4, images=False)
    name = "annotations/captions_val2014.json"
    assert digests(folder)[name] != digests(tmp_path / "other")[name]


def test_every_listed_image_is_there_with_the_size_it_is_said_to_have(folder: Path) -> None:
    for split in SPLITS:
        listed = annotations(folder, f"instances_{split}.json")["images"]
        assert listed == annotations(folder, f"captions_{split}.json")["images"]
        assert {entry["file_name"] for entry in listed} == {path.name for path in (folder / split).iterdir()}
        for entry in listed:
            with Image.open(folder / split / entry["file_name"]) as image:
                assert image.size == (entry["width"], entry["height"])
                assert image.format == "JPEG"


def test_names_of_2014_carry_the_split_and_names_of_2017_do_not(folder: Path) -> None:
    assert (folder / "train2014" / "COCO_train2014_000000000009.jpg").is_file()
    assert (folder / "train2017" / "000000000009.jpg").is_file()
    assert (folder / "test2015" / "COCO_test2015_000000000018.jpg").is_file()


def test_2017_is_2014_split_anew(folder: Path) -> None:
    ids = {split: {e["id"] for e in annotations(folder, f"instances_{split}.json")["images"]} for split in SPLITS}
    assert ids["train2014"] | ids["val2014"] == ids["train2017"] | ids["val2017"]
    assert not ids["train2014"] & ids["val2014"]
    assert not ids["train2017"] & ids["val2017"]
    assert ids["val2017"] < ids["val2014"]


@pytest.mark.parametrize("split", ["train2014", "val2014", "test2015", "train2017", "val2017"])
def test_the_papers_counts(split: str) -> None:
    official = {"train2014": 82783, "val2014": 40504, "test2015": 81434, "train2017": 118287, "val2017": 5000}
    numbers = coco.image_ids(split, "paper")
    assert len(set(numbers)) == len(numbers) == official[split]


def test_categories_are_the_official_eighty_with_their_gaps(folder: Path) -> None:
    categories = {c["id"]: c["name"] for c in annotations(folder, "instances_val2017.json")["categories"]}
    assert len(categories) == 80
    assert set(range(1, 91)) - set(categories) == {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
    known = {
        1: "person",
        11: "fire hydrant",
        13: "stop sign",
        25: "giraffe",
        27: "backpack",
        31: "handbag",
        44: "bottle",
    }
    known |= {46: "wine glass", 65: "bed", 67: "dining table", 70: "toilet", 72: "tv", 84: "book", 90: "toothbrush"}
    assert {number: categories[number] for number in known} == known


def test_boxes_hold_their_outlines_and_lie_in_the_picture(folder: Path) -> None:
    content = annotations(folder, "instances_train2017.json")
    sizes = {entry["id"]: (entry["width"], entry["height"]) for entry in content["images"]}
    assert len({a["id"] for a in content["annotations"]}) == len(content["annotations"])
    for annotation in content["annotations"]:
        left, top, width, height = annotation["bbox"]
        assert width > 0
        assert height > 0
        assert -0.01 <= left <= left + width <= sizes[annotation["image_id"]][0] + 0.02
        assert -0.01 <= top <= top + height <= sizes[annotation["image_id"]][1] + 0.02
        if not annotation["iscrowd"]:
            points = np.array(annotation["segmentation"][0]).reshape(-1, 2)
            np.testing.assert_allclose(points.min(0), [left, top], atol=0.02)
            np.testing.assert_allclose(points.max(0), [left + width, top + height], atol=0.02)
            # An octagon that cuts four corners of 0.3 by 0.3: each is half of 0.09.
            assert annotation["area"] == pytest.approx(0.82 * width * height, rel=0.05)


def test_crowds_are_run_lengths_down_the_columns(folder: Path) -> None:
    content = annotations(folder, "instances_train2014.json")
    crowds = [annotation for annotation in content["annotations"] if annotation["iscrowd"]]
    assert crowds
    for crowd in crowds:
        height, width = crowd["segmentation"]["size"]
        counts = crowd["segmentation"]["counts"]
        mask = np.repeat(np.arange(len(counts)) % 2, counts).reshape(width, height).T
        assert mask.sum() == crowd["area"]
        left, top, wide, high = crowd["bbox"]
        assert mask[top : top + high, left : left + wide].all()
        assert len(str(crowd["id"])) == 12


def test_traps_of_instances(folder: Path) -> None:
    train = annotations(folder, "instances_train2017.json")
    assert {e["id"] for e in train["images"]} - {a["image_id"] for a in train["annotations"]}, "an image without any"
    modes = Counter(look(path)[1] for path in (folder / "train2014").iterdir())
    assert modes["L"] > 0
    assert modes["RGB"] > 20 * modes["L"]


def test_one_flat_box_is_written_unless_flaws_are_declined(folder: Path, tmp_path: Path) -> None:
    coco.write(tmp_path, "tiny", 3, images=False, flaws=False)
    for path, count in ((folder, 1), (tmp_path, 0)):
        found = annotations(path, "instances_val2014.json")["annotations"]
        assert len([annotation for annotation in found if 0 in annotation["bbox"][2:]]) == count


def test_captions(folder: Path) -> None:
    content = annotations(folder, "captions_train2014.json")
    assert "categories" not in content
    assert all(list(a) == ["image_id", "id", "caption"] for a in content["annotations"])
    per_image = Counter(a["image_id"] for a in content["annotations"])
    assert set(per_image) == {entry["id"] for entry in content["images"]}
    assert min(per_image.values()) == 5
    assert max(per_image.values()) > 5
    texts = [a["caption"] for a in content["annotations"]]
    assert any(text.endswith(" ") for text in texts)
    assert any(text.endswith("\n") for text in texts)
    assert len({a["id"] for a in content["annotations"]}) == len(texts)


def test_the_picture_with_an_id_is_the_scene_with_that_number(folder: Path) -> None:
    with Image.open(folder / "train2014" / "COCO_train2014_000000000009.jpg") as image:
        seen = np.asarray(image.convert("RGB"), dtype=float)
    drawn = render(make_scene(3, 9), *image.size).astype(float)
    other = render(make_scene(3, 12), *image.size).astype(float)
    assert np.abs(seen - drawn).mean() < 6 < np.abs(seen - other).mean()
