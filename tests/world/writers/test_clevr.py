from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from holdfast.world.writers import clevr
from world.writers.written import digests

ATTRIBUTES = {
    "color": ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"),
    "shape": ("cube", "sphere", "cylinder"),
    "size": ("small", "large"),
    "material": ("rubber", "metal"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clevr")
    clevr.write(path, "tiny", 3)
    return path / "CLEVR_v1.0"


def questions(root: Path, split: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "questions" / f"CLEVR_{split}_questions.json").read_text())
    return content


def scenes(root: Path, split: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "scenes" / f"CLEVR_{split}_scenes.json").read_text())
    return content


def answer(program: list[dict[str, Any]], scene: dict[str, Any]) -> str:
    """Runs a program on a scene record by the table of CLEVR's functions; sets are Python sets of numbers."""
    objects = scene["objects"]
    places = np.array([thing["3d_coords"] for thing in objects])

    def evaluate(node: dict[str, Any]) -> Any:
        inputs = [evaluate(program[index]) for index in node["inputs"]]
        value = node["value_inputs"][0] if node["value_inputs"] else None
        match node["function"].split("_"):
            case ["scene"]:
                return set(range(len(objects)))
            case ["filter", attribute]:
                return {index for index in inputs[0] if objects[index][attribute] == value}
            case ["unique"]:
                (only,) = inputs[0]
                return only
            case ["relate"]:
                along = places @ np.array(scene["directions"][value])
                return {index for index in range(len(objects)) if along[index] > along[inputs[0]]} - {inputs[0]}
            case ["same", attribute]:
                own = objects[inputs[0]][attribute]
                return {index for index, thing in enumerate(objects) if thing[attribute] == own} - {inputs[0]}
            case ["intersect"]:
                return inputs[0] & inputs[1]
            case ["union"]:
                return inputs[0] | inputs[1]
            case ["query", attribute]:
                return objects[inputs[0]][attribute]
            case ["count"]:
                return len(inputs[0])
            case ["exist"]:
                return bool(inputs[0])
            case ["equal", _]:
                return inputs[0] == inputs[1]
            case ["greater", "than"]:
                return inputs[0] > inputs[1]
            case ["less", "than"]:
                return inputs[0] < inputs[1]
        raise AssertionError(node)

    result = evaluate(program[-1])
    return {True: "yes", False: "no"}[result] if isinstance(result, bool) else str(result)


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    clevr.write(tmp_path, "tiny", 3)
    assert digests(root) == digests(tmp_path / "CLEVR_v1.0")


def test_the_layout_is_the_archives(root: Path) -> None:
    assert {path.name for path in root.iterdir()} == {
        *("images", "questions", "scenes", "README.txt", "LICENSE.txt", "COPYRIGHT.txt"),
    }
    # The release has no scenes of test.
    assert {path.name for path in (root / "scenes").iterdir()} == {"CLEVR_train_scenes.json", "CLEVR_val_scenes.json"}
    for split, (images, count) in clevr.COUNTS["tiny"].items():
        names = sorted(path.name for path in (root / "images" / split).iterdir())
        assert names == [f"CLEVR_{split}_{index:06d}.png" for index in range(images)]
        assert len(questions(root, split)["questions"]) == count
        with Image.open(root / "images" / split / names[0]) as image:
            assert (image.format, image.mode, image.size) == ("PNG", "RGBA", (120, 80))


def test_the_paper_has_the_releases_counts() -> None:
    assert clevr.COUNTS["paper"] == {"train": (70_000, 699_989), "val": (15_000, 149_991), "test": (15_000, 149_988)}


def test_question_records_have_the_keys_of_the_release(root: Path) -> None:
    for split in ("train", "val", "test"):
        content = questions(root, split)
        assert list(content) == ["info", "questions"]
        assert content["info"]["split"] == split
        labelled = ["answer", "question_family_index", "program"] if split != "test" else []
        for index, record in enumerate(content["questions"]):
            assert list(record) == [
                *("image_index", "split", "image_filename", "question_index", "question"),
                *labelled,
            ]
            assert record["question_index"] == index
            assert record["image_filename"] == f"CLEVR_{split}_{record['image_index']:06d}.png"
            assert record["question"].endswith("?")
            if labelled:
                assert isinstance(record["answer"], str)
                assert 0 <= record["question_family_index"] < 90
                for position, node in enumerate(record["program"]):
                    assert list(node) == ["inputs", "function", "value_inputs"]
                    assert all(0 <= given < position for given in node["inputs"])


def test_answers_follow_from_the_scene_by_another_execution(root: Path) -> None:
    for split in ("train", "val"):
        by_index = {scene["image_index"]: scene for scene in scenes(root, split)["scenes"]}
        for record in questions(root, split)["questions"]:
            assert answer(record["program"], by_index[record["image_index"]]) == record["answer"], record["question"]


def test_scenes_say_where_each_thing_is(root: Path) -> None:
    for scene in scenes(root, "val")["scenes"]:
        assert list(scene) == ["image_index", "image_filename", "split", "directions", "objects", "relationships"]
        assert list(scene["directions"]) == ["right", "behind", "above", "below", "left", "front"]
        assert 3 <= len(scene["objects"]) <= 10
        for thing in scene["objects"]:
            assert all(thing[attribute] in values for attribute, values in ATTRIBUTES.items())
            across, down, depth = thing["pixel_coords"]
            assert 0 <= across < 120
            assert 0 <= down < 80
            assert depth > 0
        assert set(scene["relationships"]) == {"right", "behind", "front", "left"}
        places = np.array([thing["3d_coords"] for thing in scene["objects"]])
        for relation, lists in scene["relationships"].items():
            along = places @ np.array(scene["directions"][relation])
            assert lists == [
                [j for j in range(len(along)) if along[j] > along[i] and j != i] for i in range(len(along))
            ]


def test_what_is_at_the_pixel_has_the_colour_of_the_thing(root: Path) -> None:
    hues = {"red": 0, "green": 1, "blue": 2}
    checked = 0
    for scene in scenes(root, "train")["scenes"]:
        picture = np.asarray(Image.open(root / "images" / "train" / scene["image_filename"]).convert("RGB")).astype(int)
        nearest_first = sorted(scene["objects"], key=lambda thing: thing["pixel_coords"][2])
        thing = nearest_first[0]  # nothing can stand before it
        if thing["color"] in hues and thing["material"] == "rubber":
            across, down, _ = thing["pixel_coords"]
            assert picture[down, across].argmax() == hues[thing["color"]]
            checked += 1
    assert checked >= 3


def test_answers_are_balanced(root: Path) -> None:
    answers: dict[str, Counter[str]] = {}
    for record in questions(root, "train")["questions"]:
        answers.setdefault(record["program"][-1]["function"], Counter())[record["answer"]] += 1
    same = sum((count for name, count in answers.items() if name.startswith("equal_")), Counter())
    assert 0.4 < same["yes"] / same.total() < 0.6
    assert 0.35 < answers["exist"]["yes"] / answers["exist"].total() < 0.65
    for attribute, values in ATTRIBUTES.items():
        found = answers[f"query_{attribute}"]
        share, total = 1 / len(values), found.total()
        assert found.most_common(1)[0][1] < total * share + 4 * np.sqrt(total * share * (1 - share))
    assert {"count", "exist", "less_than", "greater_than", "equal_integer", "equal_color"} <= set(answers)
