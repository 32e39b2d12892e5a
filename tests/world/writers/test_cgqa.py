from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from holdfast.world.vocabulary import CGQA_NOUNS
from holdfast.world.writers import cgqa
from world.writers.written import digests

FILES = {f"continual/{part}": f"continual/{part}/{part}.json" for part in ("train", "val", "test")}
FILES |= {
    f"fewshot/{part}": f"fewshot/{part}/{part}_fewshot.json" for part in ("sys", "pro", "sub", "non_novel", "non_comp")
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cgqa")
    cgqa.write(path, "tiny", 3)
    return path / "CGQA" / "GQA_100"


@pytest.fixture(scope="module")
def parts(root: Path) -> dict[str, list[dict[str, Any]]]:
    return {part: json.loads((root / name).read_text()) for part, name in FILES.items()}


def combs(records: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(sorted(record["comb"])) for record in records)


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    cgqa.write(tmp_path, "tiny", 3)
    assert digests(root) == digests(tmp_path / "CGQA" / "GQA_100")


def test_every_record_has_its_picture(root: Path, parts: dict[str, list[dict[str, Any]]]) -> None:
    for part, records in parts.items():
        for record in records:
            assert list(record) == ["newImageName", "comb", "objects", "position"]
            assert record["newImageName"].rsplit("/", 1)[0] == part
            assert (root / f"{record['newImageName']}.jpg").is_file()
            assert [thing["objName"] for thing in record["objects"]] == record["comb"]
            assert len(set(record["position"])) == len(record["comb"])
        assert len({record["newImageName"] for record in records}) == len(records)


def test_the_hundred_pairs_of_the_paper() -> None:
    assert len({tuple(sorted(pair)) for pair in cgqa.TRAINED}) == 100
    assert {noun for pair in cgqa.TRAINED for noun in pair} == set(CGQA_NOUNS)
    assert cgqa.TRAINED[10] == ("chair", "sign")  # the first of the second task


def test_the_parts_are_what_their_names_say(parts: dict[str, list[dict[str, Any]]]) -> None:
    trained = combs(parts["continual/train"])
    assert set(trained.values()) == {16}
    assert set(trained) == set(combs(parts["continual/val"])) == set(combs(parts["fewshot/non_novel"]))
    known = {noun for comb in trained for noun in comb}
    novel = combs(parts["fewshot/sys"])
    assert not set(novel) & set(trained)
    assert {noun for comb in novel for noun in comb} <= known
    assert set(combs(parts["fewshot/sub"])) == set(novel)
    productive = combs(parts["fewshot/pro"])
    assert {len(comb) for comb in productive} <= {3, 4}
    assert {noun for comb in productive for noun in comb} <= known
    assert not {noun for comb in combs(parts["fewshot/non_comp"]) for noun in comb} & set(CGQA_NOUNS)
    assert all(set(combs(records).values()) == {20} for part, records in parts.items() if part.startswith("fewshot"))


def test_the_looks_of_sub_are_seen_nowhere_else(parts: dict[str, list[dict[str, Any]]]) -> None:
    looks = {
        part: {(thing["objName"], *thing["attributes"]) for r in records for thing in r["objects"]}
        for part, records in parts.items()
    }
    kept = looks.pop("fewshot/sub")
    assert {look[2:] for look in kept} == {("spotted", "large"), ("checked", "large")}
    for seen in looks.values():
        assert {look[2:] for look in seen} == {("plain", "large"), ("striped", "large")}
        assert not {look[:2] for look in kept} & {look[:2] for look in seen}, "nor is a colour"


def test_things_are_where_the_positions_say(root: Path, parts: dict[str, list[dict[str, Any]]]) -> None:
    for record in parts["fewshot/pro"][:20]:
        with Image.open(root / f"{record['newImageName']}.jpg") as image:
            picture = np.asarray(image, dtype=float)
        cells = picture.reshape(2, 24, 2, 24, 3).mean(axis=(1, 3, 4)).ravel()
        assert {index for index, light in enumerate(cells, 1) if light > 20} == set(record["position"])
