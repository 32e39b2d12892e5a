from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from holdfast.world.writers import vqav2
from world.writers.written import digests


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vqav2")
    vqav2.write(path, "tiny", 3)
    return path


def content(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def questions(folder: Path, subtype: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = content(folder, f"v2_OpenEnded_mscoco_{subtype}_questions.json")["questions"]
    return records


def annotations(folder: Path, split: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = content(folder, f"v2_mscoco_{split}_annotations.json")["annotations"]
    return records


def test_the_same_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    vqav2.write(tmp_path, "tiny", 3)
    assert digests(folder) == digests(tmp_path)


def test_the_files_have_the_official_keys(folder: Path) -> None:
    asked = content(folder, "v2_OpenEnded_mscoco_train2014_questions.json")
    assert list(asked) == ["info", "task_type", "data_type", "license", "data_subtype", "questions"]
    assert asked["data_subtype"] == "train2014"
    assert list(asked["questions"][0]) == ["image_id", "question", "question_id"]
    told = content(folder, "v2_mscoco_train2014_annotations.json")
    assert list(told) == ["info", "license", "data_subtype", "data_type", "annotations"]


@pytest.mark.parametrize("split", ["train2014", "val2014"])
def test_questions_and_annotations_join_by_id_and_not_by_place(folder: Path, split: str) -> None:
    asked, told = questions(folder, split), annotations(folder, split)
    assert len(asked) == vqav2.COUNTS["tiny"][split]
    by_id = {record["question_id"]: record for record in told}
    assert len(by_id) == len(told) == len(asked)
    assert all(by_id[record["question_id"]]["image_id"] == record["image_id"] for record in asked)
    assert all(record["question_id"] // 1000 == record["image_id"] for record in asked)
    assert [r["question_id"] for r in asked] != [r["question_id"] for r in told]


def test_ten_annotators_with_their_confidence(folder: Path) -> None:
    for record in annotations(folder, "train2014"):
        assert [answer["answer_id"] for answer in record["answers"]] == list(range(1, 11))
        assert {answer["answer_confidence"] for answer in record["answers"]} <= {"yes", "maybe", "no"}
        assert all(isinstance(answer["answer"], str) for answer in record["answers"])
        assert record["answer_type"] in ("yes/no", "number", "other")
        common = Counter(answer["answer"] for answer in record["answers"]).most_common(1)[0]
        assert common[1] >= 3


def test_annotators_agree_on_some_questions_and_disagree_on_others(folder: Path) -> None:
    voices = [{answer["answer"] for answer in record["answers"]} for record in annotations(folder, "train2014")]
    assert any(len(answers) == 1 for answers in voices)
    assert any(len(answers) > 2 for answers in voices)
    assert any("a" in answers for answers in voices), "an answer of which normalisation leaves nothing"


def test_every_image_is_there(folder: Path) -> None:
    for split in ("train2014", "val2014", "test2015"):
        numbers = {record["image_id"] for record in questions(folder, split)}
        assert {f"COCO_{split}_{number:012d}.jpg" for number in numbers} == {p.name for p in (folder / split).iterdir()}


def test_test_has_no_annotations_and_holds_test_dev(folder: Path) -> None:
    assert not list(folder.glob("*test*annotations*"))
    everything = {record["question_id"] for record in questions(folder, "test2015")}
    dev = {record["question_id"] for record in questions(folder, "test-dev2015")}
    assert dev < everything
    assert len(dev) == 15


def test_complementary_pairs_share_words_but_neither_answer_nor_image(folder: Path) -> None:
    text = {record["question_id"]: record["question"] for record in questions(folder, "train2014")}
    told = {record["question_id"]: record for record in annotations(folder, "train2014")}
    pairs = content(folder, "v2_mscoco_train2014_complementary_pairs.json")
    assert pairs
    for first, second in pairs:
        assert text[first] == text[second]
        assert told[first]["multiple_choice_answer"] != told[second]["multiple_choice_answer"]
        assert told[first]["image_id"] != told[second]["image_id"]


def test_yes_and_no_are_about_as_frequent(folder: Path) -> None:
    records = annotations(folder, "train2014") + annotations(folder, "val2014")
    answers = Counter(r["multiple_choice_answer"] for r in records if r["answer_type"] == "yes/no")
    assert set(answers) == {"yes", "no"}
    total = answers.total()
    # Four standard deviations of a fair coin.
    assert abs(answers["yes"] - total / 2) < 2 * total**0.5


def test_guessing_by_the_kind_of_question_does_not_go_far(folder: Path) -> None:
    told = annotations(folder, "train2014")
    by_type: dict[str, Counter[str]] = defaultdict(Counter)
    for record in told:
        by_type[record["question_type"]][record["multiple_choice_answer"]] += 1
    right = sum(
        by_type[r["question_type"]].most_common(1)[0][0] == r["multiple_choice_answer"]
        for r in annotations(folder, "val2014")
    )
    assert right / vqav2.COUNTS["tiny"]["val2014"] < 0.6
