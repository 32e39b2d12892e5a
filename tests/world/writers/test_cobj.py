from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdfast.world.writers import cobj
from world.writers.written import digests

FILES = {f"continual/{part}": f"O365_continual_{part}_crop.json" for part in ("train", "val", "test")}
FILES |= {f"fewshot/{part}": f"O365_{part}_fewshot_crop.json" for part in ("sys", "pro", "non", "noc")}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cobj")
    cobj.write(path, "tiny", 3)
    return path / "COBJ" / "annotations"


@pytest.fixture(scope="module")
def parts(root: Path) -> dict[str, list[dict[str, Any]]]:
    return {part: json.loads((root / name).read_text()) for part, name in FILES.items()}


def combs(records: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(sorted(record["label"])) for record in records)


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    cobj.write(tmp_path, "tiny", 3)
    assert digests(root) == digests(tmp_path / "COBJ" / "annotations")


def test_every_record_has_its_picture(root: Path, parts: dict[str, list[dict[str, Any]]]) -> None:
    assert {path.name for path in root.glob("*.json")} == set(FILES.values())
    ids = [record["imageId"] for records in parts.values() for record in records]
    assert len(set(ids)) == len(ids)  # no instance in two parts
    for part, records in parts.items():
        for record in records:
            assert len(record["boundingBox"]) == len(record["label"])
            with Image.open(root / part / f"{record['imageId']}.jpg") as image:
                assert image.size == (48, 48)
            for left, top, width, height in record["boundingBox"]:
                assert left >= 0
                assert top >= 0
                assert left + width <= 48.1
                assert top + height <= 48.1


def test_the_thirty_combinations_of_the_paper() -> None:
    assert len({tuple(sorted(comb)) for comb in cobj.TRAINED}) == 30
    assert {len(comb) for comb in cobj.TRAINED} == {2, 3}
    assert len({name for comb in cobj.TRAINED for name in comb}) == 20
    assert cobj.TRAINED[10] == ("Hat", "Person", "Sneakers")  # the first of the second task


def test_the_parts_are_what_their_names_say(parts: dict[str, list[dict[str, Any]]]) -> None:
    trained = combs(parts["continual/train"])
    assert set(trained.values()) == {16}
    assert set(trained) == set(combs(parts["continual/test"])) == set(combs(parts["fewshot/non"]))
    known = {name for comb in trained for name in comb}
    novel = combs(parts["fewshot/sys"])
    assert not set(novel) & {tuple(sorted(comb)) for comb in cobj.TRAINED}
    assert {name for comb in novel for name in comb} <= known
    assert all(len(comb) >= 4 for comb in combs(parts["fewshot/pro"]))
    concepts = {name for comb in cobj.TRAINED for name in comb}
    assert not {name for comb in combs(parts["fewshot/noc"]) for name in comb} & concepts
