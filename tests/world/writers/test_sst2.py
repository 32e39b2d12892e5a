from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.world.writers import sst2
from world.writers.written import digests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sst2")
    sst2.write(path, "tiny", 3)
    return path / "SST-2"


def rows(root: Path, split: str) -> list[list[str]]:
    text = (root / f"{split}.tsv").read_bytes().decode()
    assert text.endswith("\n")
    assert "\r" not in text
    return [line.split("\t") for line in text.split("\n")[:-1]]


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    sst2.write(tmp_path / "again", "tiny", 3)
    sst2.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again" / "SST-2")
    assert digests(root) != digests(tmp_path / "other" / "SST-2")


def test_headers_counts_and_columns(root: Path) -> None:
    for split, count in (("train", 300), ("dev", 80), ("test", 40)):
        header, *records = rows(root, split)
        assert header == (["index", "sentence"] if split == "test" else ["sentence", "label"])
        assert len(records) == count
        assert all(len(record) == 2 for record in records)
    assert [record[0] for record in rows(root, "test")[1:]] == [str(index) for index in range(40)]


def test_labels_are_balanced(root: Path) -> None:
    for split, each in (("train", 150), ("dev", 40)):
        assert Counter(label for _, label in rows(root, split)[1:]) == {"0": each, "1": each}


def test_train_is_phrases_with_a_final_blank_and_some_twice(root: Path) -> None:
    sentences = [sentence for sentence, _ in rows(root, "train")[1:]]
    assert all(sentence.endswith(" ") and sentence == sentence.lower() for sentence in sentences)
    assert len(set(sentences)) < len(sentences)
    assert sum(sentence.endswith(". ") for sentence in sentences) < len(sentences) / 2
    assert any(sentence.count('"') == 1 for sentence in sentences)  # a lone quote is plain text
    assert all(sentence.endswith(" .") for sentence, _ in rows(root, "dev")[1:])


def test_a_phrase_that_comes_again_keeps_its_label(root: Path) -> None:
    labels: dict[str, set[str]] = {}
    for sentence, label in rows(root, "train")[1:]:
        labels.setdefault(sentence, set()).add(label)
    assert all(len(given) == 1 for given in labels.values())
