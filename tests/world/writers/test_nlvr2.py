from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from holdfast.world.writers import nlvr2
from world.writers.written import digests, lines, look

SPLITS = ("train", "dev", "test1", "test2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nlvr2")
    nlvr2.write(path, "tiny", 3)
    return path


def images(folder: Path, split: str) -> dict[str, Path]:
    return {path.name: path for path in folder.rglob(f"{split}-*.png")}


def names(identifier: str) -> list[str]:
    pair = identifier.rsplit("-", 1)[0]
    return [f"{pair}-img0.png", f"{pair}-img1.png"]


def test_the_same_call_writes_the_same_bytes_and_a_flaw_is_one_image_less(folder: Path, tmp_path: Path) -> None:
    nlvr2.write(tmp_path, "tiny", 3, flaws=False)
    whole = digests(tmp_path)
    missing = set(whole) - set(digests(folder))
    assert len(missing) == 1
    assert digests(folder) == {name: digest for name, digest in whole.items() if name not in missing}


@pytest.mark.parametrize("split", SPLITS)
def test_records(folder: Path, split: str) -> None:
    records = lines(folder / "data" / f"{split}.json")
    assert len(records) == nlvr2.COUNTS["tiny"][split]
    assert len({record["identifier"] for record in records}) == len(records)
    for record in records:
        assert record["label"] in ("True", "False")
        assert ("directory" in record) == (split == "train")
        assert ("extra_validations" in record) == (split != "train")
        assert record["identifier"].split("-")[0] == split
        assert set(record["validation"].values()) == {record["label"]}
        if split != "train":
            assert 2 <= len(record["extra_validations"]) <= 4


@pytest.mark.parametrize("split", SPLITS)
def test_a_sentence_is_as_often_true_as_false(folder: Path, split: str) -> None:
    by_sentence = defaultdict(list)
    for record in lines(folder / "data" / f"{split}.json"):
        by_sentence[record["identifier"].split("-")[1], record["sentence"]].append(record["label"])
    uneven = [labels for labels in by_sentence.values() if labels.count("True") != labels.count("False")]
    assert len(uneven) <= 1, "only the last set may be cut short"


def test_a_consistency_group_is_one_sentence(folder: Path) -> None:
    groups = defaultdict(set)
    for record in lines(folder / "data" / "dev.json"):
        split, number, _, sentence = record["identifier"].split("-")
        groups[split, number, sentence].add(record["sentence"])
    assert all(len(sentences) == 1 for sentences in groups.values())


def test_images_are_where_the_archives_put_them_but_one(folder: Path) -> None:
    missing = []
    for split in SPLITS:
        present = images(folder, split)
        for record in lines(folder / "data" / f"{split}.json"):
            missing += [name for name in names(record["identifier"]) if name not in present]
            if split == "train":
                place = folder / "images" / "train" / str(record["directory"])
                assert all((place / name).is_file() for name in names(record["identifier"]))
            elif split != "test2":
                assert all((folder / split / name).is_file() for name in names(record["identifier"]))
    assert len(missing) == 1, "of one record only"
    assert missing[0].startswith("test2-")


def test_not_all_that_is_named_png_is_png(folder: Path) -> None:
    formats = [look(path)[0] for path in images(folder, "dev").values()]
    assert set(formats) == {"PNG", "JPEG"}
    assert formats.count("PNG") > formats.count("JPEG")


def test_hashes_name_exactly_the_images(folder: Path) -> None:
    for split in ("train", "dev", "test1"):
        hashes = json.loads((folder / "util" / "hashes" / f"{split}_hashes.json").read_text())
        assert set(hashes) == set(images(folder, split))
        assert all(len(value) == 16 and int(value, 16) >= 0 for value in hashes.values())
        assert len(set(hashes.values())) > len(hashes) / 2


def test_balanced_and_unbalanced_parts_have_pairs_that_come_twice(folder: Path) -> None:
    everything = {record["identifier"] for record in lines(folder / "data" / "dev.json")}
    for part, kinds in (("balanced", 2), ("unbalanced", 1)):
        pairs = defaultdict(list)
        for record in lines(folder / "data" / part / f"{part}_dev.json"):
            assert record["identifier"] in everything
            pairs[record["identifier"].rsplit("-", 1)[0]].append(record["label"])
        assert all(len(labels) == 2 and len(set(labels)) == kinds for labels in pairs.values())
