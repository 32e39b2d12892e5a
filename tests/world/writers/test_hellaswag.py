from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.world.writers import hellaswag
from world.writers.written import digests, lines

ALL = ("ind", "activity_label", "ctx_a", "ctx_b", "ctx", "split", "split_type", "label", "endings", "source_id")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hellaswag")
    hellaswag.write(path, "tiny", 3)
    return path


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    hellaswag.write(tmp_path / "again", "tiny", 3)
    hellaswag.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


@pytest.mark.parametrize(("split", "count"), [("train", 200), ("val", 80), ("test", 40)])
def test_records_have_the_official_keys_in_order(root: Path, split: str, count: int) -> None:
    records = lines(root / f"hellaswag_{split}.jsonl")
    assert len(records) == count
    for record in records:
        assert list(record) == [key for key in ALL if key in record]
        assert set(ALL) - set(record) <= {"ctx_a", "ctx_b", "label"}
        assert record["split"] == split
        assert record["split_type"] in ("indomain", "zeroshot")
        assert len(set(record["endings"])) == 4
        assert ("label" in record) == (split != "test")
        if "ctx_a" in record:
            assert record["ctx"] == " ".join(part for part in (record["ctx_a"], record["ctx_b"]) if part)
    numbers = [record["ind"] for record in records]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] - numbers[0] > count  # with gaps


def test_both_sources_occur_and_instructions_have_no_second_context(root: Path) -> None:
    records = lines(root / "hellaswag_val.jsonl")
    wiki = [record for record in records if record["source_id"].startswith("wikihow~")]
    films = [record for record in records if record["source_id"].startswith("activitynet~v_")]
    assert len(wiki) + len(films) == 80
    assert all(record["ctx_b"] == "" and "[header]" in record["ctx"] for record in wiki)
    assert any(record.get("ctx_b") for record in films)
    assert any("ctx_a" not in record for record in films)
    assert {record["split_type"] for record in records} == {"indomain", "zeroshot"}


def test_labels_are_numbers_and_balanced(root: Path) -> None:
    labels = [record["label"] for record in lines(root / "hellaswag_train.jsonl")]
    assert all(type(label) is int for label in labels)
    assert Counter(labels) == {0: 50, 1: 50, 2: 50, 3: 50}
