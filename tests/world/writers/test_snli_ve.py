from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.world.writers import flickr30k_entities, snli_ve
from world.writers.written import digests, lines

SPELLINGS = ("Flickr30K_ID", "Flikr30kID", "Flickr30kID")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snli_ve")
    snli_ve.write(path, "tiny", 3)
    return path


def test_the_same_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    snli_ve.write(tmp_path, "tiny", 3)
    assert digests(folder) == digests(tmp_path)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_labels_are_balanced_and_keys_sorted(folder: Path, split: str) -> None:
    records = lines(folder / f"snli_ve_{split}.jsonl")
    labels = Counter(record["gold_label"] for record in records if record["gold_label"] != "-")
    assert set(labels) == {"entailment", "neutral", "contradiction"}
    assert len(set(labels.values())) == 1
    for record in records:
        assert list(record) == sorted(record)
        assert len(record) == 11
        first = next(iter(record))
        assert first in SPELLINGS
        assert record["captionID"].startswith(f"{record[first]}.jpg#")
        assert record["pairID"].startswith(f"{record['captionID']}r")
        if record["gold_label"] != "-":
            assert record["pairID"][-1] == record["gold_label"][0]
            assert 2 * record["annotator_labels"].count(record["gold_label"]) > len(record["annotator_labels"])
    assert len({record["pairID"] for record in records}) == len(records)
    assert {next(iter(record)) for record in records} == set(SPELLINGS)


def test_one_row_of_training_has_no_majority(folder: Path) -> None:
    rows = [record for record in lines(folder / "snli_ve_train.jsonl") if record["gold_label"] == "-"]
    assert len(rows) == 1
    assert max(Counter(rows[0]["annotator_labels"]).values()) <= 2


def test_splits_share_no_image_and_every_image_is_there(folder: Path) -> None:
    by_split = {
        split: {next(iter(record.values())) for record in lines(folder / f"snli_ve_{split}.jsonl")}
        for split in ("train", "dev", "test")
    }
    assert not by_split["train"] & by_split["dev"]
    assert not (by_split["train"] | by_split["dev"]) & by_split["test"]
    everything = {path.stem for path in (folder / "flickr30k_images").glob("*.jpg")}
    assert everything == by_split["train"] | by_split["dev"] | by_split["test"]


def test_lists_end_without_a_newline_and_dev_is_the_end_of_the_first(folder: Path) -> None:
    text = (folder / "flickr30k_train_val.lst").read_text()
    assert not text.endswith("\n")
    dev = {next(iter(record.values())) for record in lines(folder / "snli_ve_dev.jsonl")}
    assert set(text.split("\n")[-len(dev) :]) == dev
    assert len((folder / "flickr30k_test.lst").read_text().split("\n")) == 20


def test_images_against_entities(folder: Path) -> None:
    entities = {
        split: {flickr30k_entities.image_id(number) for number in flickr30k_entities.image_numbers(split, "tiny")}
        for split in ("train", "val", "test")
    }
    of = {s: {next(iter(r.values())) for r in lines(folder / f"snli_ve_{s}.jsonl")} for s in ("dev", "test")}
    assert of["test"] == entities["test"]
    assert 0 < len(of["dev"] & entities["val"]) < len(of["dev"]) / 2


def test_parses_hold_the_words_of_their_sentences(folder: Path) -> None:
    for record in lines(folder / "snli_ve_dev.jsonl"):
        for name in ("sentence1", "sentence2"):
            words = record[name].replace(".", "").split()
            binary = record[f"{name}_binary_parse"]
            assert [word for word in binary.split() if word not in ("(", ")", ".")] == words
            assert binary.count("(") == binary.count(")")
            assert record[f"{name}_parse"].startswith("(ROOT (S ")


def test_the_papers_counts() -> None:
    paper = snli_ve.COUNTS["paper"]
    assert {split: sum(counts) for split, counts in paper.items()} == {"train": 529527, "dev": 17858, "test": 17901}
    train, dev, test = snli_ve._images("paper")
    assert (len(train), len(dev), len(test)) == (29783, 1000, 1000)
