from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from holdfast.world.writers import commonsenseqa
from world.writers.written import digests, lines


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("commonsenseqa")
    commonsenseqa.write(path, "tiny", 3)
    return path


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    commonsenseqa.write(tmp_path / "again", "tiny", 3)
    commonsenseqa.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "count", "answered"),
    [
        ("train_rand_split.jsonl", 200, True),
        ("dev_rand_split.jsonl", 80, True),
        ("test_rand_split_no_answers.jsonl", 40, False),
    ],
)
def test_records_have_the_official_keys_in_order(root: Path, name: str, count: int, answered: bool) -> None:
    records = lines(root / name)
    assert len(records) == count
    for record in records:
        assert list(record) == [*(["answerKey"] if answered else []), "id", "question"]
        assert re.fullmatch(r"[0-9a-f]{32}", record["id"])
        assert list(record["question"]) == ["question_concept", "choices", "stem"]
        assert [list(choice) for choice in record["question"]["choices"]] == [["label", "text"]] * 5
        assert "".join(choice["label"] for choice in record["question"]["choices"]) == "ABCDE"
        assert len({choice["text"] for choice in record["question"]["choices"]}) == 5
    assert len({record["id"] for record in records}) == count


def test_each_letter_is_right_equally_often(root: Path) -> None:
    counts = Counter(record["answerKey"] for record in lines(root / "train_rand_split.jsonl"))
    assert counts == dict.fromkeys("ABCDE", 40)


def test_the_answer_follows_from_the_concept(root: Path) -> None:
    # The same question with the same concept never has two answers among choices that hold both.
    right: dict[tuple[str, str], set[str]] = {}
    records = lines(root / "train_rand_split.jsonl")
    for record in records:
        texts = {choice["label"]: choice["text"] for choice in record["question"]["choices"]}
        key = (record["question"]["question_concept"], record["question"]["stem"])
        right.setdefault(key, set()).add(texts[record["answerKey"]])
    for record in records:
        texts = {choice["label"]: choice["text"] for choice in record["question"]["choices"]}
        key = (record["question"]["question_concept"], record["question"]["stem"])
        assert right[key] & set(texts.values()) == {texts[record["answerKey"]]}
