from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from holdfast.world.writers import cpin
from world.writers.written import digests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cpin")
    cpin.write(path, "tiny", 3)
    return path / "PIN" / "PIN"


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    cpin.write(tmp_path, "tiny", 3)
    assert digests(root) == digests(tmp_path / "PIN" / "PIN")


def test_every_record_has_its_picture_and_combinations_are_counted(root: Path) -> None:
    listed = {path.stem: json.loads(path.read_text()) for path in root.glob("*.json")}
    assert listed.keys() == {"continual", *(f"{mode}_fewshot" for mode in cpin.FEWSHOT)}
    labels = {name: {tuple(sorted(each["label"])) for each in records} for name, records in listed.items()}
    assert labels["non_fewshot"] == labels["continual"]
    assert labels["sys_fewshot"].isdisjoint(labels["continual"])
    assert {len(label) for label in labels["pro_fewshot"]} == {7}
    seen = set(cpin.concepts(cpin.PARTS))
    assert seen.isdisjoint(part for label in labels["noc_fewshot"] for part in label)
    splits = Counter(each["newFileName"].split("/")[1] for each in listed["continual"])
    assert splits == {"train": 48, "val": 12, "test": 18}
    for records in listed.values():
        for record in records[:20]:
            assert len(set(record["position"])) == len(record["label"]) == len(record["objects"])
            assert set(record["position"]) <= set(range(9))
            with Image.open(root / record["newFileName"]) as image:
                assert image.size == (48, 48)
