from __future__ import annotations

import pickle
import pickletools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.world.writers import cifar100
from world.writers.written import digests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cifar100")
    cifar100.write(path, "tiny", 3)
    return path / "cifar-100-python"


def load(root: Path, name: str, encoding: str = "bytes") -> dict[Any, Any]:
    content: dict[Any, Any] = pickle.loads((root / name).read_bytes(), encoding=encoding)
    return content


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    cifar100.write(tmp_path / "again", "tiny", 3)
    cifar100.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again" / "cifar-100-python")
    assert digests(root)["train"] != digests(tmp_path / "other" / "cifar-100-python")["train"]


def test_keys_are_bytes_in_the_official_order(root: Path) -> None:
    assert {path.name for path in root.iterdir()} == {"train", "test", "meta", "file.txt~"}
    for name, title in (("train", b"training"), ("test", b"testing")):
        content = load(root, name)
        assert list(content) == [b"filenames", b"batch_label", b"fine_labels", b"coarse_labels", b"data"]
        assert content[b"batch_label"] == title + b" batch 1 of 1"
        assert content[b"data"].dtype == np.uint8
        assert content[b"data"].shape == (len(content[b"fine_labels"]), 3072)
    assert "data" in load(root, "train", "latin1")


def test_it_is_protocol_2_and_names_only_numpys_own_globals(root: Path) -> None:
    for name in ("train", "test", "meta"):
        found = list(pickletools.genops((root / name).read_bytes()))
        assert max(opcode.proto for opcode, _, _ in found) == 2
        named = {argument for opcode, argument, _ in found if opcode.name == "GLOBAL"}
        assert named <= {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"}
        assert "STACK_GLOBAL" not in {opcode.name for opcode, _, _ in found}


def test_names_are_the_official_ones(root: Path) -> None:
    meta = load(root, "meta")
    fine, coarse = meta[b"fine_label_names"], meta[b"coarse_label_names"]
    assert (len(fine), len(coarse)) == (100, 20)
    assert fine == sorted(fine)
    assert coarse == sorted(coarse)
    assert (fine[0], fine[26], fine[99]) == (b"apple", b"crab", b"worm")
    assert (coarse[0], coarse[19]) == (b"aquatic_mammals", b"vehicles_2")
    given = load(root, "train")
    families: dict[int, set[int]] = {}
    for small, large in zip(given[b"fine_labels"], given[b"coarse_labels"], strict=True):
        families.setdefault(large, set()).add(small)
    assert {len(members) for members in families.values()} == {5}
    # Three that anybody knows: an apple is a fruit, a bee an insect, a whale an aquatic mammal.
    for small, large in ((b"apple", b"fruit_and_vegetables"), (b"bee", b"insects"), (b"whale", b"aquatic_mammals")):
        assert fine.index(small) in families[coarse.index(large)]


def test_labels_are_even_and_file_names_agree(root: Path) -> None:
    fine = load(root, "meta")[b"fine_label_names"]
    for name, each in (("train", 8), ("test", 2)):
        content = load(root, name)
        assert Counter(content[b"fine_labels"]) == dict.fromkeys(range(100), each)
        assert len(set(content[b"filenames"])) == 100 * each
        for file, label in zip(content[b"filenames"], content[b"fine_labels"], strict=True):
            assert file.rsplit(b"_s_", 1)[0] == fine[label]


def test_rows_are_red_then_green_then_blue(root: Path) -> None:
    # An orange is always orange: much red, less green, little blue.
    content = load(root, "train")
    label = load(root, "meta")[b"fine_label_names"].index(b"orange")
    rows = content[b"data"][np.array(content[b"fine_labels"]) == label].reshape(-1, 3, 32, 32).astype(int)
    red, green, blue = rows[:, :, 10:22, 10:22].reshape(len(rows), 3, -1).mean(2).T
    assert np.median(red - green) > 20
    assert np.median(green - blue) > 20
