from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdfast.world.writers import gqa
from world.writers.written import digests

KEYS = ["semantic", "entailed", "equivalent", "question", "imageId", "isBalanced", "groups", "answer", "semanticStr"]
KEYS += ["annotations", "types", "fullAnswer"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gqa")
    gqa.write(path, "tiny", 3)
    return path


def graphs(root: Path, split: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / f"{split}_sceneGraphs.json").read_text())
    return value


def questions(root: Path, split: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / f"{split}_balanced_questions.json").read_text())
    return value


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    gqa.write(tmp_path / "again", "tiny", 3)
    gqa.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


def test_graphs_have_string_ids_and_boxes_of_whole_pixels(root: Path) -> None:
    located = []
    for split, count in (("train", 60), ("val", 20)):
        given = graphs(root, split)
        assert len(given) == count
        for image_id, graph in given.items():
            with Image.open(root / "images" / f"{image_id}.jpg") as picture:
                assert picture.size == (graph["width"], graph["height"])
            located.append("location" in graph)
            for thing in graph["objects"].values():
                assert list(thing) == ["name", "x", "y", "w", "h", "attributes", "relations"]
                assert all(type(thing[side]) is int for side in "xywh")
                assert min(thing["w"], thing["h"]) > 0
                assert thing["x"] + thing["w"] <= graph["width"] + 1
                assert thing["y"] + thing["h"] <= graph["height"] + 1
                assert isinstance(thing["relations"], list)
                assert all(each["object"] in graph["objects"] for each in thing["relations"])
    assert set(located) == {True, False}


def test_left_and_right_agree_with_the_boxes(root: Path) -> None:
    checked = 0
    for graph in graphs(root, "train").values():
        for thing in graph["objects"].values():
            for each in thing["relations"]:
                other = graph["objects"][each["object"]]
                ahead = 2 * other["x"] + other["w"] - 2 * thing["x"] - thing["w"]
                if each["name"] in ("to the left of", "to the right of"):
                    assert (ahead > 0) == (each["name"] == "to the left of")
                    checked += 1
    assert checked > 50


def test_answers_are_true_of_the_graph(root: Path) -> None:
    kinds: Counter[str] = Counter()
    for split in ("train", "val"):
        given = graphs(root, split)
        for question_id, record in questions(root, split).items():
            assert list(record) == KEYS
            assert record["equivalent"] == [question_id]
            things = given[record["imageId"]]["objects"]
            noun = record["semantic"][0]["argument"].rsplit(" (", 1)[0]
            named = {key: thing for key, thing in things.items() if thing["name"] == noun}
            kinds[record["types"]["semantic"]] += 1
            match record["types"]["semantic"]:
                case "obj":
                    assert record["question"] == f"Is there any {noun} in the picture?"
                    assert record["answer"] == ("yes" if named else "no")
                case "attr":
                    (thing,) = named.values()
                    assert record["answer"] in thing["attributes"]
                case "rel":
                    (key,) = named
                    relation = record["question"].removeprefix("What is ").removesuffix(f" the {noun}?")
                    edge = {"name": relation, "object": key}
                    assert [t["name"] for t in things.values() if edge in t["relations"]] == [record["answer"]]
                    words = record["question"].removesuffix("?").split()
                    assert noun.startswith(words[int(next(iter(record["annotations"]["question"])))])
    assert min(kinds.values()) > 10
    assert set(kinds) == {"obj", "attr", "rel"}


def test_a_noun_does_not_tell_whether_it_is_there(root: Path) -> None:
    answers: Counter[tuple[str, str]] = Counter()
    for record in questions(root, "train").values():
        if record["types"]["semantic"] == "obj":
            answers[record["question"], record["answer"]] += 1
    asked = {question for question, _ in answers}
    assert all(abs(answers[question, "yes"] - answers[question, "no"]) <= 1 for question in asked)
    assert sum(count for (_, answer), count in answers.items() if answer == "no") > 25


def test_testdev_has_ids_with_an_n_and_test_has_no_answers(root: Path) -> None:
    testdev = questions(root, "testdev").values()
    assert all(record["imageId"].startswith("n") and "answer" in record for record in testdev)
    for record in (*testdev, *questions(root, "test").values()):
        assert (root / "images" / f"{record['imageId']}.jpg").is_file()
    assert all(list(record) == ["imageId", "question", "isBalanced"] for record in questions(root, "test").values())
    assert not (root / "test_sceneGraphs.json").exists()
